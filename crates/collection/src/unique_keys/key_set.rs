//! The hashes of the keys that a generation adds to an index. They answer whether a key may be
//! present without creating entries.

use std::hash::{BuildHasherDefault, Hasher};

use windrow_fold::{HashedKey, KeyFilter};

/// A hasher for tables whose keys are hashes already.
pub type IdentityHasherBuilder = BuildHasherDefault<IdentityHasher>;

/// The set of hashes.
#[derive(Debug)]
pub struct KeySet {
    hashes: Vec<u64>,
    filter: KeyFilter,
    /// The bytes that [`take_growth`](Self::take_growth) has reported.
    bytes_reported: usize,
}

/// About one in twenty thousand absent keys passes a filter with this many bits per key.
const BITS_PER_KEY: usize = 32;
const ROOM_MIN: usize = 1 << 10;

impl Default for KeySet {
    fn default() -> KeySet {
        KeySet {
            hashes: Vec::new(),
            filter: KeyFilter::new(0, BITS_PER_KEY),
            bytes_reported: 0,
        }
    }
}

impl KeySet {
    pub fn add(&mut self, hashes: impl IntoIterator<Item = u64>) {
        let before = self.hashes.len();
        self.hashes.extend(hashes);
        let new = &self.hashes[before..];
        if self.filter.has_room(new.len()) {
            self.filter.add(new);
            return;
        }
        let room = (2 * self.hashes.len()).max(ROOM_MIN);
        self.filter = KeyFilter::new(room, BITS_PER_KEY);
        self.filter.add(&self.hashes);
    }

    /// Marks the keys that may be present. An unmarked key is absent.
    pub fn mark_possible(&self, keys: &[HashedKey<'_>], possible: &mut [bool]) {
        self.filter.mark_possible(keys, possible);
    }

    /// Returns all hashes.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// Returns the growth in bytes since the last call.
    pub fn take_growth(&mut self) -> usize {
        let before = self.bytes_reported;
        self.bytes_reported = self.bytes();
        self.bytes_reported - before
    }

    /// Returns the memory in bytes.
    pub fn bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>() + self.filter.bytes() as usize
    }
}

/// Uses the key itself as its hash, see [`IdentityHasherBuilder`].
#[derive(Default)]
pub struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = HashedKey::new(bytes).hash;
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
