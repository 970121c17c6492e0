//! The entry of a hashed index: the hash of one field and the plain values of the other fields
//! (<https://www.mongodb.com/docs/manual/core/indexes/index-types/index-hashed/>).
//!
//! Arrays are rejected at the end of every path and before it, as in MongoDB.

use windrow_document::hash::hash64;
use windrow_document::path::Path;
use windrow_document::{Document, ValueRef, key};
use windrow_mql::Error;

use crate::definition::{Definition, KeyKind};
use crate::output::Scratch;
use crate::sink::Emit;

/// The error code if a field of a hashed index contains an array.
const ARRAY: i32 = 16766;

impl Definition {
    /// Returns `true` for a hashed index.
    pub fn is_hashed(&self) -> bool {
        self.fields.iter().any(|it| it.kind == KeyKind::Hashed)
    }

    /// Returns the hash of a value. Under a collation it is the hash of the key bytes, so that
    /// equal strings have equal hashes.
    pub fn hash(&self, value: ValueRef<'_>) -> i64 {
        let collation = self.collation.as_deref();
        if collation.is_none() {
            return hash64(value);
        }
        let mut bytes = Vec::new();
        key::append_with_collation(&mut bytes, value, false, collation);
        hash64(ValueRef::Binary {
            subtype: 0,
            bytes: &bytes,
        })
    }

    /// Emits the entry of a document. Fails with code 16766 if a path meets an array.
    pub(crate) fn hashed_entries(
        &self,
        document: Document<'_>,
        scratch: &mut Scratch,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        let Scratch { key, shape, .. } = scratch;
        key.clear();
        shape.clear();
        let (mut ordinal, mut is_missing) = (0, true);
        for field in &self.fields {
            let value = plain_value(document, &field.path)?;
            is_missing &= value.is_none();
            let value = value.unwrap_or(ValueRef::Null);
            let value = match field.kind {
                KeyKind::Hashed => ValueRef::Int64(self.hash(value)),
                _ => value,
            };
            let descends = field.kind == KeyKind::Descending;
            ordinal = self.append_part(key, shape, ordinal, value, descends);
        }
        if !(self.sparse && is_missing) {
            emit(key, shape);
        }
        Ok(())
    }
}

/// Returns the value at a path, or `None` if it is missing. Fails with code 16766 if the path meets
/// an array.
fn plain_value<'d>(document: Document<'d>, path: &Path) -> Result<Option<ValueRef<'d>>, Error> {
    let mut value = ValueRef::Document(document);
    for component in path.components() {
        let ValueRef::Document(inner) = value else {
            return Ok(None);
        };
        value = match inner.get(component.name()) {
            None => return Ok(None),
            Some(ValueRef::Array(_)) => {
                return Err(Error::new(
                    ARRAY,
                    format!(
                        "hashed indexes do not currently support array values. Found array at \
                         path: {path}"
                    ),
                ));
            }
            Some(value) => value,
        };
    }
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{DocumentBuf, Value, doc};

    fn check(key: DocumentBuf, document: DocumentBuf, expected: Result<Vec<Value>, i32>) {
        let specification = doc! { "key": key, "name": "h" };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let mut found = Vec::new();
        let mut emit = |bytes: &[u8], shape: &[u8]| {
            let mut reader = key::KeyReader::new(bytes, shape);
            while !reader.is_at_end() {
                found.push(reader.value(false).unwrap());
            }
        };
        let (document, mut scratch) = (document.as_document(), Scratch::default());
        let result = definition.entries(document, &mut scratch, &mut emit);
        let result = result.map(|()| found).map_err(|error| error.code);
        assert_eq!(result, expected, "{document}");
    }

    fn hash(value: impl Into<Value>) -> Value {
        Value::Int64(hash64(value.into().as_ref()))
    }

    #[test]
    fn one_field_is_hashed_and_the_others_are_plain() {
        let a = || doc! { "a": "hashed" };
        check(a(), doc! { "a": 5 }, Ok(vec![hash(5)]));
        check(a(), doc! { "b": 5 }, Ok(vec![hash(Value::Null)]));
        check(
            a(),
            doc! { "a": { "b": [1] } },
            Ok(vec![hash(doc! { "b": [1] })]),
        );
        let compound = || doc! { "b": 1, "a.c": "hashed" };
        check(
            compound(),
            doc! { "a": { "c": "x" }, "b": 7 },
            Ok(vec![7.into(), hash("x")]),
        );
        check(
            compound(),
            doc! { "a": 1 },
            Ok(vec![Value::Null, hash(Value::Null)]),
        );
    }

    #[test]
    fn arrays_are_rejected_at_every_position() {
        let compound = || doc! { "b": 1, "a.c": "hashed" };
        check(doc! { "a": "hashed" }, doc! { "a": [] }, Err(ARRAY));
        check(compound(), doc! { "a": [{ "c": 1 }] }, Err(ARRAY));
        check(compound(), doc! { "b": [1], "a": 1 }, Err(ARRAY));
    }
}
