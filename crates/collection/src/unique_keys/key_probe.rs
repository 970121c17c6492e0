//! The search for one key in commits without index entries. If no document contains the bytes of
//! the key's value, no document has the key. For documents with many entries, a byte search takes a
//! tenth of the time to create the entries.

use memchr::memmem::Finder;
use windrow_document::Value;
use windrow_document::key::KeyReader;
use windrow_index::{Definition, KeyKind};

/// A key to look up, and bytes that each document with this key contains.
pub struct KeyProbe<'k> {
    pub key: &'k [u8],
    bytes: Finder<'static>,
}

/// Shorter values occur in documents by chance.
const BYTES_MIN: usize = 4;

impl<'k> KeyProbe<'k> {
    /// Creates a probe. Returns `None` if documents with the key may lack its bytes: if keys are
    /// derived from values, or values of different types compare equal.
    pub fn new(definition: &Definition, key: &'k [u8]) -> Option<KeyProbe<'k>> {
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

    /// Returns `true` if one of these documents may have the key.
    pub fn may_be_in(&self, documents: &[u8]) -> bool {
        self.bytes.find(documents).is_some()
    }
}

/// Returns bytes that each document with an equal value contains.
fn bytes_of(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.into_bytes()),
        Value::ObjectId(id) => Some(id.0.to_vec()),
        _ => None,
    }
}
