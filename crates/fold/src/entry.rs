//! The entries of a map, and their order.

use std::cmp::Ordering;
use std::fmt;

use bytes::Bytes;
use windrow_storage::Position;

/// The number of a record of a collection, assigned in the order of insertion. Every entry of a map
/// has one; a map that does not need it uses 0.
///
/// Packed postings (crate `windrow_postings`) hold the bare numbers, since they are unpacked into
/// arrays for arithmetic on many at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct RecordId(pub u64);

impl RecordId {
    /// The least id. With a key, it is the lower bound of the entries with this key.
    pub const MIN: RecordId = RecordId(0);
    /// The greatest id. With a key, it is the upper bound of the entries with this key.
    pub const MAX: RecordId = RecordId(u64::MAX);

    /// Returns the next id. Returns the greatest one for itself.
    #[inline]
    pub fn next(self) -> RecordId {
        RecordId(self.0.saturating_add(1))
    }

    /// Returns this id and those that follow it.
    #[inline]
    pub fn and_following(self) -> impl Iterator<Item = RecordId> {
        (self.0..).map(RecordId)
    }

    /// Returns the id before. Returns the least one for itself.
    #[inline]
    pub fn previous(self) -> RecordId {
        RecordId(self.0.saturating_sub(1))
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What entries are ordered by, apart from their positions: the key, then the record id. All
/// versions of an entry have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryKey<'k> {
    /// The key bytes.
    pub key: &'k [u8],
    /// The record id.
    pub id: RecordId,
}

impl<'k> EntryKey<'k> {
    /// Creates an entry key.
    #[inline]
    pub fn new(key: &'k [u8], id: RecordId) -> EntryKey<'k> {
        EntryKey { key, id }
    }

    /// Returns the lower bound of all entries with this key.
    #[inline]
    pub fn first_of(key: &'k [u8]) -> EntryKey<'k> {
        EntryKey::new(key, RecordId::MIN)
    }
}

/// An [`EntryKey`] that owns its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryKeyBuf {
    /// The key bytes.
    pub key: Vec<u8>,
    /// The record id.
    pub id: RecordId,
}

impl EntryKeyBuf {
    /// Returns a view of the entry key.
    #[inline]
    pub fn as_key(&self) -> EntryKey<'_> {
        EntryKey::new(&self.key, self.id)
    }
}

impl From<EntryKey<'_>> for EntryKeyBuf {
    fn from(entry_key: EntryKey<'_>) -> EntryKeyBuf {
        EntryKeyBuf {
            key: entry_key.key.to_vec(),
            id: entry_key.id,
        }
    }
}

impl Ord for EntryKey<'_> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        compare_keys(self.key, other.key).then(self.id.cmp(&other.id))
    }
}

impl PartialOrd for EntryKey<'_> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One version of an entry of a map. Entries are ordered by key, then by id, then by position with
/// the newest first. If one commit adds an entry twice, the one with the smallest payload counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key bytes.
    pub key: &'a [u8],
    /// The record id.
    pub id: RecordId,
    /// The position of the commit that wrote the version. [`Position::ZERO`] if the version is
    /// older than every snapshot: the entry is *settled*.
    pub position: Position,
    /// The version is a tombstone: it hides the versions of this entry in older sources.
    pub deleted: bool,
    /// The payload. Empty in most indexes.
    pub payload: &'a [u8],
}

/// A version of an entry that a lookup found.
pub(crate) enum EntryVersion {
    /// The entry is deleted.
    Tombstone,
    /// The payload of the entry.
    Payload(Bytes),
}

impl EntryVersion {
    /// Returns the payload, or `None` for a tombstone.
    pub fn payload(self) -> Option<Bytes> {
        match self {
            EntryVersion::Tombstone => None,
            EntryVersion::Payload(payload) => Some(payload),
        }
    }
}

/// The direction in which a cursor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// In ascending order.
    Forward,
    /// In descending order. Versions of one entry still come with the newest first.
    Backward,
}

impl<'a> Entry<'a> {
    /// Returns the key and the id, which all versions of the entry share.
    #[inline]
    pub fn entry_key(&self) -> EntryKey<'a> {
        EntryKey::new(self.key, self.id)
    }

    /// Returns `true` if both are versions of the same entry.
    #[inline]
    pub fn same_entry(&self, other: &Entry<'_>) -> bool {
        self.id == other.id && same_key(self.key, other.key)
    }
}

/// Compares keys. The keys of documents are empty, and comparing two empty slices with `memcmp`
/// costs fifty times as much as comparing their lengths.
#[inline]
pub fn compare_keys(one: &[u8], other: &[u8]) -> Ordering {
    if one.is_empty() || other.is_empty() {
        one.len().cmp(&other.len())
    } else {
        one.cmp(other)
    }
}

/// Returns `true` if the keys are equal. Faster than `==` if keys are empty, see [`compare_keys`].
#[inline]
pub fn same_key(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}

/// The first bytes of a key, padded with zeros. Two heads compare as numbers like their keys,
/// unless they are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHead([u8; KeyHead::BYTES]);

impl KeyHead {
    /// The number of bytes.
    pub const BYTES: usize = 16;

    /// Takes the head of a key.
    #[inline]
    pub fn new(key: &[u8]) -> KeyHead {
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

    /// Returns the head as a big-endian number.
    #[inline]
    pub fn number(&self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// Returns the whole key of `length` bytes, or `None` if it is longer than the head.
    #[inline]
    pub fn key(&self, length: usize) -> Option<&[u8]> {
        self.0.get(..length)
    }
}

/// Returns the first eight bytes of a key as a big-endian number, padded with zeros. Two prefixes
/// compare like their keys, unless they are equal.
#[inline]
pub fn key_prefix(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(buffer) => u64::from_be_bytes(*buffer),
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

/// Returns the number of bytes that the two slices have in common at their beginning.
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
            assert!(KeyHead::new(pair[0]).number() <= KeyHead::new(pair[1]).number());
            assert_eq!(KeyHead::new(pair[0]).key(pair[0].len()), Some(pair[0]));
        }
        assert_eq!(key_prefix(b"a"), 0x61 << 56);
    }

    #[test]
    fn empty_keys_are_ordered() {
        let keys: [&[u8]; 4] = [b"", b"\x00", b"a", b"ab"];
        for (at, one) in keys.iter().enumerate() {
            for (other_at, other) in keys.iter().enumerate() {
                assert_eq!(compare_keys(one, other), at.cmp(&other_at));
                assert_eq!(same_key(one, other), at == other_at);
            }
        }
    }

    #[test]
    fn common_prefixes_are_counted() {
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
