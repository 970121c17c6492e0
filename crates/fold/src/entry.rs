//! One entry of a map, and the order of entries.

use std::cmp::Ordering;

/// One version of one thing in a map. Ordered by key, then id, then position, newest first. What is
/// added twice in one commit counts once: with the smallest payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    pub key: &'a [u8],
    pub id: u64,
    /// The log position that made it; 0 when it is older than every snapshot ("settled").
    pub position: u64,
    /// Says that what older sources hold under this key and id is gone.
    pub deleted: bool,
    pub payload: &'a [u8],
}

/// Which way entries are gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

impl Entry<'_> {
    /// Orders by key and id; versions of the same are equal.
    pub fn compare_place(&self, other: &Entry<'_>) -> Ordering {
        compare_keys(self.key, other.key).then(self.id.cmp(&other.id))
    }

    /// Whether both are versions of the same.
    pub fn same_place(&self, other: &Entry<'_>) -> bool {
        self.id == other.id && same_key(self.key, other.key)
    }
}

/// Orders keys. Documents have none: to compare no bytes at all costs fifty times as much as not to,
/// where the slices point nowhere.
#[inline]
pub fn compare_keys(one: &[u8], other: &[u8]) -> Ordering {
    if one.is_empty() || other.is_empty() {
        one.len().cmp(&other.len())
    } else {
        one.cmp(other)
    }
}

/// Whether keys are equal. See [`compare_keys`].
#[inline]
pub fn same_key(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}

/// The first bytes of a key, zeros behind a shorter one. As a number they compare like the key, as far
/// as they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHead([u8; KeyHead::BYTES]);

impl KeyHead {
    pub const BYTES: usize = 16;

    #[inline]
    pub fn of(key: &[u8]) -> KeyHead {
        if let Some(head) = key.first_chunk() {
            return KeyHead(*head);
        }
        let behind = match key.last_chunk() {
            Some(last) if key.len() > 8 => {
                u64::from_be_bytes(*last) << (8 * (KeyHead::BYTES - key.len()))
            }
            _ => 0,
        };
        let number = u128::from(key_prefix(key)) << 64 | u128::from(behind);
        KeyHead(number.to_be_bytes())
    }

    #[inline]
    pub fn number(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// The whole key, where it is no longer than the head.
    #[inline]
    pub fn key(&self, length: usize) -> Option<&[u8]> {
        self.0.get(..length)
    }
}

/// The first eight bytes of a key as a number: compares like the key, as far as it goes.
#[inline]
pub fn key_prefix(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let shifted = key
                .iter()
                .fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
            if key.is_empty() {
                0
            } else {
                shifted << (8 * (8 - key.len()))
            }
        }
    }
}

/// How many bytes two keys have in common at their beginning.
#[inline]
pub fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    let words = one.as_chunks().0.iter().zip(other.as_chunks().0);
    let mut length = 0;
    for (a, b) in words {
        let differing = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differing != 0 {
            return length + differing.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let pairs = one.iter().zip(other).skip(length);
    length + pairs.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_compare_like_keys() {
        let keys: [&[u8]; 7] = [
            b"",
            b"\x00",
            b"\x00\x01",
            b"a",
            b"abcdefgh",
            b"abcdefghi",
            b"b",
        ];
        for pair in keys.windows(2) {
            assert!(key_prefix(pair[0]) <= key_prefix(pair[1]));
            assert!(KeyHead::of(pair[0]).number() <= KeyHead::of(pair[1]).number());
            assert_eq!(KeyHead::of(pair[0]).key(pair[0].len()), Some(pair[0]));
        }
        assert_eq!(key_prefix(b"a"), 0x61 << 56);
    }

    #[test]
    fn empty_keys_are_keys() {
        let keys: [&[u8]; 4] = [b"", b"\x00", b"a", b"ab"];
        for (at, one) in keys.iter().enumerate() {
            for (other_at, other) in keys.iter().enumerate() {
                assert_eq!(compare_keys(one, other), at.cmp(&other_at));
                assert_eq!(same_key(one, other), at == other_at);
            }
        }
    }

    #[test]
    fn common_beginnings_are_counted() {
        let check = |one: &str, other: &str, expected: usize| {
            assert_eq!(common_prefix(one.as_bytes(), other.as_bytes()), expected);
            assert_eq!(common_prefix(other.as_bytes(), one.as_bytes()), expected);
        };
        check("", "a", 0);
        check("abc", "abd", 2);
        check("abc", "abcdefghij", 3);
        check("abcdefgh", "abcdefghij", 8);
        check("abcdefghi", "abcdefghj", 8);
        check("abcdefghijklmnopq", "abcdefghijklmnopr", 16);
        check("abcdeXgh", "abcdeYgh", 5);
    }
}
