//! A set of entries as a number: whether two maps hold the same without comparing entry with entry.
//!
//! ```text
//! sum        the hashes of all entries, added modulo 2^64
//! hash       of x = XXH3-64 of the key XOR mix(id), XOR the payload's XXH3-64 with the seed 1 where it
//!            is not empty: mix(x)
//! mix(x)     SplitMix64's last steps: x = (x XOR x >> 30) × bf58476d1ce4e5b9;
//!            x = (x XOR x >> 27) × 94d049bb133111eb; x XOR x >> 31
//! ```

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// So many entries, and the sum of their hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryDigest {
    pub entries: u64,
    pub hash: u64,
}

impl EntryDigest {
    /// Adds an entry that is not in it.
    pub fn add(&mut self, key: &[u8], id: u64, payload: &[u8]) {
        self.add_hashed(key_hash(key), id, payload);
    }

    /// The same, where the hash of the key is at hand.
    #[inline]
    pub(crate) fn add_hashed(&mut self, key_hash: u64, id: u64, payload: &[u8]) {
        let of_payload = match payload {
            [] => 0,
            payload => xxh3_64_with_seed(payload, 1),
        };
        self.entries += 1;
        let hash = mix(key_hash ^ mix(id) ^ of_payload);
        self.hash = self.hash.wrapping_add(hash);
    }

    /// Adds what is in another, which has none of the same.
    pub fn join(&mut self, other: EntryDigest) {
        self.entries += other.entries;
        self.hash = self.hash.wrapping_add(other.hash);
    }
}

/// What [`EntryDigest::add_hashed`] takes; filters use it too.
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

    fn sum(entries: &[(&[u8], u64, &[u8])]) -> EntryDigest {
        let mut sum = EntryDigest::default();
        entries
            .iter()
            .for_each(|(key, id, payload)| sum.add(key, *id, payload));
        sum
    }

    #[test]
    fn the_order_does_not_count_and_everything_else_does() {
        let (one, other): ((&[u8], u64, &[u8]), _) = ((b"a", 1, b""), (&b"b"[..], 2, &b"x"[..]));
        assert_eq!(sum(&[one, other]), sum(&[other, one]));
        let different = [
            sum(&[one]),
            sum(&[(b"a", 2, b"")]),
            sum(&[(b"", 1, b"")]),
            sum(&[(b"a", 1, b"\0")]),
            sum(&[one, one]),
            sum(&[one, other]),
            sum(&[(b"a", 2, b"x"), (b"b", 1, b"")]),
        ];
        for (at, one) in different.iter().enumerate() {
            let same = different.iter().filter(|other| *other == one);
            assert_eq!(same.count(), 1, "{at}");
        }
    }

    #[test]
    fn sums_join() {
        let mut joined = sum(&[(b"a", 1, b"")]);
        joined.join(sum(&[(b"b", 1, b"")]));
        assert_eq!(joined, sum(&[(b"b", 1, b""), (b"a", 1, b"")]));
    }
}
