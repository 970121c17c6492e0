//! The entries of a text index: the terms of a document's strings with their scores
//! (<https://www.mongodb.com/docs/manual/core/indexes/index-types/index-text/>).

use windrow_document::path::Path;
use windrow_document::{Array, Document, ValueRef, key};
use windrow_mql::Error;
use windrow_postings::Posting;
use windrow_postings::payload::put_positions;
use windrow_text::{Language, TextVersion, term_key};

use crate::definition::{Definition, KeyField, KeyKind, TextDefinition};
use crate::follow::{State, follow};
use crate::output::{Scratch, TextScratch};
use crate::sink::{EntrySink, KeyNumber};

/// The error code if the language of a document is not a string.
const LANGUAGE_NO_STRING: i32 = 17261;
/// The error code if the index does not support the language of a document.
const LANGUAGE_UNSUPPORTED: i32 = 17262;
/// MongoDB's `CannotBuildIndexKeys`.
const CANNOT_BUILD_KEYS: i32 = 201;

impl Definition {
    /// Emits the entries of a document. Fails with code 17261 or 17262 if a language is not valid,
    /// and with code 201 if a field before or after the text fields contains an array.
    pub(crate) fn text_entries(
        &self,
        text: &TextDefinition,
        document: Document<'_>,
        scratch: &mut Scratch,
        sink: &mut dyn EntrySink,
    ) -> Result<(), Error> {
        scratch.text.take_if(|it| it.version != text.version);
        // The buffers are large, so they are not moved for each document.
        let text_scratch = scratch
            .text
            .get_or_insert_with(|| TextScratch::new(text.version));
        self.text_entries_with(text, document, text_scratch, sink)
    }

    fn text_entries_with(
        &self,
        text: &TextDefinition,
        document: Document<'_>,
        scratch: &mut TextScratch,
        sink: &mut dyn EntrySink,
    ) -> Result<(), Error> {
        let TextScratch {
            terms,
            path,
            key,
            suffix,
            term,
            payload,
            positions,
            ..
        } = scratch;
        terms.clear();
        path.clear();
        let mut collect = |value: &str, weight, language| terms.add(value, weight, language);
        text.visit(document, path, text.default_language, &mut collect)?;
        key.clear();
        suffix.clear();
        self.around_term(document, key, suffix)?;
        // A key that has more than the term has no number.
        let is_term = key.is_empty() && suffix.is_empty() && !self.unique;
        let generation = terms.generation().filter(|_| is_term);
        let prefix_length = key.len();
        for found in terms.postings() {
            positions.clear();
            if text.positions {
                put_positions(positions, found.positions);
            }
            let posting = Posting {
                frequency: found.frequency,
                length: found.length,
                score: (!found.score_follows).then_some(found.score),
                positions,
            };
            payload.clear();
            posting.write(payload);
            let number = generation.map(|generation| KeyNumber {
                generation,
                number: found.number,
            });
            if number.is_some_and(|number| sink.known_entry(number, payload)) {
                continue;
            }
            key.truncate(prefix_length);
            key::append_string_bytes(key, term_key(found.term, term));
            // MongoDB enforces the uniqueness of term and score together, so the key contains the
            // score.
            if self.unique {
                key::append(key, ValueRef::Double(found.score));
            }
            key.extend_from_slice(suffix);
            match number {
                Some(number) => sink.numbered_entry(number, key, payload),
                None => sink.entry(key, payload),
            }
        }
        Ok(())
    }

    /// Appends the key bytes of the fields before and after the term.
    fn around_term(
        &self,
        document: Document<'_>,
        before: &mut Vec<u8>,
        after: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut passed_term = false;
        for field in &self.fields {
            match field.kind {
                KeyKind::Text => passed_term = true,
                kind => {
                    let target = if passed_term {
                        &mut *after
                    } else {
                        &mut *before
                    };
                    let value = self.plain_value(field, document)?;
                    key::append_with_direction(target, value, kind == KeyKind::Descending);
                }
            }
        }
        Ok(())
    }

    /// Returns the value of a field before or after the term, or null if it is missing. Fails with
    /// code 201 if it is an array.
    fn plain_value<'d>(
        &self,
        field: &KeyField,
        document: Document<'d>,
    ) -> Result<ValueRef<'d>, Error> {
        match follow(State::At(ValueRef::Document(document), 0), &field.path)? {
            State::Missing => Ok(ValueRef::Null),
            State::Done(value) if value.as_array().is_none() => Ok(value),
            _ => Err(Error::new(
                CANNOT_BUILD_KEYS,
                format!(
                    "field '{}' of text index '{}' contains an array in the document",
                    field.path, self.name
                ),
            )),
        }
    }
}

/// Returns the score that a posting stands for.
///
/// ```
/// use windrow_index::score_of;
/// use windrow_postings::Posting;
///
/// let posting = Posting { frequency: 1, length: 2, score: None, positions: &[] };
/// assert_eq!(score_of(&posting), 0.75);
/// ```
pub fn score_of(posting: &Posting<'_>) -> f64 {
    let score = posting.score;
    score.unwrap_or_else(|| windrow_text::score(posting.frequency, posting.length))
}

/// The relation of the indexed fields to the path of a value.
#[derive(Clone, Copy, Default)]
struct Reach {
    /// The weight, if the path is an indexed field.
    weight: Option<f64>,
    /// `true` if an indexed field is below the path.
    within: bool,
}

/// The weight of a string that only `$**` covers. MongoDB shows the weight that the specification
/// gives to `$**`, but scores such strings with this weight.
const UNNAMED_WEIGHT: f64 = 1.0;

impl TextDefinition {
    /// Calls `visit` with each string of a document that the index covers, its weight and its
    /// language.
    ///
    /// Fails with code 17261 if the language of a document or subdocument is not a string, and with
    /// code 17262 if the index does not support it.
    pub fn strings<'d>(
        &self,
        document: Document<'d>,
        visit: &mut dyn FnMut(&'d str, f64, Language),
    ) -> Result<(), Error> {
        self.visit(document, &mut String::new(), self.default_language, visit)
    }

    fn is_wildcard(&self) -> bool {
        self.wildcard_weight.is_some()
    }

    /// Visits the strings by the rules of version 1. The path of a field leads through documents,
    /// and by numbers into arrays, to a string or an array of strings. The language of the document
    /// applies to all its strings; languages in subdocuments are ignored.
    fn visit_fields<'d>(
        &self,
        document: Document<'d>,
        visit: &mut dyn FnMut(&'d str, f64, Language),
    ) -> Result<(), Error> {
        let language = self.language_of(document)?.unwrap_or(self.default_language);
        for field in &self.fields {
            let found = field.path.components().iter().try_fold(
                ValueRef::Document(document),
                |value, component| match value {
                    ValueRef::Document(inner) => inner.get(component.name()),
                    ValueRef::Array(array) => array.get(component.index()?),
                    _ => None,
                },
            );
            match found {
                Some(ValueRef::String(text)) => visit(text, field.weight, language),
                Some(ValueRef::Array(array)) => array
                    .iter()
                    .filter_map(|element| element.as_str())
                    .for_each(|text| visit(text, field.weight, language)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Visits the strings of a document whose path is `path`. `inherited` is the language of the
    /// outer document.
    fn visit<'d>(
        &self,
        document: Document<'d>,
        path: &mut String,
        inherited: Language,
        visit: &mut dyn FnMut(&'d str, f64, Language),
    ) -> Result<(), Error> {
        let is_first = self.version == TextVersion::V1;
        if is_first && !self.is_wildcard() {
            return self.visit_fields(document, visit);
        }
        let own = if is_first && !path.is_empty() {
            None
        } else {
            self.language_of(document)?
        };
        let language = own.unwrap_or(inherited);
        for (name, value) in document {
            if self.is_wildcard() && name == self.language_override {
                continue;
            }
            let length = path.len();
            if length > 0 {
                path.push('.');
            }
            path.push_str(name);
            let reach = self.reach(path);
            match value {
                ValueRef::Array(array) => self.visit_array(array, path, reach, language, visit)?,
                value => self.visit_value(value, path, reach, language, visit)?,
            }
            path.truncate(length);
        }
        Ok(())
    }

    /// Visits the strings of an array. Arrays within arrays are visited only in an index with
    /// `$**`.
    fn visit_array<'d>(
        &self,
        array: Array<'d>,
        path: &mut String,
        reach: Reach,
        language: Language,
        visit: &mut dyn FnMut(&'d str, f64, Language),
    ) -> Result<(), Error> {
        for element in array {
            match element {
                ValueRef::Array(inner) if self.is_wildcard() => {
                    self.visit_array(inner, path, reach, language, visit)?;
                }
                ValueRef::Array(_) => {}
                element => self.visit_value(element, path, reach, language, visit)?,
            }
        }
        Ok(())
    }

    fn visit_value<'d>(
        &self,
        value: ValueRef<'d>,
        path: &mut String,
        reach: Reach,
        language: Language,
        visit: &mut dyn FnMut(&'d str, f64, Language),
    ) -> Result<(), Error> {
        match value {
            ValueRef::String(text) => {
                let unnamed = self.is_wildcard().then_some(UNNAMED_WEIGHT);
                if let Some(weight) = reach.weight.or(unnamed) {
                    visit(text, weight, language);
                }
            }
            ValueRef::Document(inner) if self.is_wildcard() || reach.within => {
                self.visit(inner, path, language, visit)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the relation of the indexed fields to a path.
    fn reach(&self, path: &str) -> Reach {
        let mut reach = Reach::default();
        for field in &self.fields {
            match relation(&field.path, path) {
                Some(true) => reach.weight = Some(field.weight),
                Some(false) => reach.within = true,
                None => {}
            }
        }
        reach
    }

    /// Returns the language that the document itself names. In version 1 an empty string and values
    /// of other types name no language, so the default language applies.
    fn language_of(&self, document: Document<'_>) -> Result<Option<Language>, Error> {
        let is_first = self.version == TextVersion::V1;
        match document.get(&self.language_override) {
            None => Ok(None),
            Some(ValueRef::String("")) if is_first => Ok(None),
            Some(ValueRef::String(name)) => {
                Language::parse(name, self.version).map(Some).map_err(|_| {
                    Error::new(
                        LANGUAGE_UNSUPPORTED,
                        format!("language override unsupported: {name}"),
                    )
                })
            }
            Some(_) if is_first => Ok(None),
            Some(other) => Err(Error::new(
                LANGUAGE_NO_STRING,
                format!(
                    "found language override field in document with non-string type: {}",
                    other.type_of().name()
                ),
            )),
        }
    }
}

/// Returns `Some(true)` if the path of the field equals `path`, `Some(false)` if it is below
/// `path`, and `None` otherwise.
fn relation(field: &Path, path: &str) -> Option<bool> {
    let mut parts = path.split('.');
    for component in field.components() {
        match parts.next() {
            Some(part) if part == component.name() => {}
            Some(_) => return None,
            None => return Some(false),
        }
    }
    parts.next().is_none().then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, doc};

    fn entries(
        specification: DocumentBuf,
        document: DocumentBuf,
    ) -> Result<Vec<(Vec<u8>, f64)>, i32> {
        let definition = Definition::parse(specification.as_document()).unwrap();
        let mut found = Vec::new();
        definition
            .entries(
                document.as_document(),
                &mut Scratch::default(),
                &mut |key, payload| {
                    let posting = Posting::read(payload).unwrap();
                    found.push((key.to_vec(), score_of(&posting)));
                },
            )
            .map_err(|error| error.code)?;
        Ok(found)
    }

    fn check(specification: DocumentBuf, document: DocumentBuf, expected: &[(&str, f64)]) {
        let expected = expected.iter().map(|(term, score)| {
            let mut key = Vec::new();
            key::append_string_bytes(&mut key, term.as_bytes());
            (key, *score)
        });
        assert_eq!(entries(specification, document), Ok(expected.collect()));
    }

    fn text(fields: DocumentBuf) -> DocumentBuf {
        doc! { "key": fields, "name": "t" }
    }

    #[test]
    fn entries_have_the_scores_of_the_text_crate() {
        let spec = text(doc! { "t": "text" });
        check(
            spec,
            doc! { "t": "Baking a cake" },
            &[("bake", 0.75), ("cake", 0.75)],
        );
    }

    #[test]
    fn scores_of_fields_arrays_and_wildcards_are_summed() {
        let spec = || text(doc! { "a.b": "text" });
        check(
            spec(),
            doc! { "a": [{ "b": ["fox"] }, { "b": "fox", "c": "owl" }] },
            &[("fox", 2.2)],
        );
        check(spec(), doc! { "a": { "b": { "c": "fox" } } }, &[]);
        let all = || text(doc! { "$**": "text" });
        check(
            all(),
            doc! { "a": [["owl"], "fox"], "b": { "c": "elk" } },
            &[("owl", 1.1), ("fox", 1.1), ("elk", 1.1)],
        );
    }

    #[test]
    fn languages_are_inherited_and_checked() {
        let spec = || text(doc! { "a.b": "text" });
        let german = doc! { "language": "german", "a": { "b": "der" } };
        check(spec(), german, &[]);
        let inner = doc! { "a": { "language": "none", "b": "the" } };
        check(spec(), inner, &[("the", 1.1)]);
        assert_eq!(
            entries(spec(), doc! { "language": 5 }),
            Err(LANGUAGE_NO_STRING)
        );
        assert_eq!(
            entries(spec(), doc! { "language": "klingon" }),
            Err(LANGUAGE_UNSUPPORTED)
        );
    }

    /// In version 1 an empty language was treated as an unknown language, so the stop words and the
    /// stemmer of the default language did not apply.
    #[test]
    fn in_version_1_an_empty_language_means_the_default_language() {
        let spec = |version: i32| {
            let mut spec = text(doc! { "t": "text" });
            spec.push("textIndexVersion", ValueRef::Int32(version));
            spec
        };
        let document = || doc! { "language": "", "t": "the cakes" };
        check(spec(1), document(), &[("cake", 1.0)]);
        assert_eq!(entries(spec(2), document()), Err(LANGUAGE_UNSUPPORTED));
        assert_eq!(entries(spec(3), document()), Err(LANGUAGE_UNSUPPORTED));
    }

    #[test]
    fn prefix_and_suffix_fields_surround_the_term() {
        let spec = || text(doc! { "p": 1, "t": "text", "s": (-1) });
        let mut key = Vec::new();
        key::append(&mut key, ValueRef::Int32(7));
        key::append_string_bytes(&mut key, b"fox");
        key::append_with_direction(&mut key, ValueRef::Null, true);
        assert_eq!(
            entries(spec(), doc! { "p": 7, "t": "fox" }),
            Ok(vec![(key, 1.1)])
        );
        assert_eq!(
            entries(spec(), doc! { "p": [7], "t": "fox" }),
            Err(CANNOT_BUILD_KEYS)
        );
    }
}
