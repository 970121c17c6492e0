//! Stored encrypted values.
//!
//! ```text
//! equality     14 | UUID of the key, 16 bytes | type u8 | E(K3, client's value) | metadata
//! range        15 | UUID of the key, 16 bytes | type u8 | edge count u8 | E(K3, client's value)
//!                 | metadata of each edge
//! unindexed    16 | UUID of the key, 16 bytes | type u8 | client's value
//! metadata     E(F(L_v, 1), count | contention factor), 32 bytes | tag, 32 bytes
//!              | E(F(L_v, 2), 16 bytes of 0), 32 bytes
//! ```

use windrow_document::{Type, ValueRef};

use crate::cipher;
use crate::error::Error;
use crate::payload::{InsertEntry, InsertPayload};
use crate::token::{TOKEN_BYTES, Tag, Token};
use crate::{kind, kind_of};

const METADATA_BYTES: usize = 96;
/// The offset of the tag in the metadata.
const TAG_OFFSET: usize = 32;
/// The offset of the type of the value.
const TYPE_OFFSET: usize = 17;
/// The offset of the number of edges of a range.
const EDGE_COUNT_OFFSET: usize = 18;

/// A value to store, and the tags by which it is found.
#[derive(Debug)]
pub struct StoredValue {
    /// Binary data of subtype 6.
    pub bytes: Vec<u8>,
    /// The tags, in the order of the payload's entries.
    pub tags: Vec<Tag>,
}

impl InsertPayload {
    /// Makes the value that is stored. `counts` are the new counts of the payload's entries.
    pub fn store(&self, counts: &[u64]) -> Result<StoredValue, Error> {
        let mut bytes = vec![if self.is_range {
            kind::RANGE_VALUE
        } else {
            kind::EQUALITY_VALUE
        }];
        bytes.extend_from_slice(&self.key_id);
        bytes.push(self.value_type as u8);
        if self.is_range {
            // Payloads have at most 254 edges.
            bytes.push(self.entries.len() as u8);
        }
        bytes.extend(cipher::encrypt(&self.value_key, &self.value)?);
        let mut tags = Vec::with_capacity(self.entries.len());
        for (entry, count) in self.entries.iter().zip(counts) {
            let tag = entry.tag(*count);
            bytes.extend(self.metadata(entry, *count, tag)?);
            tags.push(tag);
        }
        debug_assert_eq!(tags.len(), self.entries.len());
        Ok(StoredValue { bytes, tags })
    }

    fn metadata(&self, entry: &InsertEntry, count: u64, tag: Tag) -> Result<Vec<u8>, Error> {
        let numbers = [count.to_le_bytes(), self.contention_factor.to_le_bytes()].concat();
        let mut metadata = cipher::encrypt(&entry.server.derive(1), &numbers)?;
        metadata.extend_from_slice(&tag.0);
        metadata.extend(cipher::encrypt(&entry.server.derive(2), &[0; 16])?);
        debug_assert_eq!(metadata.len(), METADATA_BYTES);
        Ok(metadata)
    }
}

impl InsertEntry {
    fn tag(&self, count: u64) -> Tag {
        tags_of(&self.edc, count..=count)
            .next()
            .unwrap_or(Tag([0; TOKEN_BYTES]))
    }
}

/// Returns the tags of a value with its contention factor, for these counts.
pub(crate) fn tags_of(
    edc: &Token,
    counts: std::ops::RangeInclusive<u64>,
) -> impl Iterator<Item = Tag> + use<> {
    let function = edc.derive(1).function();
    counts.map(move |count| Tag(function.compute_number(count)))
}

/// Returns the tags of a stored value, none if it is not indexed. Fails if the value is malformed.
pub fn tags(value: ValueRef<'_>) -> Result<Vec<Tag>, Error> {
    let ValueRef::Binary { bytes, .. } = value else {
        return Ok(Vec::new());
    };
    let (count, header) = match kind_of(value) {
        Some(kind::EQUALITY_VALUE) => (1, TYPE_OFFSET + 1),
        Some(kind::RANGE_VALUE) => {
            let count = bytes.get(EDGE_COUNT_OFFSET).copied().unwrap_or_default();
            (usize::from(count), EDGE_COUNT_OFFSET + 1)
        }
        _ => return Ok(Vec::new()),
    };
    let metadata = bytes
        .len()
        .checked_sub(count * METADATA_BYTES)
        .filter(|start| *start > header + cipher::IV_BYTES)
        .and_then(|start| bytes.get(start..));
    let metadata = metadata.ok_or_else(|| {
        Error::bad_value(format!(
            "an encrypted value of {} bytes is too short for its metadata",
            bytes.len()
        ))
    })?;
    let tag = |block: &[u8]| Some(Tag(*block.get(TAG_OFFSET..)?.first_chunk()?));
    Ok(metadata.chunks(METADATA_BYTES).filter_map(tag).collect())
}

/// Returns the type that a stored value had before its encryption. `None` if it is not a stored
/// value.
pub fn value_type(value: ValueRef<'_>) -> Option<Type> {
    let ValueRef::Binary { bytes, .. } = value else {
        return None;
    };
    match kind_of(value)? {
        kind::EQUALITY_VALUE | kind::RANGE_VALUE | kind::UNINDEXED_VALUE => {
            Type::from_byte(*bytes.get(TYPE_OFFSET)?)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::tests::insertion;
    use crate::token::tests::hex;

    fn encrypted(bytes: &[u8]) -> ValueRef<'_> {
        ValueRef::Binary { subtype: 6, bytes }
    }

    #[test]
    fn stored_values_have_their_tags() {
        for edges in [None, Some(1), Some(254)] {
            let payload = InsertPayload::parse(&insertion(1, edges)).unwrap();
            let counts: Vec<u64> = (1..=payload.entries.len() as u64).collect();
            let stored = payload.store(&counts).unwrap();
            let value = encrypted(&stored.bytes);
            assert_eq!(tags(value).unwrap(), stored.tags);
            assert_eq!(value_type(value), Some(Type::String));
            assert_eq!(stored.bytes[1..17], [5; 16]);
            let start = if edges.is_some() { 19 } else { 18 };
            let sealed = &stored.bytes[start..start + 16 + 80];
            assert_eq!(
                cipher::decrypt(&payload.value_key, sealed),
                Some(vec![6; 80])
            );
            for (index, (entry, count)) in payload.entries.iter().zip(counts).enumerate() {
                let metadata = &stored.bytes[start + 96 + index * 96..][..96];
                let numbers = cipher::decrypt(&entry.server.derive(1), &metadata[..32]);
                assert_eq!(numbers.unwrap()[..8], count.to_le_bytes());
                let zeros = cipher::decrypt(&entry.server.derive(2), &metadata[64..]);
                assert_eq!(zeros, Some(vec![0; 16]));
                assert_eq!(
                    tags_of(&entry.edc, count..=count).next(),
                    Some(entry.tag(count))
                );
            }
        }
    }

    /// The test vector is from libmongocrypt, `test/data/iev-v2`.
    #[test]
    fn values_of_other_servers_are_read() {
        let bytes = hex(
            "0e123456781234987612341234567890120215da2a70905291b8a5b4b634732dad2b67e3d8b66c02ef4f3d\
             991405627b7b5e685062e36f5743b8890ea02fdbcc67202daac24cf3c3b5f6466c9e3fabeb43b6607eb9b9\
             cb37193e6176c680444b43414fe9a96b643a45b91b3b1b5ca7966a3681740531ddf2920cd9a640d02edf07\
             6abf87a8e31bb7b1afd78219c74f24fa538dbe68e7b9fa42edf928cadc495b51460d0c3b3174df01b0e8b1\
             9845da8b188af1ca67aaa23e828317e44cb237e3628f76de9ede194321cd9470a2df0b6923ae",
        );
        let tag = hex("8dbe68e7b9fa42edf928cadc495b51460d0c3b3174df01b0e8b19845da8b188a");
        assert_eq!(
            tags(encrypted(&bytes)).unwrap(),
            [Tag(tag.try_into().unwrap())]
        );
        assert_eq!(value_type(encrypted(&bytes)), Some(Type::String));
    }

    #[test]
    fn short_values_are_refused() {
        let payload = InsertPayload::parse(&insertion(1, Some(3))).unwrap();
        let stored = payload.store(&[1, 2, 3]).unwrap();
        for length in 0..19 + 16 + 3 * 96 {
            let cut = encrypted(&stored.bytes[..length]);
            match length {
                0 | 19..=35 => assert!(tags(cut).is_err() || length == 0, "{length}"),
                _ => drop(tags(cut)),
            }
        }
        for other in [ValueRef::Null, encrypted(&[]), encrypted(&[16; 40])] {
            assert_eq!(tags(other).unwrap(), []);
        }
        assert_eq!(value_type(encrypted(&[11; 40])), None);
    }
}
