//! `$mergeObjects` over the documents of a group.

use std::collections::HashMap;

use windrow_document::{Document, DocumentBuf, Value, ValueRef};

use super::bytes::value_bytes;
use crate::Error;
use crate::expression::Computed;
use crate::expression::accumulated::{merge_object, mergeable};

/// From so many bytes on the fields stand in a table, so that one more document costs no copy of all
/// those before.
const TABLE_BYTES: usize = 1 << 10;

/// The fields so far.
#[derive(Clone, Debug)]
pub(super) enum Merged {
    Few(DocumentBuf),
    Many(Box<Table>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    fields: Vec<Field>,
    places: HashMap<Box<str>, usize>,
    bytes: usize,
    /// How many documents were taken in.
    round: usize,
}

#[derive(Clone, Debug)]
struct Field {
    name: Box<str>,
    value: Value,
    /// Of the document that gave the value: of a name that it has twice the first counts.
    round: usize,
}

impl Default for Merged {
    fn default() -> Merged {
        Merged::Few(DocumentBuf::new())
    }
}

impl Merged {
    /// Error 40400 for what is no document.
    pub fn add(&mut self, value: &Computed<'_>) -> Result<(), Error> {
        match self {
            Merged::Few(merged) => {
                merge_object(merged, value)?;
                if merged.as_bytes().len() > TABLE_BYTES {
                    let mut table = Box::<Table>::default();
                    table.add(merged.as_document());
                    *self = Merged::Many(table);
                }
            }
            Merged::Many(table) => {
                if let Some(added) = mergeable(value)? {
                    table.add(added);
                }
            }
        }
        Ok(())
    }

    pub fn finish(self) -> DocumentBuf {
        match self {
            Merged::Few(merged) => merged,
            Merged::Many(table) => {
                let fields = table.fields.iter();
                fields
                    .map(|field| (&*field.name, field.value.as_ref()))
                    .collect()
            }
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Merged::Few(merged) => merged.as_bytes().len(),
            Merged::Many(table) => table.bytes,
        }
    }
}

impl Table {
    fn add(&mut self, added: Document<'_>) {
        self.round += 1;
        for (name, value) in added {
            let known = self.places.get(name).copied();
            match known.and_then(|place| self.fields.get_mut(place)) {
                Some(field) if field.round == self.round => {}
                Some(field) => {
                    self.bytes += value_bytes(value);
                    self.bytes -= value_bytes(field.value.as_ref());
                    (field.value, field.round) = (value.to_value(), self.round);
                }
                None => self.push(name, value),
            }
        }
    }

    fn push(&mut self, name: &str, value: ValueRef<'_>) {
        self.bytes += 2 * (name.len() + size_of::<Field>()) + value_bytes(value);
        self.places.insert(name.into(), self.fields.len());
        self.fields.push(Field {
            name: name.into(),
            value: value.to_value(),
            round: self.round,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::doc;

    /// One field after the other, as many as a table is for, come out as a merge two by two has them.
    #[test]
    fn many_fields_are_merged_as_few_are() {
        let (mut merged, mut plain) = (Merged::default(), DocumentBuf::new());
        for number in 0..400 {
            let name = format!("field{}", number * 7 % 300);
            let mut added = doc! { "same": number };
            added.push(&name, number);
            let added = Computed::from(Value::Document(added));
            merged.add(&added).unwrap();
            merge_object(&mut plain, &added).unwrap();
        }
        assert!(matches!(merged, Merged::Many(_)));
        assert_eq!(merged.finish(), plain);
    }

    #[test]
    fn what_is_no_document_is_refused() {
        let mut merged = Merged::default();
        let long = doc! { "a": ("x".repeat(2 * TABLE_BYTES)) };
        merged.add(&Computed::from(Value::Document(long))).unwrap();
        merged.add(&Computed::NULL).unwrap();
        assert_eq!(merged.add(&1.into()).unwrap_err().code, 40400);
    }
}
