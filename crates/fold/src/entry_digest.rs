//! A digest of a set of entries. Two maps are compared by their digests instead of entry by entry.
//! The order of the entries does not matter.
//!
//! ```text
//! digest     the sum of the hashes of all entries, modulo 2^64
//! hash       mix(x), where x = XXH3-64 of the key XOR mix(id), XOR XXH3-64 of the payload with the
//!            seed 1 if the payload is not empty
//! mix(x)     SplitMix64's last steps: x = (x XOR x >> 30) × bf58476d1ce4e5b9;
//!            x = (x XOR x >> 27) × 94d049bb133111eb; x XOR x >> 31
//! ```

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::entry::RecordId;

/// The digest of a set of entries.
///
/// ```
/// use windrow_fold::{EntryDigest, RecordId};
///
/// let (mut one, mut other) = (EntryDigest::default(), EntryDigest::default());
/// one.add(b"a", RecordId(1), b"");
/// one.add(b"b", RecordId(2), b"");
/// other.add(b"b", RecordId(2), b"");
/// other.add(b"a", RecordId(1), b"");
/// assert_eq!(one, other);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryDigest {
    /// The number of entries.
    pub entries: u64,
    /// The sum of the hashes of the entries, modulo 2^64.
    pub hash: u64,
}

impl EntryDigest {
    /// Adds an entry. Each entry must be added once.
    pub fn add(&mut self, key: &[u8], id: RecordId, payload: &[u8]) {
        self.add_hashed(key_hash(key), id, payload);
    }

    /// Adds an entry whose [`key_hash`] is known.
    #[inline]
    pub(crate) fn add_hashed(&mut self, key_hash: u64, id: RecordId, payload: &[u8]) {
        let of_payload = match payload {
            [] => 0,
            payload => xxh3_64_with_seed(payload, 1),
        };
        self.entries += 1;
        let hash = mix(key_hash ^ mix(id.0) ^ of_payload);
        self.hash = self.hash.wrapping_add(hash);
    }

    /// Adds the entries of another digest. The two sets must be disjoint.
    pub fn combine(&mut self, other: EntryDigest) {
        self.entries += other.entries;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// Hashes a key for [`EntryDigest::add_hashed`] and for filters.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(entries: &[(&[u8], u64, &[u8])]) -> EntryDigest {
        let mut digest = EntryDigest::default();
        entries
            .iter()
            .for_each(|(key, id, payload)| digest.add(key, RecordId(*id), payload));
        digest
    }

    #[test]
    fn digests_depend_on_the_entries_and_not_on_their_order() {
        let (one, other): ((&[u8], u64, &[u8]), _) = ((b"a", 1, b""), (&b"b"[..], 2, &b"x"[..]));
        assert_eq!(digest(&[one, other]), digest(&[other, one]));
        let different = [
            digest(&[one]),
            digest(&[(b"a", 2, b"")]),
            digest(&[(b"", 1, b"")]),
            digest(&[(b"a", 1, b"\0")]),
            digest(&[one, one]),
            digest(&[one, other]),
            digest(&[(b"a", 2, b"x"), (b"b", 1, b"")]),
        ];
        for (at, one) in different.iter().enumerate() {
            let same = different.iter().filter(|other| *other == one);
            assert_eq!(same.count(), 1, "{at}");
        }
    }

    #[test]
    fn digests_combine() {
        let mut joined = digest(&[(b"a", 1, b"")]);
        joined.combine(digest(&[(b"b", 1, b"")]));
        assert_eq!(joined, digest(&[(b"b", 1, b""), (b"a", 1, b"")]));
    }
}
