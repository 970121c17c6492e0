//! The keys that a generation gives to an index, by their hashes: whether one is there is one look, where
//! entries would have to be made and searched.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use windrow_fold::HashedKey;

/// Finds places in a table by numbers that are hashes already.
pub type ByHash = BuildHasherDefault<Hashed>;

/// See the module.
#[derive(Debug, Default)]
pub struct KeySet {
    hashes: HashSet<u64, ByHash>,
    /// What [`grown`](Self::grown) has told of.
    bytes_told: usize,
}

impl KeySet {
    pub fn add(&mut self, hashes: impl IntoIterator<Item = u64>) {
        self.hashes.extend(hashes);
    }

    /// False only where the key is not there.
    pub fn may_hold(&self, key: &HashedKey<'_>) -> bool {
        self.hashes.contains(&key.hash)
    }

    /// By how many bytes it has grown since it was asked the last time.
    pub fn grown(&mut self) -> usize {
        let before = self.bytes_told;
        self.bytes_told = self.bytes();
        self.bytes_told - before
    }

    /// Memory held, in bytes: a hash, and a byte that says whether it is there.
    pub fn bytes(&self) -> usize {
        self.hashes.capacity() * (size_of::<u64>() + 1)
    }
}

/// See [`ByHash`].
#[derive(Default)]
pub struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = HashedKey::of(bytes).hash;
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
