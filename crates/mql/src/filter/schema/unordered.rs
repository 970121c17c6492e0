//! Equality that ignores the order of fields, for `enum` and `uniqueItems`.

use std::collections::HashSet;

use windrow_document::{Array, ValueRef, key};

use crate::Error;
use crate::interrupt::{count_bytes, count_work};
use crate::memory::heap_bytes;

/// A set of values. Values that differ only in the order of fields are equal.
#[derive(Debug, Default)]
pub(super) struct UnorderedSet(HashSet<Vec<u8>>);

impl UnorderedSet {
    /// Returns `false` if the set already has an equal value. Returns the error of the interrupt if
    /// the evaluation must stop.
    pub(super) fn insert(&mut self, value: ValueRef<'_>) -> Result<bool, Error> {
        Ok(self.0.insert(sorted_bytes(value)?))
    }

    /// Returns `true` if the set has an equal value. Fails as [`UnorderedSet::insert`] does.
    pub(super) fn contains(&self, value: ValueRef<'_>) -> Result<bool, Error> {
        Ok(self.0.contains(&sorted_bytes(value)?))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The first element that equals an earlier one. Fails as [`UnorderedSet::insert`] does.
pub(in crate::filter) fn repeated(array: Array<'_>) -> Result<Option<ValueRef<'_>>, Error> {
    let mut seen = UnorderedSet::default();
    for item in array.iter() {
        if !seen.insert(item)? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// Bytes that are the same for values that differ only in the order of fields.
fn sorted_bytes(value: ValueRef<'_>) -> Result<Vec<u8>, Error> {
    count_work(4)?;
    count_bytes(heap_bytes(value))?;
    let mut bytes = Vec::new();
    append_sorted(&mut bytes, value);
    Ok(bytes)
}

/// Appends the bytes of [`sorted_bytes`].
fn append_sorted(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::Document(document) => {
            let mut fields: Vec<_> = document.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            bytes.push(DOCUMENT);
            for (name, value) in fields {
                bytes.extend_from_slice(name.as_bytes());
                bytes.push(0);
                append_measured(bytes, value);
            }
            bytes.push(END);
        }
        ValueRef::Array(array) => {
            bytes.push(ARRAY);
            array.iter().for_each(|item| append_measured(bytes, item));
            bytes.push(END);
        }
        other => {
            bytes.push(OTHER);
            key::append(bytes, other);
        }
    }
}

const END: u8 = 0;
const DOCUMENT: u8 = 1;
const ARRAY: u8 = 2;
const OTHER: u8 = 3;

/// Appends a value and the length of its bytes, so that the bytes of two lists are equal only if
/// their values are.
fn append_measured(bytes: &mut Vec<u8>, value: ValueRef<'_>) {
    let start = bytes.len();
    append_sorted(bytes, value);
    let length = bytes.len() - start;
    bytes.extend_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{ArrayBuf, DocumentBuilder, Value, doc};

    fn check(items: &[Value], expected: Option<usize>) {
        let array: ArrayBuf = items.iter().cloned().collect();
        let found = repeated(array.as_array()).unwrap();
        assert_eq!(
            found.map(ValueRef::to_value),
            expected.map(|place| items[place].clone())
        );
        let mut set = UnorderedSet::default();
        for item in items.iter().take(expected.unwrap_or(items.len())) {
            assert!(set.insert(item.as_ref()).unwrap());
        }
        let again = expected.map(|place| set.contains(items[place].as_ref()).unwrap());
        assert_ne!(again, Some(false), "{items:?}");
    }

    #[test]
    fn repeated_items_are_found_in_any_order_of_fields() {
        let document = |document: windrow_document::DocumentBuf| Value::from(document);
        check(&[], None);
        check(&[1.into(), 2.into(), 1.0.into()], Some(2));
        check(&["a".into(), "b".into(), "ab".into(), "a".into()], Some(3));
        let (one, other) = (
            doc! { "a": 1, "b": { "c": 2, "d": 3 } },
            doc! { "b": { "d": 3, "c": 2 }, "a": 1 },
        );
        check(&[document(one.clone()), document(other.clone())], Some(1));
        check(&[document(one), document(doc! { "a": 1 })], None);
        let array = |items: &[i32]| {
            Value::from(
                items
                    .iter()
                    .map(|item| Value::from(*item))
                    .collect::<ArrayBuf>(),
            )
        };
        check(&[array(&[1, 2]), array(&[2, 1]), array(&[1, 2])], Some(2));
        check(
            &[Value::Null, array(&[]), document(doc! {}), "".into()],
            None,
        );
    }

    /// A schema with `uniqueItems` used to compare every pair of elements, and one with `enum`
    /// every pair of fields. Documents with 400,000 of them took minutes.
    #[test]
    fn long_values_take_linear_time() {
        let array: ArrayBuf = (0..400_000).map(Value::from).collect();
        assert_eq!(repeated(array.as_array()).unwrap(), None);
        let names: Vec<String> = (0..400_000).map(|number| format!("f{number}")).collect();
        let document = |names: &mut dyn Iterator<Item = &String>| {
            let mut document = DocumentBuilder::new();
            names.for_each(|name| document.append(name, ValueRef::Int32(1)));
            Value::from(document.finish())
        };
        let mut set = UnorderedSet::default();
        assert!(set.insert(document(&mut names.iter()).as_ref()).unwrap());
        assert!(
            set.contains(document(&mut names.iter().rev()).as_ref())
                .unwrap()
        );
    }
}
