//! The entries of a document.
//!
//! 1. The path of each field is followed to its end or to an array.
//! 2. An array is expanded once for all fields that meet it, so the values of one element stay
//!    together in an entry. Fields that meet different arrays give the Cartesian product of their
//!    values.
//! 3. Each combination of values is an entry.
//!
//! A missing value is indexed as null, and an empty array at the end of a path as undefined. A
//! numeric component of a path selects the element at that position. At the end of the path that
//! element is not expanded (see `follow`).

use windrow_document::path::Path;
use windrow_document::{Array, Document, ValueRef, key};
use windrow_mql::Error;

use crate::definition::{Definition, KeyField, KeyKind};
use crate::follow::{State, enter_element, follow};
use crate::output::{ENTRIES_PER_DOCUMENT_MAX, Scratch};
use crate::sink::{Emit, EntrySink, Unnumbered};

impl Definition {
    /// Calls `emit` with each entry of the document: first the keys, among which may be duplicates,
    /// then the marks of the paths that met arrays.
    ///
    /// Fails with code 2 if there are more than [`ENTRIES_PER_DOCUMENT_MAX`] entries, and with
    /// MongoDB's code if the index does not support a value, for example an array in a hashed
    /// index. The entries that were emitted before a failure are incomplete and must be discarded.
    pub fn entries(
        &self,
        document: Document<'_>,
        scratch: &mut Scratch,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        self.keys(document, scratch, emit)?;
        scratch.marks.each(|mark| emit(mark, &[]));
        Ok(())
    }

    /// As [`Definition::entries`], for a receiver that uses the numbers of keys.
    pub fn numbered_entries(
        &self,
        document: Document<'_>,
        scratch: &mut Scratch,
        sink: &mut dyn EntrySink,
    ) -> Result<(), Error> {
        if !self.has_terms() {
            return self.entries(document, scratch, &mut |key, payload| {
                sink.entry(key, payload)
            });
        }
        scratch.marks.clear();
        if self.excludes(document)? {
            return Ok(());
        }
        if let Some(search) = &self.search {
            search.entries(document, &mut scratch.search, sink);
        }
        if let Some(text) = &self.text {
            self.text_entries(text, document, scratch, sink)?;
        }
        Ok(())
    }

    fn has_terms(&self) -> bool {
        self.is_search() || self.is_text()
    }

    /// Returns `true` if the filter of a partial index does not match the document.
    fn excludes(&self, document: Document<'_>) -> Result<bool, Error> {
        match &self.partial {
            Some(filter) => Ok(!filter.matches(document)?),
            None => Ok(false),
        }
    }

    /// As [`Definition::entries`], but without the marks.
    pub fn keys(
        &self,
        document: Document<'_>,
        scratch: &mut Scratch,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        if self.has_terms() {
            return self.numbered_entries(document, scratch, &mut Unnumbered(emit));
        }
        scratch.marks.clear();
        if self.excludes(document)? {
            return Ok(());
        }
        if let Some(wildcard) = &self.wildcard {
            return self.wildcard_entries(wildcard, document, scratch, emit);
        }
        if let Some(geo) = &self.geo {
            return self.geo_entries(geo, document, scratch, emit);
        }
        if self.is_hashed() {
            return self.hashed_entries(document, scratch, emit);
        }
        if let [field] = self.fields.as_slice()
            && let [part] = field.path.components()
        {
            let value = document.get(part.name());
            return self.single_field(field, value, scratch, emit);
        }
        let mut values = [None; SCALARS_MAX];
        if self.scalars(document, &mut values) {
            self.compound(&values, scratch, emit);
            return Ok(());
        }
        let start = State::At(ValueRef::Document(document), 0);
        let mut states = vec![start; self.fields.len()];
        let mut expansion = Expansion {
            definition: self,
            scratch,
            emit,
            count: 0,
        };
        expansion.expand(&mut states)
    }

    /// Emits the entries of an index on one field without dots, which is the most common index.
    fn single_field(
        &self,
        field: &KeyField,
        value: Option<ValueRef<'_>>,
        scratch: &mut Scratch,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        let descending = field.kind == KeyKind::Descending;
        let Scratch {
            key, shape, marks, ..
        } = scratch;
        let mut one = |value: ValueRef<'_>, emit: &mut Emit<'_>| {
            key.clear();
            shape.clear();
            self.append_part(key, shape, 0, value, descending);
            emit(key, shape);
        };
        match value {
            None if self.sparse => {}
            None => one(ValueRef::Null, emit),
            Some(ValueRef::Array(array)) => {
                marks.record(0, 0);
                if array.is_empty() {
                    one(ValueRef::Undefined, emit);
                }
                self.array_entries(array, descending, key, shape, emit)?;
            }
            Some(value) => one(value, emit),
        }
        Ok(())
    }

    /// Emits an entry for each element of an array.
    fn array_entries(
        &self,
        array: Array<'_>,
        descending: bool,
        key: &mut Vec<u8>,
        shape: &mut Vec<u8>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        let takes_strings = !descending && self.collation.is_none();
        let mut elements = array.as_document().elements();
        let mut count = 0;
        while let Some(element) = elements.next_raw() {
            count += 1;
            if count > ENTRIES_PER_DOCUMENT_MAX {
                return Err(self.too_many(array.count()));
            }
            key.clear();
            shape.clear();
            // Most long arrays contain strings. The key is built from the bytes without decoding
            // the value.
            match element.string_bytes().filter(|_| takes_strings) {
                Some(text) => key::append_string_bytes(key, text),
                None => {
                    // Only a document of a damaged file has an element without a value. The entries
                    // end here, as every other iteration over the document does.
                    let Some(value) = element.value() else { break };
                    self.append_part(key, shape, 0, value, descending);
                }
            }
            emit(key, shape);
        }
        Ok(())
    }
}

/// The maximum number of fields that [`Definition::scalars`] finds.
const SCALARS_MAX: usize = 8;

impl Definition {
    /// Finds the values of all fields in one pass over the document. This is a fast path: it
    /// returns `false` if there are more than [`SCALARS_MAX`] fields, a path has dots, or a value
    /// is an array.
    fn scalars<'d>(
        &self,
        document: Document<'d>,
        values: &mut [Option<ValueRef<'d>>; SCALARS_MAX],
    ) -> bool {
        let mut names = [&b""[..]; SCALARS_MAX];
        for (number, field) in self.fields.iter().enumerate() {
            match (field.path.components(), names.get_mut(number)) {
                ([part], Some(name)) => *name = part.name().as_bytes(),
                _ => return false,
            }
        }
        let mut missing = self.fields.len();
        let mut elements = document.elements();
        while missing > 0
            && let Some(element) = elements.next_raw()
        {
            for (name, value) in names.iter().zip(values.iter_mut()).take(self.fields.len()) {
                if *name == element.name && value.is_none() {
                    *value = element.value();
                    missing -= 1;
                    if matches!(value, None | Some(ValueRef::Array(_))) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Emits the only entry of a document with these values, or none if the index is sparse and all
    /// values are missing.
    fn compound(
        &self,
        values: &[Option<ValueRef<'_>>],
        scratch: &mut Scratch,
        emit: &mut Emit<'_>,
    ) {
        if self.sparse && values.iter().all(Option::is_none) {
            return;
        }
        self.make_key(scratch, values.iter().copied());
        emit(&scratch.key, &scratch.shape);
    }

    /// Builds the key and the shape from one value per field. A missing value is null.
    fn make_key<'d>(
        &self,
        Scratch { key, shape, .. }: &mut Scratch,
        values: impl Iterator<Item = Option<ValueRef<'d>>>,
    ) {
        key.clear();
        shape.clear();
        let mut ordinal = 0;
        for (value, field) in values.zip(&self.fields) {
            let value = value.unwrap_or(ValueRef::Null);
            let descending = field.kind == KeyKind::Descending;
            ordinal = self.append_part(key, shape, ordinal, value, descending);
        }
    }
}

/// The expansion of arrays in the general case.
struct Expansion<'x, 'e> {
    definition: &'x Definition,
    scratch: &'x mut Scratch,
    emit: &'x mut Emit<'e>,
    /// The number of entries so far.
    count: usize,
}

impl Expansion<'_, '_> {
    /// Follows all paths and expands the next array. Emits an entry if there is none.
    fn expand(&mut self, states: &mut [State<'_>]) -> Result<(), Error> {
        let fields = &self.definition.fields;
        for (state, field) in states.iter_mut().zip(fields) {
            *state = follow(*state, &field.path)?;
        }
        match next_array(states) {
            None => self.finish(states),
            Some(array) => self.expand_array(array, states),
        }
    }

    /// Continues once per element of the array, in all fields that met the array. Arrays are the
    /// same if their bytes are at the same address.
    fn expand_array(&mut self, array: Array<'_>, states: &[State<'_>]) -> Result<(), Error> {
        let same = |state: &State<'_>| {
            matches!(state, State::At(ValueRef::Array(met), _)
            if std::ptr::eq(met.as_bytes(), array.as_bytes()))
        };
        for (number, state) in states.iter().enumerate().filter(|(_, state)| same(state)) {
            if let State::At(_, part) = state {
                self.scratch.marks.record(number, part.saturating_sub(1));
            }
        }
        let fields = &self.definition.fields;
        let mut next = states.to_vec();
        if array.is_empty() {
            for (state, field) in next.iter_mut().zip(fields).filter(|(state, _)| same(state)) {
                *state = enter_empty_array(state, &field.path);
            }
            return self.expand(&mut next);
        }
        for element in array {
            next.copy_from_slice(states);
            for (state, field) in next.iter_mut().zip(fields).filter(|(state, _)| same(state)) {
                *state = enter_element(state, element, &field.path);
            }
            self.expand(&mut next)?;
        }
        Ok(())
    }

    /// Emits the entry of fully followed paths.
    fn finish(&mut self, states: &[State<'_>]) -> Result<(), Error> {
        if self.definition.sparse && states.iter().all(|state| matches!(state, State::Missing)) {
            return Ok(());
        }
        self.count += 1;
        if self.count > ENTRIES_PER_DOCUMENT_MAX {
            return Err(self.definition.too_many(self.count));
        }
        let values = states.iter().map(|state| match state {
            State::Done(value) => Some(*value),
            _ => None,
        });
        self.definition.make_key(self.scratch, values);
        (self.emit)(&self.scratch.key, &self.scratch.shape);
        Ok(())
    }
}

/// Returns the first array that a field met.
fn next_array<'a>(states: &[State<'a>]) -> Option<Array<'a>> {
    states.iter().find_map(|state| match state {
        State::At(ValueRef::Array(array), _) => Some(*array),
        _ => None,
    })
}

/// Returns the state of a field after an empty array: undefined at the end of the path, missing
/// before it.
fn enter_empty_array<'a>(state: &State<'a>, path: &Path) -> State<'a> {
    match state {
        State::At(_, part) if *part >= path.components().len() => State::Done(ValueRef::Undefined),
        _ => State::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::key;
    use windrow_document::{DocumentBuf, array, doc};

    fn check(specification: DocumentBuf, document: DocumentBuf, expected: &[DocumentBuf]) {
        let definition = Definition::parse(specification.as_document()).unwrap();
        let mut found = Vec::new();
        let result = definition.keys(
            document.as_document(),
            &mut Scratch::default(),
            &mut |key, shape| {
                let mut reader = key::KeyReader::new(key, shape);
                let mut values = DocumentBuf::new();
                for field in &definition.fields {
                    let descending = field.kind == KeyKind::Descending;
                    let value = reader.value(descending).unwrap();
                    values.push(&field.path.to_string(), value);
                }
                found.push(values);
            },
        );
        assert_eq!(result, Ok(()));
        assert_eq!(found, expected, "{document}");
    }

    fn spec(key: DocumentBuf) -> DocumentBuf {
        doc! { "key": key, "name": "n" }
    }

    #[test]
    fn an_index_on_one_field_has_an_entry_per_element() {
        let a = || spec(doc! { "a": 1 });
        check(a(), doc! { "a": 5 }, &[doc! { "a": 5 }]);
        check(a(), doc! { "b": 5 }, &[doc! { "a": null }]);
        check(
            a(),
            doc! { "a": [1, 2i64] },
            &[doc! { "a": 1 }, doc! { "a": 2i64 }],
        );
        check(a(), doc! { "a": [[1, 2]] }, &[doc! { "a": [1, 2] }]);
        check(
            a(),
            doc! { "a": [] },
            &[doc! { "a": (windrow_document::Value::Undefined) }],
        );
        check(
            spec(doc! { "a": (-1) }),
            doc! { "a": "x" },
            &[doc! { "a": "x" }],
        );
        let sparse = doc! { "key": { "a": 1 }, "name": "n", "sparse": true };
        check(sparse.clone(), doc! { "b": 5 }, &[]);
        check(sparse, doc! { "a": null }, &[doc! { "a": null }]);
    }

    #[test]
    fn dotted_paths_expand_arrays() {
        let ab = || spec(doc! { "a.b": 1 });
        check(ab(), doc! { "a": { "b": 1 } }, &[doc! { "a.b": 1 }]);
        let list = doc! { "a": [{ "b": 1 }, { "b": [2, 3] }, { "c": 1 }, 7] };
        let null = || doc! { "a.b": null };
        check(
            ab(),
            list,
            &[
                doc! { "a.b": 1 },
                doc! { "a.b": 2 },
                doc! { "a.b": 3 },
                null(),
                null(),
            ],
        );
        check(ab(), doc! { "a": [] }, &[null()]);
        check(ab(), doc! { "a": [[{ "b": 1 }]] }, &[null()]);
        check(ab(), doc! { "a": 1 }, &[null()]);
        let first = || spec(doc! { "a.0": 1 });
        check(first(), doc! { "a": [5, 6] }, &[doc! { "a.0": 5 }]);
        let arrays = doc! { "a": [[1, 2], 3] };
        check(first(), arrays.clone(), &[doc! { "a.0": [1, 2] }]);
        let pair = spec(doc! { "a.0": 1, "a.0.1": 1 });
        check(pair, arrays, &[doc! { "a.0": [1, 2], "a.0.1": 2 }]);
        let undefined = doc! { "a.0": (windrow_document::Value::Undefined) };
        check(first(), doc! { "a": [[]] }, &[undefined]);
        check(
            first(),
            doc! { "a": { "0": [1, 2] } },
            &[doc! { "a.0": 1 }, doc! { "a.0": 2 }],
        );
        // A number without an element at that position is a name. If it is both, the document is
        // rejected.
        let second = || spec(doc! { "a.1": 1 });
        check(second(), doc! { "a": [{ "1": 9 }] }, &[doc! { "a.1": 9 }]);
        let definition = Definition::parse(first().as_document()).unwrap();
        let both = doc! { "a": [{ "0": 9 }] };
        let made = definition.entries(both.as_document(), &mut Scratch::default(), &mut |_, _| {});
        assert_eq!(made.map_err(|error| error.code), Err(16_746));
        check(first(), doc! { "a": [] }, &[doc! { "a.0": null }]);
    }

    #[test]
    fn compound_keys_keep_elements_together_and_multiply_different_arrays() {
        let spec_of = || spec(doc! { "a.b": 1, "a.c": (-1), "d": 1 });
        check(
            spec_of(),
            doc! { "a": [{ "b": 1, "c": 2 }, { "b": 3 }], "d": 4 },
            &[
                doc! { "a.b": 1, "a.c": 2, "d": 4 },
                doc! { "a.b": 3, "a.c": null, "d": 4 },
            ],
        );
        check(
            spec(doc! { "a": 1, "d": 1 }),
            doc! { "a": [1, 2], "d": (array![3, 4]) },
            &[
                doc! { "a": 1, "d": 3 },
                doc! { "a": 1, "d": 4 },
                doc! { "a": 2, "d": 3 },
                doc! { "a": 2, "d": 4 },
            ],
        );
    }

    #[test]
    fn partial_indexes_have_entries_of_matching_documents_only() {
        let partial = || {
            doc! { "key": { "a": 1 }, "name": "n", "partialFilterExpression": { "b": { "$gt": 5 } } }
        };
        check(partial(), doc! { "a": 1, "b": 5 }, &[]);
        check(partial(), doc! { "a": 1, "b": 6 }, &[doc! { "a": 1 }]);
    }

    #[test]
    fn too_many_entries_are_rejected_with_their_count() {
        let many: windrow_document::ArrayBuf =
            (0..10_001).map(windrow_document::Value::Int32).collect();
        let definition = Definition::parse(spec(doc! { "a": 1 }).as_document()).unwrap();
        let error = definition
            .entries(
                doc! { "a": many }.as_document(),
                &mut Scratch::default(),
                &mut |_, _| {},
            )
            .unwrap_err();
        assert!(error.message.contains("10001"), "{}", error.message);
    }
}
