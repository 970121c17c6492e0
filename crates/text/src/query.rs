//! The search string of `$text`.
//!
//! Words are separated by space, newline, vertical tab, form feed and carriage return; a hyphen or a quote
//! ends one too. A hyphen after such a space negates what follows up to the next space. Quotes enclose a
//! phrase; its words join the terms. A phrase that is never closed is words only.

use crate::analyzer::{Analyzer, Sensitivity};
use crate::language::{Language, TextVersion};
use crate::visible;

/// A parsed search string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    language: Language,
    version: TextVersion,
    sensitivity: Sensitivity,
    terms: Vec<String>,
    positive_terms: Vec<String>,
    negated_terms: Vec<String>,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
}

impl Query {
    /// Parse a search string. Any string is one; it may ask for nothing.
    pub fn parse(
        search: &str,
        language: Language,
        sensitivity: Sensitivity,
        version: TextVersion,
    ) -> Query {
        let parts = Parts::parse(visible(search));
        let index_terms = |words: &str| terms_of(words, language, version, Sensitivity::NONE);
        let wanted_terms = |words: &str| terms_of(words, language, version, sensitivity);
        Query {
            terms: index_terms(&parts.words),
            positive_terms: wanted_terms(&parts.words),
            negated_terms: wanted_terms(&parts.negated_words),
            phrases: parts.phrases,
            negated_phrases: parts.negated_phrases,
            language,
            version,
            sensitivity,
        }
    }

    /// The terms to look up in the index, distinct, in order of their bytes. A document that has any of
    /// them is a candidate; its score is the sum of its stored scores, added in this order. Empty for a
    /// query that matches nothing, such as one of negations alone.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    /// The terms that a document must have one of, with the case and diacritics that the query asks for.
    pub fn positive_terms(&self) -> &[String] {
        &self.positive_terms
    }

    /// The terms that a document must not have, with the case and diacritics that the query asks for.
    pub fn negated_terms(&self) -> &[String] {
        &self.negated_terms
    }

    /// The phrases that must all stand in the document, each within one value.
    pub fn phrases(&self) -> &[String] {
        &self.phrases
    }

    /// The phrases that must not stand in any value.
    pub fn negated_phrases(&self) -> &[String] {
        &self.negated_phrases
    }

    /// Must candidates be checked on their stored text by a [`crate::Matcher`]?
    pub fn needs_text(&self) -> bool {
        self.sensitivity.any()
            || !self.negated_terms.is_empty()
            || !self.phrases.is_empty()
            || !self.negated_phrases.is_empty()
    }

    pub fn language(&self) -> Language {
        self.language
    }

    pub fn version(&self) -> TextVersion {
        self.version
    }

    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }
}

fn terms_of(
    words: &str,
    language: Language,
    version: TextVersion,
    sensitivity: Sensitivity,
) -> Vec<String> {
    let mut terms = Vec::new();
    let mut analyzer = Analyzer::with_sensitivity(language, version, sensitivity);
    analyzer.terms(words, |found| terms.push(found.term.to_string()));
    terms.sort_unstable();
    terms.dedup();
    terms
}

/// The search string taken apart, before its words become terms.
#[derive(Default)]
struct Parts {
    /// Words with a space after each.
    words: String,
    negated_words: String,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
}

/// Where the parser stands.
#[derive(Default)]
struct State {
    is_negated: bool,
    /// Where the text of the open phrase starts, in bytes.
    phrase_start: Option<usize>,
}

impl Parts {
    fn parse(search: &str) -> Parts {
        let mut parts = Parts::default();
        let mut state = State::default();
        let mut follows_space = true;
        let mut rest = search;
        while let Some(first) = rest.chars().next() {
            let offset = search.len() - rest.len();
            if follows_space && state.phrase_start.is_none() {
                state.is_negated = false;
            }
            let length = match first {
                '-' | '"' => 1,
                _ => rest.find(ends_word).unwrap_or(rest.len()),
            };
            let (token, after) =
                rest.split_at(length.max(if is_space(first) { 1 } else { length }));
            match first {
                '-' => state.is_negated |= follows_space && state.phrase_start.is_none(),
                '"' => parts.quote(search, offset, &mut state),
                _ => parts.word(token, &state),
            }
            rest = after.trim_start_matches(is_space);
            follows_space = rest.len() < after.len();
        }
        parts
    }

    fn word(&mut self, word: &str, state: &State) {
        let words = match (state.is_negated, state.phrase_start) {
            (false, _) => &mut self.words,
            (true, None) => &mut self.negated_words,
            // The words of a negated phrase are wanted neither way.
            (true, Some(_)) => return,
        };
        words.push_str(word);
        words.push(' ');
    }

    fn quote(&mut self, search: &str, offset: usize, state: &mut State) {
        let Some(start) = state.phrase_start.take() else {
            state.phrase_start = Some(offset + 1);
            return;
        };
        let phrase = search.get(start..offset).unwrap_or("").to_string();
        if state.is_negated {
            self.negated_phrases.push(phrase);
        } else {
            self.phrases.push(phrase);
        }
    }
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\n' | '\x0b' | '\x0c' | '\r')
}

fn ends_word(character: char) -> bool {
    is_space(character) || matches!(character, '-' | '"')
}
