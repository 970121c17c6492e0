//! The entries of a wildcard index: each value with its path
//! (<https://www.mongodb.com/docs/manual/core/indexes/index-types/index-wildcard/>).
//!
//! ```text
//! value at a path          …, path as a string, value, …
//! no value at any path     …, MinKey, MinKey, …
//! array at a path          MinKey…, 1, path as a string
//! ```
//! The ellipses are the values of the other fields of a compound wildcard index, which must not be
//! arrays. The second kind of entry exists in a compound index only. It allows queries on the other
//! fields alone.
//!
//! - Documents are traversed. The empty document is a value.
//! - Each element of an array has an entry with the path of the array. An array within an array is
//!   one value. An empty array is indexed as undefined.
//! - Fields whose names contain a dot are skipped: no path leads to them.
//!
//! The third kind of entry records which paths contain arrays. At such a path, two conditions of a
//! query may be fulfilled by different elements.

use windrow_document::path::Path;
use windrow_document::{Array, Document, DocumentBuf, ValueRef, key};
use windrow_invariant::Bug;
use windrow_mql::Error;

use crate::definition::{Definition, KeyField, KeyKind};
use crate::output::{ENTRIES_PER_DOCUMENT_MAX, Scratch};
use crate::paths::{PathRelation, Wildcard};
use crate::sink::Emit;

/// The name of the key part that contains the path of the value. It precedes the value.
pub const PATH_FIELD: &str = "$_path";

/// The error code if another field of a compound wildcard index contains an array.
const ARRAY: i32 = 7_246_301;

fn is_path_field(field: &KeyField) -> bool {
    matches!(field.path.components(), [one] if one.name() == PATH_FIELD)
}

/// Returns `true` if a part of the key is one of the two parts of the wildcard: the path or the
/// value.
pub(crate) fn is_of_wildcard(field: &KeyField) -> bool {
    let last = field.path.components().last();
    is_path_field(field) || last.is_some_and(|last| last.name() == "$**")
}

impl Definition {
    /// Returns the index of the key part that contains the path. The next part contains the value.
    /// Returns `None` if the index is not a wildcard index.
    pub fn path_place(&self) -> Option<usize> {
        self.fields.iter().position(is_path_field)
    }

    /// Returns [`Definition::path_place`] of a wildcard index. Fails with a [`Bug`] for other
    /// indexes.
    fn wildcard_position(&self) -> Result<usize, Bug> {
        self.path_place().ok_or_else(|| {
            let key = self.key_pattern();
            Bug::new(format!(
                "the index with the key {key} is taken for a wildcard's"
            ))
        })
    }

    /// Returns `true` if the values below a path are in descending order.
    fn has_descending_values(&self) -> bool {
        let value = self.path_place().map(|place| place + 1);
        let field = value.and_then(|value| self.fields.get(value));
        field.is_some_and(|field| field.kind == KeyKind::Descending)
    }

    /// Returns the key of the entries that record an array at `path`.
    pub fn array_key(&self, path: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in self.fields.iter().take_while(|field| !is_path_field(field)) {
            let descends = field.kind == KeyKind::Descending;
            key::append_with_collation(&mut bytes, ValueRef::MinKey, descends, None);
        }
        key::append(&mut bytes, ValueRef::Int32(1));
        key::append(&mut bytes, ValueRef::String(path));
        bytes
    }

    /// Returns the definition that a wildcard index has for queries on one path: an index on the
    /// name of the path, its values, and the other fields. Panics if the index is not a wildcard
    /// index.
    pub fn at_path(&self, path: &Path) -> Definition {
        self.as_pattern(Some(path))
    }

    /// Returns the definition that a compound wildcard index has for queries on the fields before
    /// the wildcard. It is not sparse, since each document has an entry. Panics if the index is not
    /// a wildcard index.
    pub fn prefix_definition(&self) -> Definition {
        Definition {
            sparse: false,
            ..self.as_pattern(None)
        }
    }

    /// Replaces the wildcard in the key with `path`, or cuts the key after [`PATH_FIELD`] if `path`
    /// is `None`.
    fn as_pattern(&self, path: Option<&Path>) -> Definition {
        let place = self
            .wildcard_position()
            .unwrap_or_else(|bug| panic!("{bug}"));
        let mut fields = self.fields.clone();
        if let (Some(field), Some(path)) = (fields.get_mut(place + 1), path) {
            field.path = path.clone();
        }
        let mut pattern = DocumentBuf::new();
        for (number, (name, direction)) in self.key_pattern().iter().enumerate() {
            match path {
                Some(path) if number == place => {
                    pattern.push(PATH_FIELD, 1);
                    pattern.push(&path.to_string(), direction);
                }
                None if number == place => {
                    pattern.push(PATH_FIELD, 1);
                    break;
                }
                _ => pattern.push(name, direction),
            }
        }
        Definition {
            fields,
            specification: self.specification_with("key", Some(pattern.into())),
            ..self.clone()
        }
    }

    /// Emits the entries of a document. Fails with code 7246301 if another field of a compound
    /// index contains an array, and with code 2 if there are more than [`ENTRIES_PER_DOCUMENT_MAX`]
    /// entries.
    pub(crate) fn wildcard_entries<'d>(
        &'d self,
        wildcard: &'d Wildcard,
        document: Document<'d>,
        scratch: &'d mut Scratch,
        emit: &'d mut Emit<'_>,
    ) -> Result<(), Error> {
        let mut walk = Walk {
            definition: self,
            others: OtherFields::new(self, document)?,
            descends: self.has_descending_values(),
            wildcard,
            scratch,
            emit,
            path: String::new(),
            depth: 0,
            count: 0,
            arrays: 0,
        };
        walk.fields(document)?;
        if walk.count == walk.arrays && !walk.others.is_empty() {
            walk.entry(ValueRef::MinKey, ValueRef::MinKey)?;
        }
        Ok(())
    }
}

/// The values of the other fields of a compound wildcard index. The flags are `true` for descending
/// fields.
struct OtherFields<'d> {
    /// The fields before the wildcard.
    before: Vec<(ValueRef<'d>, bool)>,
    /// The fields after the wildcard.
    after: Vec<(ValueRef<'d>, bool)>,
}

impl<'d> OtherFields<'d> {
    fn new(definition: &Definition, document: Document<'d>) -> Result<OtherFields<'d>, Error> {
        let place = definition.wildcard_position()?;
        let (before, after) = definition.fields.split_at(place);
        let of = |field: &KeyField| -> Result<(ValueRef<'d>, bool), Error> {
            let value = plain_value(document, &field.path)?;
            Ok((value, field.kind == KeyKind::Descending))
        };
        Ok(OtherFields {
            before: before.iter().map(of).collect::<Result<_, _>>()?,
            after: after.iter().skip(2).map(of).collect::<Result<_, _>>()?,
        })
    }

    fn is_empty(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }
}

/// Returns the value at a path, or null if it is missing. Fails with code 7246301 if the path meets
/// an array.
fn plain_value<'d>(document: Document<'d>, path: &Path) -> Result<ValueRef<'d>, Error> {
    let mut value = ValueRef::Document(document);
    for component in path.components() {
        let ValueRef::Document(inner) = value else {
            return Ok(ValueRef::Null);
        };
        value = inner.get(component.name()).unwrap_or(ValueRef::Null);
        if matches!(value, ValueRef::Array(_)) {
            let message = format!(
                "the fields beside the wildcard of a compound index hold no arrays; found one at \
                 '{path}'"
            );
            return Err(Error::new(ARRAY, message));
        }
    }
    Ok(value)
}

/// A traversal of a document.
struct Walk<'w, 'e> {
    definition: &'w Definition,
    others: OtherFields<'w>,
    /// `true` if the values are in descending order.
    descends: bool,
    wildcard: &'w Wildcard,
    scratch: &'w mut Scratch,
    emit: &'w mut Emit<'e>,
    path: String,
    /// The number of documents around the current fields. It decides whether a dot precedes a name:
    /// the path of an outer field may be empty.
    depth: usize,
    /// The number of entries so far.
    count: usize,
    /// The number of entries that record an array.
    arrays: usize,
}

impl Walk<'_, '_> {
    fn fields(&mut self, document: Document<'_>) -> Result<(), Error> {
        let before = self.path.len();
        self.depth += 1;
        for (name, value) in document.iter().filter(|(name, _)| !name.contains('.')) {
            if self.depth > 1 {
                self.path.push('.');
            }
            self.path.push_str(name);
            let relation = self.wildcard.relation(&self.path);
            let result = match value {
                _ if relation == PathRelation::Outside => Ok(()),
                ValueRef::Array(array) => self.elements(array, relation),
                value => self.value(value, relation),
            };
            self.path.truncate(before);
            result?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn elements(&mut self, array: Array<'_>, relation: PathRelation) -> Result<(), Error> {
        let bytes = self.definition.array_key(&self.path);
        self.counted()?;
        self.arrays += 1;
        (self.emit)(&bytes, &[]);
        if array.is_empty() {
            return self.value(ValueRef::Undefined, relation);
        }
        array
            .iter()
            .try_for_each(|element| self.value(element, relation))
    }

    fn value(&mut self, value: ValueRef<'_>, relation: PathRelation) -> Result<(), Error> {
        match value {
            ValueRef::Document(document) if !document.is_empty() => return self.fields(document),
            _ if relation == PathRelation::Above => return Ok(()),
            _ => {}
        }
        let path = std::mem::take(&mut self.path);
        let result = self.entry(ValueRef::String(&path), value);
        self.path = path;
        result
    }

    fn entry(&mut self, path: ValueRef<'_>, value: ValueRef<'_>) -> Result<(), Error> {
        self.counted()?;
        let Scratch { key, shape, .. } = &mut *self.scratch;
        key.clear();
        shape.clear();
        let mut ordinal = 0;
        for (value, descends) in &self.others.before {
            ordinal = self
                .definition
                .append_part(key, shape, ordinal, *value, *descends);
        }
        // The collation does not apply to names of fields.
        ordinal = key::append_component(key, shape, ordinal, path, false);
        ordinal = self
            .definition
            .append_part(key, shape, ordinal, value, self.descends);
        for (value, descends) in &self.others.after {
            ordinal = self
                .definition
                .append_part(key, shape, ordinal, *value, *descends);
        }
        (self.emit)(key, shape);
        Ok(())
    }

    /// Counts an entry. Fails with code 2 if there are too many.
    fn counted(&mut self) -> Result<(), Error> {
        self.count += 1;
        if self.count > ENTRIES_PER_DOCUMENT_MAX {
            Err(self.definition.too_many(self.count))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc};

    /// Compares the entries with `expected`: "path: value" for a value, "[path]" for an array.
    fn check(specification: DocumentBuf, document: DocumentBuf, expected: &[&str]) {
        let definition = Definition::parse(specification.as_document()).unwrap();
        let place = definition.path_place().unwrap();
        let mut found = Vec::new();
        let mut emit = |bytes: &[u8], shape: &[u8]| {
            let mut reader = key::KeyReader::new(bytes, shape);
            let mut next = || reader.value(false).unwrap();
            let around: Vec<String> = definition.fields[..place]
                .iter()
                .map(|_| format!("{} ", next()))
                .collect();
            let around = around.concat();
            let (path, value) = (next(), next());
            let behind = if reader.is_at_end() {
                String::new()
            } else {
                format!(" {}", reader.value(true).unwrap())
            };
            found.push(match path {
                Value::String(path) => format!("{around}{path}: {value}{behind}"),
                Value::MinKey => format!("{around}nothing{behind}"),
                _ => format!("{around}[{value}]"),
            });
        };
        let mut scratch = Scratch::default();
        let document = document.as_document();
        definition
            .entries(document, &mut scratch, &mut emit)
            .unwrap();
        assert_eq!(found, expected, "{document}");
    }

    fn pattern(key: &str) -> DocumentBuf {
        let mut pattern = DocumentBuf::new();
        pattern.push(key, 1);
        doc! { "key": pattern, "name": "w" }
    }

    #[test]
    fn every_value_has_an_entry_with_its_path() {
        let all = || pattern("$**");
        check(
            all(),
            doc! { "_id": 1, "a": 5, "b": { "c": "x", "d": {} } },
            &["a: 5", "b.c: \"x\"", "b.d: {}"],
        );
        check(
            all(),
            doc! { "a": [1, { "b": [2] }, [3], {}], "e": [] },
            &[
                "[\"a\"]",
                "a: 1",
                "[\"a.b\"]",
                "a.b: 2",
                "a: [3]",
                "a: {}",
                "[\"e\"]",
                "e: {\"$undefined\":true}",
            ],
        );
        check(all(), doc! { "a.b": 1 }, &[]);
        check(all(), doc! { "": { "a": 1 } }, &[".a: 1"]);
        check(
            pattern("a.$**"),
            doc! { "a": { "b": 1 }, "ab": 2, "c": 3 },
            &["a.b: 1"],
        );
        check(
            pattern("a.b.$**"),
            doc! { "a": [{ "b": 1 }, 5] },
            &["[\"a\"]", "a.b: 1"],
        );
    }

    #[test]
    fn other_fields_surround_the_path_and_its_value() {
        let before = || doc! { "key": { "t": 1, "a.$**": 1 }, "name": "w" };
        check(
            before(),
            doc! { "t": "x", "a": { "b": 1, "c": [2, 3] } },
            &[
                "\"x\" a.b: 1",
                "{\"$minKey\":1} [\"a.c\"]",
                "\"x\" a.c: 2",
                "\"x\" a.c: 3",
            ],
        );
        check(before(), doc! { "a": 5 }, &["null a: 5"]);
        check(before(), doc! { "t": 7, "b": 1 }, &["7 nothing"]);
        let around = doc! {
            "key": { "t.u": 1, "$**": 1, "z": (-1) }, "name": "w",
            "wildcardProjection": { "t": 0, "z": 0 },
        };
        check(
            around,
            doc! { "t": { "u": 1 }, "b": 2, "z": "y" },
            &["1 b: 2 \"y\""],
        );
        let behind = doc! { "key": { "a.$**": 1, "z": (-1) }, "name": "w" };
        check(behind, doc! { "z": 3 }, &["nothing 3"]);
        let definition = Definition::parse(before().as_document()).unwrap();
        for refused in [doc! { "t": [1], "a": 1 }, doc! { "t": [], "b": 1 }] {
            let mut scratch = Scratch::default();
            let found = definition.entries(refused.as_document(), &mut scratch, &mut |_, _| {});
            assert_eq!(
                found.map_err(|error| error.code),
                Err(7_246_301),
                "{refused}"
            );
        }
    }

    #[test]
    fn values_may_be_in_descending_order() {
        let specification = doc! { "key": { "t": 1, "a.$**": (-1) }, "name": "w" };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let key = |document: DocumentBuf| {
            let mut keys = Vec::new();
            let mut emit = |bytes: &[u8], _: &[u8]| keys.push(bytes.to_vec());
            definition
                .entries(document.as_document(), &mut Scratch::default(), &mut emit)
                .unwrap();
            keys.concat()
        };
        let of = |path: &str, value: i32| {
            let mut within = DocumentBuf::new();
            within.push(path, value);
            key(doc! { "t": 5, "a": within })
        };
        assert!(of("b", 2) < of("b", 1));
        assert!(of("b", 1) < of("c", 2));
        let pattern = definition
            .at_path(&Path::parse("a.b"))
            .key_pattern()
            .to_buf();
        assert_eq!(pattern, doc! { "t": 1, "$_path": 1, "a.b": (-1) });
    }

    #[test]
    fn projections_select_paths() {
        let with = |projection: DocumentBuf| {
            let mut specification = pattern("$**");
            specification.push("wildcardProjection", projection);
            specification
        };
        let document = || doc! { "_id": 1, "a": { "b": 1, "c": 2 }, "d": 3 };
        check(with(doc! { "a.b": 1 }), document(), &["a.b: 1"]);
        check(with(doc! { "a": { "b": 1 } }), document(), &["a.b: 1"]);
        check(with(doc! { "a.b": 0 }), document(), &["a.c: 2", "d: 3"]);
        check(with(doc! { "_id": 1 }), document(), &["_id: 1"]);
        check(
            with(doc! { "_id": 1, "a": 0 }),
            document(),
            &["_id: 1", "d: 3"],
        );
        check(
            with(doc! { "_id": 0 }),
            document(),
            &["a.b: 1", "a.c: 2", "d: 3"],
        );
        check(
            with(doc! { "_id": 1, "d": true }),
            document(),
            &["_id: 1", "d: 3"],
        );
    }
}
