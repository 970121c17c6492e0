//! The test of candidates for what the index does not store: phrases, negations, case and
//! diacritics.

use memchr::memmem::Finder;

use crate::analyzer::{Analyzer, Sensitivity};
use crate::by_language::ByLanguage;
use crate::characters::{CaseFolding, characters};
use crate::language::{Grammar, Language, TextVersion};
use crate::query::Query;
use crate::visible;

/// Tests the strings of documents against a query.
///
/// A matcher reuses its buffers. Create one for all candidates of a search.
///
/// ```
/// use windrow_text::{Language, Matcher, Query, Sensitivity, TextVersion};
///
/// let search = "\"coffee shop\" -tea";
/// let query = Query::parse(search, Language::ENGLISH, Sensitivity::NONE, TextVersion::V3);
/// let mut matcher = Matcher::new(&query);
/// assert!(matcher.matches([("Coffee Shopping", Language::ENGLISH)]));
/// assert!(!matcher.matches([("A coffee shop with tea", Language::ENGLISH)]));
/// ```
pub struct Matcher<'q> {
    query: &'q Query,
    analyzers: ByLanguage<Analyzer>,
    folded_value: String,
    phrases: Vec<Phrase<'q>>,
    negated_phrases: Vec<Phrase<'q>>,
}

/// A phrase in all normal forms in which values are compared with it.
struct Phrase<'q> {
    raw: Finder<'q>,
    folded: Finder<'static>,
    folded_turkish: Finder<'static>,
}

impl<'q> Matcher<'q> {
    /// Creates a matcher for candidates of `query`.
    pub fn new(query: &'q Query) -> Matcher<'q> {
        let phrases =
            |texts: &'q [String]| texts.iter().map(|text| Phrase::new(text, query)).collect();
        Matcher {
            query,
            analyzers: ByLanguage::default(),
            folded_value: String::new(),
            phrases: phrases(query.phrases()),
            negated_phrases: phrases(query.negated_phrases()),
        }
    }

    /// Returns `true` if a document with these string values matches the query. `values` are the
    /// strings of the indexed fields with their languages. The document must be a candidate: it
    /// must contain at least one of [`Query::terms`]. The matcher does not test this again.
    pub fn matches<'v>(&mut self, values: impl IntoIterator<Item = (&'v str, Language)>) -> bool {
        let mut has_positive_term = !self.query.sensitivity().any();
        let mut missing: Vec<usize> = (0..self.phrases.len()).collect();
        for (text, language) in values {
            let text = visible(text);
            let found = self.find_terms(text, language, has_positive_term);
            if found.negated || self.has_negated_phrase(text, language) {
                return false;
            }
            has_positive_term |= found.positive;
            self.remove_found_phrases(text, language, &mut missing);
        }
        has_positive_term && missing.is_empty()
    }

    /// Searches one value for a positive and for a negated term. Skips the analysis if the result
    /// is already known.
    fn find_terms(
        &mut self,
        text: &str,
        language: Language,
        has_positive_term: bool,
    ) -> TermMatches {
        let (positive, negated) = (self.query.positive_terms(), self.query.negated_terms());
        let mut found = TermMatches {
            positive: has_positive_term,
            negated: false,
        };
        if has_positive_term && negated.is_empty() {
            return found;
        }
        let query = self.query;
        let analyzer = self.analyzers.get(language, || {
            Analyzer::with_sensitivity(language, query.version(), query.sensitivity())
        });
        analyzer.terms(text, |token| {
            found.positive = found.positive || contains(positive, token.term);
            found.negated = found.negated || contains(negated, token.term);
        });
        found
    }

    fn has_negated_phrase(&mut self, text: &str, language: Language) -> bool {
        let form = NormalForm::new(self.query, language);
        let (phrases, buffer) = (&self.negated_phrases, &mut self.folded_value);
        !phrases.is_empty() && {
            let value = form.apply(text, buffer);
            phrases.iter().any(|phrase| phrase.is_in(value, form))
        }
    }

    /// Removes the phrases that the value contains from `missing`, which holds indexes into
    /// `phrases`.
    fn remove_found_phrases(&mut self, text: &str, language: Language, missing: &mut Vec<usize>) {
        if missing.is_empty() {
            return;
        }
        let form = NormalForm::new(self.query, language);
        let value = form.apply(text, &mut self.folded_value);
        let phrases = &self.phrases;
        missing.retain(|index| {
            let phrase = phrases.get(*index);
            phrase.is_none_or(|phrase| !phrase.is_in(value, form))
        });
    }
}

/// The result of searching a value for the terms of the query.
struct TermMatches {
    positive: bool,
    negated: bool,
}

fn contains(sorted: &[String], term: &str) -> bool {
    sorted
        .binary_search_by(|known| known.as_str().cmp(term))
        .is_ok()
}

impl<'q> Phrase<'q> {
    fn new(raw: &'q str, query: &Query) -> Phrase<'q> {
        let form = |language| {
            let mut folded = String::new();
            let folded = NormalForm::new(query, language).apply(raw, &mut folded);
            Finder::new(folded).into_owned()
        };
        Phrase {
            raw: Finder::new(raw),
            folded: form(Language::NONE),
            folded_turkish: form(Language::TURKISH),
        }
    }

    /// Returns `true` if a value in this form contains the phrase.
    fn is_in(&self, value: &str, form: NormalForm) -> bool {
        let finder = match form {
            NormalForm::Raw => &self.raw,
            NormalForm::Unicode {
                folding: Some(CaseFolding::Turkish),
                ..
            } => &self.folded_turkish,
            _ => &self.folded,
        };
        finder.find(value.as_bytes()).is_some()
    }
}

/// The normal form in which a value and a phrase are compared.
#[derive(Clone, Copy)]
enum NormalForm {
    /// The bytes are compared as they are.
    Raw,
    /// ASCII letters are in lower case (versions 1 and 2).
    Ascii,
    /// Folded by the tables of Unicode (version 3).
    Unicode {
        /// `None` if case is significant.
        folding: Option<CaseFolding>,
        strips_diacritics: bool,
    },
}

impl NormalForm {
    fn new(query: &Query, language: Language) -> NormalForm {
        let Sensitivity { case, diacritics } = query.sensitivity();
        match query.version() {
            TextVersion::V1 | TextVersion::V2 if case => NormalForm::Raw,
            TextVersion::V1 | TextVersion::V2 => NormalForm::Ascii,
            TextVersion::V3 if case && diacritics => NormalForm::Raw,
            TextVersion::V3 => {
                let is_turkish = language.grammar == Grammar::Turkish;
                let folding = if is_turkish {
                    CaseFolding::Turkish
                } else {
                    CaseFolding::Ordinary
                };
                NormalForm::Unicode {
                    folding: (!case).then_some(folding),
                    strips_diacritics: !diacritics,
                }
            }
        }
    }

    /// Returns the text in this form. Uses `buffer` unless the form is `Raw`.
    fn apply<'a>(self, text: &'a str, buffer: &'a mut String) -> &'a str {
        buffer.clear();
        match self {
            NormalForm::Raw => return text,
            NormalForm::Ascii => {
                buffer.push_str(text);
                buffer.make_ascii_lowercase();
            }
            NormalForm::Unicode {
                folding,
                strips_diacritics,
            } => characters().append_normalized(text, folding, strips_diacritics, buffer),
        }
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::Matcher;
    use crate::{Language, Query, Sensitivity, TextVersion};

    const PLAIN: (bool, bool) = (false, false);
    const CASE: (bool, bool) = (true, false);
    const DIACRITICS: (bool, bool) = (false, true);

    fn is_match(version: TextVersion, flags: (bool, bool), search: &str, values: &[&str]) -> bool {
        let sensitivity = Sensitivity {
            case: flags.0,
            diacritics: flags.1,
        };
        let query = Query::parse(search, Language::ENGLISH, sensitivity, version);
        let mut matcher = Matcher::new(&query);
        let found = matcher.matches(values.iter().map(|text| (*text, Language::ENGLISH)));
        let again = matcher.matches(values.iter().map(|text| (*text, Language::ENGLISH)));
        assert_eq!(found, again, "{search:?} in {values:?}");
        found
    }

    #[test]
    fn a_phrase_matches_within_one_value_without_case_and_diacritics() {
        let check = |search: &str, values: &[&str], expected: bool| {
            assert_eq!(
                is_match(TextVersion::V3, PLAIN, search, values),
                expected,
                "{search:?} in {values:?}"
            );
        };
        check("\"coffee shop\"", &["Coffee Shopping in the city"], true);
        check("\"Coffee SHOP\"", &["coffee shop"], true);
        check("\"coffee shop\"", &["coffee-shop"], false);
        check("\"coffee shop\"", &["iced coffee", "shop window"], false);
        check("\"iced\" \"window\"", &["iced coffee", "shop window"], true);
        check("\"iced\" \"tea\"", &["iced coffee", "shop window"], false);
        check("\"cafe creme\"", &["Un CAFÉ CRÈME"], true);
        check("\"café\"", &["cafe"], true);
        check("\"\" coffee", &["coffee"], true);
        check("coffee", &[], true);
        check("\"coffee\"", &[], false);
        check("\"shop\"", &["coffee\0shop"], false);
    }

    #[test]
    fn negated_terms_and_phrases_exclude_a_document() {
        let check = |search: &str, values: &[&str], expected: bool| {
            assert_eq!(
                is_match(TextVersion::V3, PLAIN, search, values),
                expected,
                "{search:?} in {values:?}"
            );
        };
        check("coffee -cakes", &["coffee and a Cake"], false);
        check("coffee -cakes", &["coffee", "a cake"], false);
        check("coffee -cakes", &["coffee and tea"], true);
        check("coffee -the", &["the coffee"], true);
        check("cafe -creme", &["café crème"], false);
        check("coffee -\"coffee shop\"", &["Coffee Shopping"], false);
        check("coffee -\"coffee shop\"", &["shop coffee"], true);
        check("coffee -\"the shop\"", &["coffee in the shop"], false);
    }

    #[test]
    fn sensitive_searches_compare_case_or_diacritics() {
        let check = |flags, search: &str, text: &str, expected: bool| {
            assert_eq!(
                is_match(TextVersion::V3, flags, search, &[text]),
                expected,
                "{search:?} in {text:?}"
            );
        };
        check(CASE, "Resume", "my Resumes", true);
        check(CASE, "Resume", "my resumes", false);
        check(CASE, "resume -John", "resume of john", true);
        check(CASE, "resume -John", "resume of John", false);
        check(CASE, "\"of John\"", "resume of john", false);
        check(CASE, "\"John\"", "Jöhn", true);
        check(DIACRITICS, "résumé", "RÉSUMÉ", true);
        check(DIACRITICS, "résumé", "resume", false);
        check(DIACRITICS, "\"résumé\"", "RÉSUMÉ", true);
        check(DIACRITICS, "\"résumé\"", "resume", false);
        check((true, true), "\"Résumé\"", "Résumé", true);
        check((true, true), "\"Résumé\"", "résumé", false);
    }

    #[test]
    fn versions_1_and_2_fold_ascii_only() {
        let check = |flags, search: &str, text: &str, expected: bool| {
            assert_eq!(
                is_match(TextVersion::V2, flags, search, &[text]),
                expected,
                "{search:?} in {text:?}"
            );
        };
        check(PLAIN, "\"CAFé\"", "café", true);
        check(PLAIN, "\"CAFÉ\"", "café", false);
        check(CASE, "\"Café\"", "café", false);
        check(DIACRITICS, "\"cafe\"", "café", false);
    }

    #[test]
    fn values_are_folded_by_their_own_language() {
        let query = Query::parse(
            "\"ISPARTA\"",
            Language::NONE,
            Sensitivity::NONE,
            TextVersion::V3,
        );
        let mut matcher = Matcher::new(&query);
        for (text, language, expected) in [
            ("isparta", Language::NONE, true),
            ("ısparta", Language::NONE, false),
            ("isparta", Language::TURKISH, false),
            ("ısparta", Language::TURKISH, true),
        ] {
            assert_eq!(
                matcher.matches([(text, language)]),
                expected,
                "{text:?} in {language}"
            );
        }
    }
}
