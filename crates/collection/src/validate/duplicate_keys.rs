//! Detection of records that share a key of a unique index, from its entries in order.

use windrow_document::json::display_prefix;
use windrow_fold::RecordId;
use windrow_index::{Definition, is_mark};

use crate::write::key_value;

/// The reported length of a key. A key may be nearly as long as a document, and a reply, which is a
/// document, contains it twice.
const KEY_BYTES_MAX: usize = 1024;

/// The duplicates found so far.
#[derive(Debug, Default)]
pub struct DuplicateKeys {
    last: Option<(Vec<u8>, RecordId)>,
    /// The entries whose key another record has, too.
    count: u64,
    first: Option<SharedKey>,
}

#[derive(Debug)]
struct SharedKey {
    key: Vec<u8>,
    payload: Vec<u8>,
    records: [RecordId; 2],
}

impl DuplicateKeys {
    /// Adds the next entry, in the order of the index.
    pub fn add(&mut self, key: &[u8], record: RecordId, payload: &[u8]) {
        // All documents with an array at the path have the same mark.
        if is_mark(key) {
            return;
        }
        match &mut self.last {
            Some((last, before)) if last == key => {
                let records = [*before, record];
                *before = record;
                if records[0] != record {
                    self.record_duplicate(key, payload, records);
                }
            }
            Some((last, before)) => {
                last.clear();
                last.extend_from_slice(key);
                *before = record;
            }
            last => *last = Some((key.to_vec(), record)),
        }
    }

    fn record_duplicate(&mut self, key: &[u8], payload: &[u8], records: [RecordId; 2]) {
        self.count += 1;
        self.first.get_or_insert_with(|| SharedKey {
            key: key.to_vec(),
            payload: payload.to_vec(),
            records,
        });
    }

    /// Returns the error of the index, or `None` if each key has one record.
    pub fn error(&self, definition: &Definition) -> Option<String> {
        let SharedKey {
            key,
            payload,
            records: [one, other],
        } = self.first.as_ref()?;
        let key = display_prefix(&key_value(definition, key, payload), KEY_BYTES_MAX);
        let more = match self.count {
            1 => String::new(),
            count => format!(", and {} more", count - 1),
        };
        Some(format!(
            "Unique index '{}' has duplicate key: {key}, first record: {}, second record: {}{more}",
            definition.name, one.0, other.0
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc, key};

    #[test]
    fn duplicate_keys_are_reported() {
        let specification = doc! { "key": { "a": 1 }, "name": "i", "unique": true };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let key = |value: i32| {
            let mut bytes = Vec::new();
            key::append(&mut bytes, Value::Int32(value).as_ref());
            bytes
        };
        let check = |entries: &[(Vec<u8>, u64)], expected: Option<&str>| {
            let mut duplicates = DuplicateKeys::default();
            for (key, record) in entries {
                duplicates.add(key, RecordId(*record), &[]);
            }
            assert_eq!(duplicates.error(&definition).as_deref(), expected);
        };
        let mark = || vec![windrow_index::MARK, 0, 0];
        check(&[], None);
        check(&[(key(1), 1), (key(2), 2), (key(3), 1)], None);
        check(&[(key(1), 7), (key(1), 7)], None);
        check(&[(mark(), 1), (mark(), 2), (key(1), 1)], None);
        check(
            &[(key(1), 1), (key(4), 2), (key(4), 5), (key(5), 9)],
            Some(
                "Unique index 'i' has duplicate key: {\"a\":4}, first record: 2, second record: 5",
            ),
        );
        check(
            &[
                (key(4), 2),
                (key(4), 5),
                (key(4), 6),
                (key(5), 1),
                (key(5), 2),
            ],
            Some(
                "Unique index 'i' has duplicate key: {\"a\":4}, first record: 2, second record: 5, and 2 more",
            ),
        );
    }

    /// A reply contains the error twice, and is no longer than a document.
    #[test]
    fn long_keys_are_truncated() {
        let specification = doc! { "key": { "a": 1 }, "name": "i", "unique": true };
        let definition = Definition::parse(specification.as_document()).unwrap();
        let mut bytes = Vec::new();
        key::append(&mut bytes, Value::from("x".repeat(9 << 20)).as_ref());
        let mut duplicates = DuplicateKeys::default();
        duplicates.add(&bytes, RecordId(1), &[]);
        duplicates.add(&bytes, RecordId(2), &[]);
        let error = duplicates.error(&definition).unwrap();
        assert!(error.len() < 2 * KEY_BYTES_MAX, "{}", error.len());
        assert!(
            error.ends_with("xxx..., first record: 1, second record: 2"),
            "{error}"
        );
    }
}
