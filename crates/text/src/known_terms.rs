//! Terms with numbers that stay the same from document to document.
//!
//! Most words of a text occurred in the texts before. A word is therefore looked up once, as it is
//! written: case folding, stop words, stems and diacritics are applied to new words only.

use crate::analyzer::Analyzer;
use crate::by_language::ByLanguage;
use crate::kept_terms::KeptTerms;
use crate::language::{Language, TextVersion};
use crate::term_table::TermTable;

/// The term of a stop word.
const NO_TERM: u32 = u32::MAX;

/// The terms of an index, numbered in the order of their first occurrence.
pub(crate) struct KnownTerms {
    version: TextVersion,
    terms: TermTable,
    languages: ByLanguage<KnownWords>,
    kept: KeptTerms,
}

/// The words of texts in one language.
struct KnownWords {
    analyzer: Analyzer,
    words: TermTable,
    /// By number of the word: the number of its term, or [`NO_TERM`].
    terms: Vec<u32>,
}

/// An occurrence of a term.
#[derive(Clone, Copy)]
pub(crate) struct Occurrence {
    /// The number of the term.
    pub(crate) term: u32,
    /// The number of words before it in the text, stop words included.
    pub(crate) position: u32,
}

impl KnownTerms {
    /// Creates an empty set of terms of an index of `version`.
    pub(crate) fn new(version: TextVersion) -> KnownTerms {
        KnownTerms {
            version,
            terms: TermTable::default(),
            languages: ByLanguage::default(),
            kept: KeptTerms::default(),
        }
    }

    /// Returns `true` if words repeat. Otherwise the numbers of terms are not worth using.
    pub(crate) fn are_repeated(&self) -> bool {
        self.kept.are_repeated()
    }

    /// Returns the term with this number, or an empty string if there is none.
    pub(crate) fn term(&self, number: u32) -> &str {
        self.terms.term(number)
    }

    /// Forgets all terms if there are too many to keep. Returns `true` if it does: numbers then
    /// stand for other terms.
    pub(crate) fn forget_if_full(&mut self) -> bool {
        let words = self.languages.iter().map(|known| &known.words);
        let (mut count, mut bytes) = (0, 0);
        for table in words.chain([&self.terms]) {
            count += table.len();
            bytes += table.text_bytes();
        }
        let is_full = self.kept.is_full(count, bytes);
        if is_full {
            self.terms.clear();
            for known in self.languages.iter_mut() {
                known.words.clear();
                known.terms.clear();
            }
        }
        is_full
    }

    /// Calls `visit` with each occurrence of a term in `text`, in order. Stop words are skipped.
    pub(crate) fn visit(
        &mut self,
        text: &str,
        language: Language,
        mut visit: impl FnMut(Occurrence),
    ) {
        let KnownTerms {
            version,
            terms,
            languages,
            kept,
        } = self;
        let KnownWords {
            analyzer,
            words,
            terms: term_of_word,
        } = languages.get(language, || KnownWords {
            analyzer: Analyzer::new(language, *version),
            words: TermTable::default(),
            terms: Vec::new(),
        });
        let mut position = 0;
        analyzer.words(text, |analyzer, word| {
            let number = words.number_in(text, word.range.clone());
            let term = match term_of_word.get(number as usize) {
                Some(term) => *term,
                None => {
                    let term = analyzer.term_of(&word);
                    let term = term.map_or(NO_TERM, |term| terms.number(term));
                    term_of_word.push(term);
                    term
                }
            };
            if term != NO_TERM {
                visit(Occurrence { term, position });
            }
            position += 1;
        });
        kept.count_lookups(position as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn occurrences(known: &mut KnownTerms, text: &str, language: Language) -> Vec<(String, u32)> {
        let mut found = Vec::new();
        known.visit(text, language, |it| found.push(it));
        let term = |it: &Occurrence| (known.term(it.term).to_owned(), it.position);
        found.iter().map(term).collect()
    }

    #[test]
    fn known_words_have_the_terms_of_the_analyzer() {
        let text = "The Cafés of RUNNING cafes: don't run, Häuser haus ^ \u{301} nul\0l'école É";
        let mut known = KnownTerms::new(TextVersion::V3);
        let languages = [Language::ENGLISH, Language::GERMAN, Language::NONE];
        for language in languages.into_iter().cycle().take(9) {
            let mut expected = Vec::new();
            let mut analyzer = Analyzer::new(language, TextVersion::V3);
            analyzer.terms(text, |it| expected.push((it.term.to_owned(), it.position)));
            assert_eq!(
                occurrences(&mut known, text, language),
                expected,
                "{language}"
            );
        }
    }

    #[test]
    fn numbers_stay_the_same_until_terms_are_forgotten() {
        let mut known = KnownTerms::new(TextVersion::V3);
        let mut first = Vec::new();
        known.visit("to bake a cake", Language::ENGLISH, |it| {
            first.push(it.term)
        });
        assert!(!known.forget_if_full());
        let mut second = Vec::new();
        known.visit("cakes baking", Language::ENGLISH, |it| second.push(it.term));
        second.reverse();
        assert_eq!((first, known.terms.len()), (second, 2));
        let many: Vec<String> = (0..40_000).map(|number| format!("w{number}")).collect();
        known.visit(&many.join(" "), Language::NONE, |_| {});
        assert!(known.forget_if_full() && !known.forget_if_full());
        assert_eq!(known.terms.len(), 0);
        let found = occurrences(&mut known, "A cake", Language::ENGLISH);
        assert_eq!(found, [("cake".to_owned(), 1)]);
        // A few long words are forgotten, too.
        known.visit(&"x".repeat(2 << 20), Language::NONE, |_| {});
        assert!(known.forget_if_full());
    }
}
