//! Looking for one key in commits of which nobody has made the entries yet. Where no document has the bytes
//! of the key's value, none has the key: searching bytes takes a tenth of the time of making entries, where
//! documents have many.

use memchr::memmem::Finder;
use windrow_document::Value;
use windrow_document::key::KeyReader;
use windrow_index::{Definition, KeyKind};

/// A key that is looked for, and bytes that every document has which has the key.
pub struct KeyProbe<'k> {
    pub key: &'k [u8],
    bytes: Finder<'static>,
}

/// Shorter values stand in documents by chance.
const BYTES_MIN: usize = 4;

impl<'k> KeyProbe<'k> {
    /// None where documents may have the key without having its bytes: where keys are not the values
    /// themselves, or those are of types that compare with others.
    pub fn of(definition: &Definition, key: &'k [u8]) -> Option<KeyProbe<'k>> {
        if definition.clustered || !definition.has_plain_keys() {
            return None;
        }
        let mut reader = KeyReader::new(key, &[]);
        let fields = definition.fields.iter();
        let values = fields.map_while(|field| reader.value(field.kind == KeyKind::Descending));
        let bytes = values.filter_map(bytes_of).max_by_key(Vec::len)?;
        (bytes.len() >= BYTES_MIN).then(|| KeyProbe {
            key,
            bytes: Finder::new(&bytes).into_owned(),
        })
    }

    /// Whether one of these documents may have the key.
    pub fn may_be_in(&self, documents: &[u8]) -> bool {
        self.bytes.find(documents).is_some()
    }
}

/// The bytes of a value in every document that has one equal to it.
fn bytes_of(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.into_bytes()),
        Value::ObjectId(id) => Some(id.0.to_vec()),
        _ => None,
    }
}
