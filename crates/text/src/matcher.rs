//! What the index cannot know about a candidate: phrases, negations, case and diacritics.

use crate::analyzer::Sensitivity;
use crate::characters::{CaseFolding, characters};
use crate::language::{Grammar, Language, TextVersion};
use crate::query::Query;
use crate::score::Analyzers;
use crate::visible;

/// Checks stored documents against a query. Keeps its buffers: make one for all candidates of a search.
pub struct Matcher<'q> {
    query: &'q Query,
    analyzers: Analyzers,
    folded_value: String,
    phrases: Vec<Phrase<'q>>,
    negated_phrases: Vec<Phrase<'q>>,
}

/// A phrase in the forms in which values are compared with it.
struct Phrase<'q> {
    raw: &'q str,
    folded: String,
    folded_turkish: String,
}

impl<'q> Matcher<'q> {
    pub fn new(query: &'q Query) -> Matcher<'q> {
        let phrases =
            |texts: &'q [String]| texts.iter().map(|text| Phrase::new(text, query)).collect();
        Matcher {
            query,
            analyzers: Analyzers::new(query.version(), query.sensitivity()),
            folded_value: String::new(),
            phrases: phrases(query.phrases()),
            negated_phrases: phrases(query.negated_phrases()),
        }
    }

    /// Does a document with these string values match? The document must be a candidate, one that has a
    /// term of [`Query::terms`]; the values are those of its indexed fields, with their languages.
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

    fn find_terms(&mut self, text: &str, language: Language, has_positive_term: bool) -> Found {
        let (positive, negated) = (self.query.positive_terms(), self.query.negated_terms());
        let mut found = Found {
            positive: has_positive_term,
            negated: false,
        };
        if has_positive_term && negated.is_empty() {
            return found;
        }
        self.analyzers.of(language).terms(text, |token| {
            found.positive = found.positive || contains(positive, token.term);
            found.negated = found.negated || contains(negated, token.term);
        });
        found
    }

    fn has_negated_phrase(&mut self, text: &str, language: Language) -> bool {
        let form = Form::new(self.query, language);
        let (phrases, buffer) = (&self.negated_phrases, &mut self.folded_value);
        !phrases.is_empty() && {
            let value = form.of(text, buffer);
            phrases
                .iter()
                .any(|phrase| value.contains(phrase.in_form(form)))
        }
    }

    fn remove_found_phrases(&mut self, text: &str, language: Language, missing: &mut Vec<usize>) {
        if missing.is_empty() {
            return;
        }
        let form = Form::new(self.query, language);
        let value = form.of(text, &mut self.folded_value);
        let phrases = &self.phrases;
        missing.retain(|index| {
            phrases
                .get(*index)
                .is_none_or(|phrase| !value.contains(phrase.in_form(form)))
        });
    }
}

struct Found {
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
            Form::new(query, language).of(raw, &mut folded).to_string()
        };
        Phrase {
            raw,
            folded: form(Language::NONE),
            folded_turkish: form(Language::TURKISH),
        }
    }

    fn in_form(&self, form: Form) -> &str {
        match form {
            Form::Raw => self.raw,
            Form::Unicode {
                folding: Some(CaseFolding::Turkish),
                ..
            } => &self.folded_turkish,
            _ => &self.folded,
        }
    }
}

/// How a value and a phrase are made comparable.
#[derive(Clone, Copy)]
enum Form {
    /// Every byte counts.
    Raw,
    /// ASCII letters are lowered: versions 1 and 2.
    Ascii,
    Unicode {
        folding: Option<CaseFolding>,
        strips_diacritics: bool,
    },
}

impl Form {
    fn new(query: &Query, language: Language) -> Form {
        let Sensitivity { case, diacritics } = query.sensitivity();
        match query.version() {
            TextVersion::V1 | TextVersion::V2 if case => Form::Raw,
            TextVersion::V1 | TextVersion::V2 => Form::Ascii,
            TextVersion::V3 if case && diacritics => Form::Raw,
            TextVersion::V3 => {
                let is_turkish = language.grammar == Grammar::Turkish;
                let folding = if is_turkish {
                    CaseFolding::Turkish
                } else {
                    CaseFolding::Ordinary
                };
                Form::Unicode {
                    folding: (!case).then_some(folding),
                    strips_diacritics: !diacritics,
                }
            }
        }
    }

    fn of<'a>(self, text: &'a str, buffer: &'a mut String) -> &'a str {
        buffer.clear();
        match self {
            Form::Raw => return text,
            Form::Ascii => {
                buffer.extend(text.chars().map(|character| character.to_ascii_lowercase()))
            }
            Form::Unicode {
                folding,
                strips_diacritics,
            } => {
                let table = characters();
                let cased = text.chars().map(|character| match folding {
                    Some(folding) => table.fold(character, folding),
                    None => character,
                });
                if strips_diacritics {
                    buffer.extend(cased.filter_map(|character| table.strip(character)));
                } else {
                    buffer.extend(cased);
                }
            }
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
    fn phrases_stand_in_one_value_case_and_diacritics_folded() {
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
    fn negations_exclude() {
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
    fn case_and_diacritics_are_checked_on_the_text() {
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
    fn older_versions_fold_ascii_alone() {
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
    fn values_are_read_in_their_own_language() {
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
