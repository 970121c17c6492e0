//! The entries of a wildcard index: every value under its path.
//!
//! ```text
//! value at a path          path as a string, value
//! array at a path          1, path as a string
//! ```
//! Documents are entered, the empty one is a value. The elements of an array stand under the array's
//! own path, each by itself; an array within an array is one value, an empty one is undefined. The
//! second kind of entry says which paths hold arrays, so that a query knows whether two conditions on
//! a path may be fulfilled by different elements. A field whose name holds a dot has no path.

use windrow_document::path::Path;
use windrow_document::{Array, Document, DocumentBuf, ValueRef, key};
use windrow_mql::Error;

use crate::definition::{Definition, KeyField, KeyKind};
use crate::output::{ENTRIES_PER_DOCUMENT_MAX, Emit, Scratch};
use crate::paths::{Place, Wildcard};

/// The first part of a wildcard key: the path of the value.
pub const PATH_FIELD: &str = "$_path";

/// The key of the entries that say that there is an array at the path.
pub fn array_key(path: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::append(&mut bytes, ValueRef::Int32(1));
    key::append(&mut bytes, ValueRef::String(path));
    bytes
}

impl Definition {
    /// What a wildcard index is to a query on one path: an index on the path's name and its values.
    pub fn at_path(&self, path: &Path) -> Definition {
        let kind = self.fields.last().map_or(KeyKind::Ascending, |it| it.kind);
        let name = path.to_string();
        let direction = self.key_pattern().iter().last().map(|(_, value)| value);
        let mut pattern = DocumentBuf::new();
        pattern.push(PATH_FIELD, direction.unwrap_or(ValueRef::Int32(1)));
        pattern.push(&name, direction.unwrap_or(ValueRef::Int32(1)));
        let field = |path, kind| KeyField { path, kind };
        Definition {
            fields: vec![
                field(Path::parse(PATH_FIELD), KeyKind::Ascending),
                field(path.clone(), kind),
            ],
            specification: self.specification_with("key", Some(pattern.into())),
            ..self.clone()
        }
    }

    pub(crate) fn wildcard_entries(
        &self,
        wildcard: &Wildcard,
        document: Document<'_>,
        scratch: &mut Scratch,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        let mut walk = Walk {
            definition: self,
            wildcard,
            scratch,
            emit,
            path: String::new(),
            depth: 0,
            count: 0,
        };
        walk.fields(document)
    }
}

struct Walk<'w, 'e> {
    definition: &'w Definition,
    wildcard: &'w Wildcard,
    scratch: &'w mut Scratch,
    emit: &'w mut Emit<'e>,
    path: String,
    /// How many documents are around the fields: a path of no letters can have a name behind it.
    depth: usize,
    count: usize,
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
            let place = self.wildcard.place(&self.path);
            let result = match value {
                _ if place == Place::Outside => Ok(()),
                ValueRef::Array(array) => self.elements(array, place),
                value => self.value(value, place),
            };
            self.path.truncate(before);
            result?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn elements(&mut self, array: Array<'_>, place: Place) -> Result<(), Error> {
        let bytes = array_key(&self.path);
        self.counted()?;
        (self.emit)(&bytes, &[]);
        if array.is_empty() {
            return self.value(ValueRef::Undefined, place);
        }
        array
            .iter()
            .try_for_each(|element| self.value(element, place))
    }

    fn value(&mut self, value: ValueRef<'_>, place: Place) -> Result<(), Error> {
        match value {
            ValueRef::Document(document) if !document.is_empty() => return self.fields(document),
            _ if place == Place::Above => return Ok(()),
            _ => {}
        }
        self.counted()?;
        let Scratch { key, shape, .. } = &mut *self.scratch;
        key.clear();
        shape.clear();
        let ordinal = key::append_part(key, shape, 0, ValueRef::String(&self.path), false);
        let descends = self.definition.fields.last().map(|it| it.kind) == Some(KeyKind::Descending);
        self.definition
            .append_part(key, shape, ordinal, value, descends);
        (self.emit)(key, shape);
        Ok(())
    }

    fn counted(&mut self) -> Result<(), Error> {
        self.count += 1;
        match self.count > ENTRIES_PER_DOCUMENT_MAX {
            true => Err(self.definition.too_many(self.count)),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc};

    /// The entries as "path: value", arrays as "[path]".
    fn check(specification: DocumentBuf, document: DocumentBuf, expected: &[&str]) {
        let definition = Definition::parse(specification.as_document()).unwrap();
        let mut found = Vec::new();
        let mut emit = |bytes: &[u8], shape: &[u8]| {
            let mut reader = key::Reader::new(bytes, shape);
            let (first, second) = (reader.value(false).unwrap(), reader.value(false).unwrap());
            found.push(match first {
                Value::String(path) => format!("{path}: {second}"),
                _ => format!("[{second}]"),
            });
        };
        let mut scratch = Scratch::default();
        let document = document.as_document();
        definition
            .entries(document, &mut scratch, &mut emit)
            .unwrap();
        assert_eq!(found, expected, "{document}");
    }

    fn of(key: &str) -> DocumentBuf {
        let mut pattern = DocumentBuf::new();
        pattern.push(key, 1);
        doc! { "key": pattern, "name": "w" }
    }

    #[test]
    fn every_value_stands_under_its_path() {
        let all = || of("$**");
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
            of("a.$**"),
            doc! { "a": { "b": 1 }, "ab": 2, "c": 3 },
            &["a.b: 1"],
        );
        check(
            of("a.b.$**"),
            doc! { "a": [{ "b": 1 }, 5] },
            &["[\"a\"]", "a.b: 1"],
        );
    }

    #[test]
    fn projections_choose_paths() {
        let with = |projection: DocumentBuf| {
            let mut specification = of("$**");
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
