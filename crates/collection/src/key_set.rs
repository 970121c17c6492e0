//! The keys that a generation gives to an index, by their hashes: whether one is there is one look into a
//! filter, where entries would have to be made and searched.

use std::hash::{BuildHasherDefault, Hasher};

use windrow_fold::{HashedKey, KeyFilter};

/// Finds places in a table by numbers that are hashes already.
pub type IdentityHasherBuilder = BuildHasherDefault<IdentityHasher>;

/// See the module.
#[derive(Debug)]
pub struct KeySet {
    hashes: Vec<u64>,
    filter: KeyFilter,
    /// What [`grown`](Self::grown) has told of.
    bytes_told: usize,
}

/// One absent key in some twenty thousand passes, where there is no more room.
const BITS_PER_KEY: usize = 32;
const ROOM_MIN: usize = 1 << 10;

impl Default for KeySet {
    fn default() -> KeySet {
        KeySet {
            hashes: Vec::new(),
            filter: KeyFilter::new(0, BITS_PER_KEY),
            bytes_told: 0,
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

    /// Notes which of these keys may be there: a key that is not noted is not.
    pub fn mark_possible(&self, keys: &[HashedKey<'_>], held: &mut [bool]) {
        self.filter.mark_possible(keys, held);
    }

    /// The hashes of all.
    pub fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    /// By how many bytes it has grown since it was asked the last time.
    pub fn grown(&mut self) -> usize {
        let before = self.bytes_told;
        self.bytes_told = self.bytes();
        self.bytes_told - before
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        self.hashes.capacity() * size_of::<u64>() + self.filter.bytes() as usize
    }
}

/// See [`IdentityHasherBuilder`].
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
