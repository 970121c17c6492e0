//! `$mergeObjects` over the documents of a group.

use std::collections::HashMap;

use windrow_document::{Document, DocumentBuf, Value, ValueRef};

use super::bytes::{field_bytes, value_bytes};
use crate::Error;
use crate::expression::ExprValue;
use crate::expression::accumulators::{document_to_merge, merge_object};

/// From this size on the fields are in a hash table. Otherwise each document would copy all fields
/// again.
const TABLE_BYTES_MIN: usize = 1 << 10;

/// A result that fits in a document of 16 MB is allowed, whatever memory its hash table needs.
const DOCUMENT_BYTES_MAX: usize = 16 << 20;

/// The merged fields.
#[derive(Clone, Debug)]
pub(super) enum MergedDocument {
    Small(DocumentBuf),
    Large(Box<FieldTable>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct FieldTable {
    fields: Vec<MergedField>,
    indexes: HashMap<Box<str>, usize>,
    bytes: usize,
    /// The bytes of the fields as a BSON document.
    document_bytes: usize,
    /// The number of documents that were added.
    document_number: usize,
}

#[derive(Clone, Debug)]
struct MergedField {
    name: Box<str>,
    value: Value,
    /// The document that set the value. If it has a name twice, the first value counts.
    document_number: usize,
}

impl Default for MergedDocument {
    fn default() -> MergedDocument {
        MergedDocument::Small(DocumentBuf::new())
    }
}

impl MergedDocument {
    /// Merges a document. Fails with 40400 if the value is not a document.
    pub fn add(&mut self, value: &ExprValue<'_>) -> Result<(), Error> {
        match self {
            MergedDocument::Small(merged) => {
                merge_object(merged, value)?;
                if merged.as_bytes().len() > TABLE_BYTES_MIN {
                    let mut table = Box::<FieldTable>::default();
                    table.add(merged.as_document());
                    *self = MergedDocument::Large(table);
                }
            }
            MergedDocument::Large(table) => {
                if let Some(added) = document_to_merge(value)? {
                    table.add(added);
                }
            }
        }
        Ok(())
    }

    pub fn finish(self) -> DocumentBuf {
        match self {
            MergedDocument::Small(merged) => merged,
            MergedDocument::Large(table) => {
                let fields = table.fields.iter();
                fields
                    .map(|field| (&*field.name, field.value.as_ref()))
                    .collect()
            }
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            MergedDocument::Small(merged) => merged.as_bytes().len(),
            MergedDocument::Large(table) => table.bytes,
        }
    }

    /// Returns the bytes that the memory limit applies to. Many short fields need much more memory
    /// in a hash table than in a document.
    pub fn limited_bytes(&self) -> usize {
        match self.document_bytes() {
            bytes if bytes <= DOCUMENT_BYTES_MAX => bytes,
            _ => self.bytes(),
        }
    }

    pub fn document_bytes(&self) -> usize {
        match self {
            MergedDocument::Small(merged) => merged.as_bytes().len(),
            MergedDocument::Large(table) => table.document_bytes,
        }
    }
}

impl FieldTable {
    fn add(&mut self, added: Document<'_>) {
        self.document_number += 1;
        for (name, value) in added {
            let known = self.indexes.get(name).copied();
            match known.and_then(|index| self.fields.get_mut(index)) {
                Some(field) if field.document_number == self.document_number => {}
                Some(field) => {
                    self.bytes += value_bytes(value);
                    self.bytes -= value_bytes(field.value.as_ref());
                    self.document_bytes += field_bytes(name, value);
                    self.document_bytes -= field_bytes(name, field.value.as_ref());
                    (field.value, field.document_number) = (value.to_value(), self.document_number);
                }
                None => self.push(name, value),
            }
        }
    }

    fn push(&mut self, name: &str, value: ValueRef<'_>) {
        self.bytes += 2 * (name.len() + size_of::<MergedField>()) + value_bytes(value);
        self.document_bytes += field_bytes(name, value);
        self.indexes.insert(name.into(), self.fields.len());
        self.fields.push(MergedField {
            name: name.into(),
            value: value.to_value(),
            document_number: self.document_number,
        });
    }
}

#[cfg(test)]
mod tests {
    use windrow_document::doc;

    use super::*;
    use crate::memory::VALUE_BYTES_MAX;

    /// A hash table of many fields has the same result as merging documents two by two.
    #[test]
    fn many_fields_have_the_same_result_as_few() {
        let (mut merged, mut plain) = (MergedDocument::default(), DocumentBuf::new());
        for number in 0..400 {
            let name = format!("field{}", number * 7 % 300);
            let mut added = doc! { "same": number };
            added.push(&name, number);
            let added = ExprValue::from(Value::Document(added));
            merged.add(&added).unwrap();
            merge_object(&mut plain, &added).unwrap();
        }
        let MergedDocument::Large(table) = &merged else {
            panic!("few fields");
        };
        assert_eq!(table.document_bytes + 5, plain.as_bytes().len());
        assert_eq!(merged.finish(), plain);
    }

    /// Adds `count` short fields whose names start with `letter`.
    fn short_fields(merged: &mut MergedDocument, letter: char, count: usize) {
        let names: Vec<_> = (0..count)
            .map(|number| format!("{letter}{number}"))
            .collect();
        let fields = names.iter().map(|name| (name, ValueRef::Int32(1)));
        let added = ExprValue::from(Value::Document(fields.collect()));
        merged.add(&added).unwrap();
    }

    #[test]
    fn fields_that_fit_in_a_document_are_within_the_limit() {
        let mut merged = MergedDocument::default();
        short_fields(&mut merged, 'a', 600_000);
        short_fields(&mut merged, 'b', 600_000);
        assert!(merged.bytes() > VALUE_BYTES_MAX);
        assert!(merged.limited_bytes() < DOCUMENT_BYTES_MAX);
        short_fields(&mut merged, 'c', 600_000);
        assert!(merged.limited_bytes() > VALUE_BYTES_MAX);
    }

    #[test]
    fn a_value_that_is_not_a_document_is_refused() {
        let mut merged = MergedDocument::default();
        let long = doc! { "a": ("x".repeat(2 * TABLE_BYTES_MIN)) };
        merged.add(&ExprValue::from(Value::Document(long))).unwrap();
        merged.add(&ExprValue::NULL).unwrap();
        assert_eq!(merged.add(&1.into()).unwrap_err().code, 40400);
    }
}
