//! `windrow.stems`: the stems of words in the language of their document.
//!
//! A stem is prefixed by the code of its language: `de:haus`. A query has the stems of its words in
//! all languages, so each document is compared by the rules of its own language. A document in an
//! unknown language is treated as English, as in MongoDB's text indexes.

use std::collections::HashMap;
use std::ops::Range;

use super::file_words::{is_simple, normalized, split_parts, split_pieces};
use super::words::has_signs;
use super::{Token, VisitToken, stems};
use crate::characters::WordCase;
use crate::language::Language;
use crate::stem::Stemmer;

/// Splits strings into stems with language codes.
#[derive(Default)]
pub(super) struct FileStems {
    languages: Languages,
    stemmers: HashMap<Language, Stemmer>,
    lower: String,
    term: String,
}

/// The languages of the stems.
#[derive(Clone, Copy, Default)]
enum Languages {
    /// All languages: a query.
    #[default]
    All,
    /// The language of a document.
    Document(Language),
}

impl FileStems {
    pub(super) fn set_document_language(&mut self, language: Option<Language>) {
        self.languages = Languages::Document(language.unwrap_or(Language::ENGLISH));
    }

    /// Visits the stems of the parts of a word and, in a document, of the pieces of these. Each
    /// stem has the position of its part. Returns the number of positions.
    pub(super) fn word_tokens(
        &mut self,
        word: &str,
        case: WordCase,
        visit: &mut VisitToken<'_>,
    ) -> u32 {
        if is_simple(word, case) {
            self.stems(word, case, 0..word.len(), 0, visit);
            return 1;
        }
        // Otherwise a query for `C++` would match the stem `c`.
        let is_query = matches!(self.languages, Languages::All);
        if is_query && has_signs(word) {
            return 1;
        }
        let mut position = 0;
        for part in split_parts(word) {
            let text = word.get(part.clone()).unwrap_or_default();
            self.stems(text, case, part.clone(), position, visit);
            let pieces = match self.languages {
                Languages::Document(_) => split_pieces(text),
                Languages::All => Vec::new(),
            };
            for piece in pieces {
                let range = part.start + piece.start..part.start + piece.end;
                let text = text.get(piece).unwrap_or_default();
                self.stems(text, case, range, position, visit);
            }
            position += 1;
        }
        position.max(1)
    }

    /// Visits the stems of a word or of a part with this range and position.
    fn stems(
        &mut self,
        word: &str,
        case: WordCase,
        range: Range<usize>,
        position: u32,
        visit: &mut VisitToken<'_>,
    ) {
        let mut visit_stem = |language: Language| {
            let stemmer = self.stemmers.entry(language);
            let stemmer = stemmer.or_insert_with(|| Stemmer::new(language.grammar));
            let stem = stems::stem(language, stemmer, word, case, &mut self.lower);
            let Some(stem) = stem else {
                return;
            };
            self.term.clear();
            self.term.push_str(language.code());
            self.term.push(':');
            self.term.push_str(&normalized(stem));
            visit(Token {
                term: &self.term,
                range: range.clone(),
                position,
            });
        };
        match self.languages {
            Languages::Document(Language::NONE) => {}
            Languages::Document(language) => visit_stem(language),
            Languages::All => {
                let languages = Language::all().filter(|it| *it != Language::NONE);
                languages.for_each(visit_stem);
            }
        }
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
        assert_eq!(
            terms(Some("en"), "list_houses Houses's"),
            ["en:list", "en:hous", "en:hous", "en:s"]
        );
        assert_eq!(
            terms(Some("en"), "HashMaps"),
            ["en:hashmap", "en:hash", "en:map"]
        );
        assert_eq!(terms(Some("klingon"), "The houses"), ["en:hous"]);
        assert!(terms(Some("none"), "The houses").is_empty());
    }

    #[test]
    fn queries_have_the_stems_of_all_languages() {
        let found = terms(None, "Häuser houses");
        assert_eq!(found.len(), 2 * 15);
        assert!(terms(None, "C++ c#").is_empty());
        assert_eq!(terms(Some("en"), "C++"), ["en:c"]);
        for stem in ["de:haus", "en:hous", "fr:haus"] {
            assert!(found.iter().any(|term| term == stem), "{stem} in {found:?}");
        }
    }
}
