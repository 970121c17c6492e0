//! The search string of `$text`.
//!
//! - Spaces, newlines, vertical tabs, form feeds and carriage returns separate words. A hyphen and
//!   a quotation mark also end a word.
//! - A hyphen at the start or after a space negates the text up to the next space.
//! - Quotation marks enclose a phrase. The words of a phrase are also terms, unless the phrase is
//!   negated.
//! - If the closing quotation mark is missing, there is no phrase, only words.
//!
//! Sources: <https://www.mongodb.com/docs/manual/reference/operator/query/text/> and recorded
//! answers of a MongoDB server.

use crate::analyzer::{Analyzer, Sensitivity};
use crate::language::{Language, TextVersion};
use crate::visible;

/// A parsed search string.
///
/// ```
/// use windrow_text::{Language, Query, Sensitivity, TextVersion};
///
/// let search = "\"coffee shop\" cakes -tea";
/// let query = Query::parse(search, Language::ENGLISH, Sensitivity::NONE, TextVersion::V3);
/// assert_eq!(query.terms(), ["cake", "coffe", "shop"]);
/// assert_eq!(query.phrases(), ["coffee shop"]);
/// assert_eq!(query.negated_terms(), ["tea"]);
/// ```
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
    /// Parses a search string. Every string is valid. A string without terms matches nothing.
    pub fn parse(
        search: &str,
        language: Language,
        sensitivity: Sensitivity,
        version: TextVersion,
    ) -> Query {
        let parts = Parts::parse(visible(search));
        let index_terms = |words: &str| distinct_terms(words, language, version, Sensitivity::NONE);
        let wanted_terms = |words: &str| distinct_terms(words, language, version, sensitivity);
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

    /// Returns the terms to look up in the index, sorted by their bytes and distinct.
    ///
    /// A document that contains one of them is a candidate. Its score is the sum of its stored
    /// scores of these terms, added in this order. Another order would change the last bits of the
    /// sum. The slice is empty if the query matches nothing, for example if it has negated terms
    /// only.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }

    /// Returns the terms of which a document must contain one. They keep their case or their
    /// diacritics if the query is sensitive to them.
    pub fn positive_terms(&self) -> &[String] {
        &self.positive_terms
    }

    /// Returns the terms that a document must not contain. They keep their case or their diacritics
    /// if the query is sensitive to them.
    pub fn negated_terms(&self) -> &[String] {
        &self.negated_terms
    }

    /// Returns the phrases that a document must contain, each within one string value.
    pub fn phrases(&self) -> &[String] {
        &self.phrases
    }

    /// Returns the phrases that no string value of a document may contain.
    pub fn negated_phrases(&self) -> &[String] {
        &self.negated_phrases
    }

    /// Returns `true` if the terms of a document do not suffice to decide a match. Each candidate
    /// must then be tested with a [`Matcher`](crate::Matcher).
    pub fn needs_text(&self) -> bool {
        self.sensitivity.any() || !self.phrases.is_empty() || !self.negated_phrases.is_empty()
    }

    /// Returns the language of the search string.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Returns the index version whose rules the query follows.
    pub fn version(&self) -> TextVersion {
        self.version
    }

    /// Returns the sensitivity of the search.
    pub fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }
}

/// Returns the distinct terms of `words`, sorted by their bytes.
fn distinct_terms(
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

/// The parts of a search string before analysis.
#[derive(Default)]
struct Parts {
    /// The words, each followed by a space.
    words: String,
    negated_words: String,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
}

/// The state of the parser.
#[derive(Default)]
struct State {
    is_negated: bool,
    /// The byte position at which the text of the open phrase starts.
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
            // The words of a negated phrase are neither terms nor negated terms.
            (true, Some(_)) => return,
        };
        words.push_str(word);
        words.push(' ');
    }

    /// Opens a phrase, or closes the open one. `offset` is the byte position of the quotation mark.
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

    /// Checks the words, negated words, phrases and negated phrases of a search string.
    fn check(search: &str, words: &str, negated: &str, phrases: &[&str], without: &[&str]) {
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
    }

    #[test]
    fn words_and_negations_are_parsed() {
        check("", "", "", &[], &[]);
        check("  ", "", "", &[], &[]);
        check("coffee", "coffee", "", &[], &[]);
        check("  coffee \r\n shop ", "coffee shop", "", &[], &[]);
        check("coffee\tshop", "coffee\tshop", "", &[], &[]);
        check("coffee\x0b-shop\x0c-tea", "coffee", "shop tea", &[], &[]);
        // A hyphen negates only at the start or after a space, and only if no space follows it.
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
    }

    #[test]
    fn phrases_are_parsed() {
        // The words of a phrase are terms.
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
    }

    #[test]
    fn negated_and_open_phrases_are_parsed() {
        // The negation ends at the first space after a negated phrase.
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
        // Without the closing quotation mark only words remain; if they are negated, nothing
        // remains.
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
        check("coffee -cakes -the", &["coffe"], &["cake"], false);
        check("\"Running a race\"", &["race", "run"], &[], true);
        check("-coffee", &[], &["coffe"], false);
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
