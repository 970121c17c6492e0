//! `windrow.stems`: the stems of words in the language of their document.
//!
//! A stem is marked with the code of its language: `de:haus`. So a word of a query is compared by the
//! rules of the language that a document is in, whatever language the query is in. A document whose
//! language is not known is taken for English, as in MongoDB's text indexes.

use std::collections::HashMap;

use super::file_words::normalized;
use super::{Token, VisitToken, stems};
use crate::language::Language;
use crate::stem::Stemmer;

/// Splits strings into marked stems.
#[derive(Default)]
pub(super) struct FileStems {
    languages: Languages,
    stemmers: HashMap<Language, Stemmer>,
    lower: String,
}

/// The languages whose stems are tokens.
#[derive(Clone, Copy, Default)]
enum Languages {
    /// Of a query.
    #[default]
    All,
    /// Of a document in this language.
    Document(Language),
}

impl FileStems {
    pub(super) fn set_document_language(&mut self, language: Option<Language>) {
        self.languages = Languages::Document(language.unwrap_or(Language::ENGLISH));
    }

    /// Visits the tokens of a text by increasing positions.
    pub(super) fn tokens(&mut self, text: &str, visit: &mut VisitToken<'_>) {
        match self.languages {
            Languages::Document(Language::NONE) => {}
            Languages::Document(language) => self.tokens_of(language, text, visit),
            Languages::All => {
                let mut found = Vec::new();
                for language in Language::all().filter(|it| *it != Language::NONE) {
                    self.tokens_of(language, text, &mut |token| {
                        found.push((token.position, token.range, token.term.to_owned()));
                    });
                }
                found.sort_by_key(|(position, ..)| *position);
                for (position, range, term) in found {
                    visit(Token {
                        term: &term,
                        range,
                        position,
                    });
                }
            }
        }
    }

    fn tokens_of(&mut self, language: Language, text: &str, visit: &mut VisitToken<'_>) {
        let stemmer = self.stemmers.entry(language);
        let stemmer = stemmer.or_insert_with(|| Stemmer::new(language.grammar));
        let mut term = format!("{}:", language.code());
        let mark = term.len();
        stems::tokens(language, stemmer, &mut self.lower, text, &mut |token| {
            term.truncate(mark);
            term.push_str(&normalized(token.term));
            visit(Token {
                term: &term,
                ..token
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::SearchAnalyzer;
    use super::*;

    fn terms(language: Option<&str>, text: &str) -> Vec<String> {
        let mut tokenizer = SearchAnalyzer::parse("windrow.stems").unwrap().tokenizer();
        if let Some(name) = language {
            let language = Language::parse(name, crate::TextVersion::V3);
            tokenizer.set_document_language(language.ok());
        }
        let (mut found, mut last) = (Vec::new(), 0);
        tokenizer.tokens(text, &mut |token| {
            assert!(token.position >= last);
            last = token.position;
            found.push(token.term.to_owned());
        });
        found
    }

    #[test]
    fn documents_have_the_stems_of_their_language() {
        assert_eq!(terms(Some("de"), "Die Häuser"), ["de:haus"]);
        assert_eq!(terms(Some("english"), "The houses"), ["en:hous"]);
        assert_eq!(terms(Some("klingon"), "The houses"), ["en:hous"]);
        assert!(terms(Some("none"), "The houses").is_empty());
    }

    #[test]
    fn queries_have_the_stems_of_all_languages() {
        let found = terms(None, "Häuser houses");
        assert_eq!(found.len(), 2 * 15);
        for stem in ["de:haus", "en:hous", "fr:haus"] {
            assert!(found.iter().any(|term| term == stem), "{stem} in {found:?}");
        }
    }
}
