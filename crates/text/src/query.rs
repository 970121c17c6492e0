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
        let mut rest = search.trim_start_matches(is_space);
        while let Some(first) = rest.chars().next() {
            let offset = search.len() - rest.len();
            let may_negate = follows_space && state.phrase_start.is_none();
            state.is_negated &= !may_negate;
            match first {
                '-' => state.is_negated |= may_negate,
                '"' => parts.quote(search, offset, &mut state),
                _ => {}
            }
            let (word, after) = rest.split_at(rest.find(ends_word).unwrap_or(rest.len()).max(1));
            if !ends_word(first) {
                parts.word(word, &state);
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
        let (before, _) = search.split_at(offset);
        let (_, phrase) = before.split_at(start);
        let phrase = phrase.to_string();
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

#[cfg(test)]
mod tests {
    use super::{Parts, Query};
    use crate::{Language, Sensitivity, TextVersion};

    #[test]
    fn a_search_string_has_words_negations_and_phrases() {
        // Words, negated words, phrases, negated phrases.
        let check =
            |search: &str, words: &str, negated: &str, phrases: &[&str], without: &[&str]| {
                let parts = Parts::parse(search);
                assert_eq!(parts.words.trim_end(), words, "words of {search:?}");
                assert_eq!(
                    parts.negated_words.trim_end(),
                    negated,
                    "negated words of {search:?}"
                );
                assert_eq!(parts.phrases, phrases, "phrases of {search:?}");
                assert_eq!(
                    parts.negated_phrases, without,
                    "negated phrases of {search:?}"
                );
            };
        check("", "", "", &[], &[]);
        check("  ", "", "", &[], &[]);
        check("coffee", "coffee", "", &[], &[]);
        check("  coffee \r\n shop ", "coffee shop", "", &[], &[]);
        check("coffee\tshop", "coffee\tshop", "", &[], &[]);
        check("coffee\x0b-shop\x0c-tea", "coffee", "shop tea", &[], &[]);
        // A hyphen negates behind a space only, and what follows it at once.
        check("coffee -shop", "coffee", "shop", &[], &[]);
        check(" -shop", "", "shop", &[], &[]);
        check("-shop", "", "shop", &[], &[]);
        check("coffee --shop", "coffee", "shop", &[], &[]);
        check("- coffee", "coffee", "", &[], &[]);
        check("coffee -", "coffee", "", &[], &[]);
        check("tea-time", "tea time", "", &[], &[]);
        check("tea - time", "tea time", "", &[], &[]);
        check("coffee -tea-time cake", "coffee cake", "tea time", &[], &[]);
        check("coffee\t-shop", "coffee\t shop", "", &[], &[]);
        check("coffee \u{2010}shop", "coffee \u{2010}shop", "", &[], &[]);
        // Quotes enclose phrases, whose words are terms.
        check("\"coffee shop\"", "coffee shop", "", &["coffee shop"], &[]);
        check(
            "\"coffee shop\" cake",
            "coffee shop cake",
            "",
            &["coffee shop"],
            &[],
        );
        check("\"coffee\"cake", "coffee cake", "", &["coffee"], &[]);
        check("cake\"coffee\"", "cake coffee", "", &["coffee"], &[]);
        check("\"a\"\"b\"", "a b", "", &["a", "b"], &[]);
        check("\" coffee \"", "coffee", "", &[" coffee "], &[]);
        check("\"\" coffee", "coffee", "", &[""], &[]);
        check(
            "\"coffee  shop\"",
            "coffee shop",
            "",
            &["coffee  shop"],
            &[],
        );
        check(
            "\"coffee -shop\"",
            "coffee shop",
            "",
            &["coffee -shop"],
            &[],
        );
        check("\"coffee\"-cakes", "coffee cakes", "", &["coffee"], &[]);
        check("\"é\" -ü", "é", "ü", &["é"], &[]);
        // A negated phrase ends its negation at the next space.
        check(
            "coffee -\"coffee shop\" tea",
            "coffee tea",
            "",
            &[],
            &["coffee shop"],
        );
        check(
            "tea -\"iced\"\"window\"",
            "tea",
            "",
            &[],
            &["iced", "window"],
        );
        check(
            "tea -\"iced\"window cake",
            "tea cake",
            "window",
            &[],
            &["iced"],
        );
        check("-tea\"iced\"", "", "tea", &[], &["iced"]);
        // A phrase that is not closed is words, a negated one nothing.
        check("\"coffee shop", "coffee shop", "", &[], &[]);
        check("coffee -\"shop", "coffee", "", &[], &[]);
        check("\"coffee\" \"shop", "coffee shop", "", &["coffee"], &[]);
        check("\"", "", "", &[], &[]);
    }

    #[test]
    fn terms_are_distinct_sorted_and_stemmed() {
        let check = |search: &str, terms: &[&str], negated: &[&str], needs_text: bool| {
            let query = Query::parse(
                search,
                Language::ENGLISH,
                Sensitivity::NONE,
                TextVersion::V3,
            );
            assert_eq!(query.terms(), terms, "terms of {search:?}");
            assert_eq!(query.positive_terms(), terms, "terms of {search:?}");
            assert_eq!(
                query.negated_terms(),
                negated,
                "negated terms of {search:?}"
            );
            assert_eq!(query.needs_text(), needs_text, "{search:?}");
        };
        check("tea cakes cake Cakes the", &["cake", "tea"], &[], false);
        check("coffee -cakes -the", &["coffe"], &["cake"], true);
        check("\"Running a race\"", &["race", "run"], &[], true);
        check("-coffee", &[], &["coffe"], true);
        check("coffee -\"shop window\"", &["coffe"], &[], true);
        check("café\0cake", &["cafe"], &[], false);
        check("the of and", &[], &[], false);
    }

    #[test]
    fn sensitive_queries_look_up_folded_terms_and_check_exact_ones() {
        let check = |case, diacritics, terms: &[&str], positive: &[&str]| {
            let sensitivity = Sensitivity { case, diacritics };
            let query = Query::parse("Résumés", Language::ENGLISH, sensitivity, TextVersion::V3);
            assert_eq!(query.terms(), terms, "{sensitivity:?}");
            assert_eq!(query.positive_terms(), positive, "{sensitivity:?}");
            assert_eq!(query.needs_text(), case || diacritics, "{sensitivity:?}");
        };
        check(false, false, &["resume"], &["resume"]);
        check(true, false, &["resume"], &["Resume"]);
        check(false, true, &["resume"], &["résumé"]);
        check(true, true, &["resume"], &["Résumé"]);
    }
}
