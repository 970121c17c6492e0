//! Bloom filters: whether a key may be in some blocks, or an id if the keys are empty.
//!
//! A page is an array of lines of 64 bytes. The hash of a key selects a line and six bits in it, so
//! that a lookup touches one cache line and reads the page as it is in the block cache. With 10
//! bits a key about 1 in 100 absent keys passes, with 16 bits about 1 in 700.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::entry::RecordId;

pub(crate) use crate::entry_digest::key_hash as hash;
use crate::prefetch;

const LINE_BYTES: usize = 64;
const PROBES: u32 = 6;

/// Hashes the id of an entry with an empty key.
pub(crate) fn id_hash(id: RecordId) -> u64 {
    hash(&id.0.to_be_bytes())
}

/// A key and its hash for filters.
#[derive(Clone, Copy, Debug)]
pub struct HashedKey<'k> {
    /// The key bytes.
    pub key: &'k [u8],
    /// The hash, XXH3-64.
    pub hash: u64,
}

impl<'k> HashedKey<'k> {
    /// Hashes a key.
    pub fn new(key: &'k [u8]) -> HashedKey<'k> {
        HashedKey {
            key,
            hash: hash(key),
        }
    }
}

/// Builds a page from hashes, with this many bits a key.
pub fn build(hashes: &[u64], bits_per_key: usize) -> Vec<u8> {
    let lines = (hashes.len() * bits_per_key)
        .div_ceil(LINE_BYTES * 8)
        .max(1);
    let mut page = vec![0; lines * LINE_BYTES];
    for hash in hashes {
        let start = line_of(*hash, lines) * LINE_BYTES;
        for bit in bits_of(*hash) {
            // A missing bit would hide the key, so indexing may panic here.
            page[start + bit / 8] |= 1 << (bit % 8);
        }
    }
    page
}

/// Prefetches the lines of these hashes.
pub fn touch(page: &[u8], hashes: impl Iterator<Item = u64>) {
    let lines = page.len() / LINE_BYTES;
    let bytes = hashes.filter_map(|hash| page.get(line_of(hash, lines) * LINE_BYTES));
    prefetch::load(bytes.copied());
}

/// Returns `false` only if the page was built without this hash.
pub fn may_contain(page: &[u8], hash: u64) -> bool {
    let lines = page.len() / LINE_BYTES;
    // A page that is too short excludes nothing. The blocks are read then.
    if lines == 0 {
        return true;
    }
    let start = line_of(hash, lines) * LINE_BYTES;
    let Some(line) = page.get(start..).and_then(<[u8]>::first_chunk) else {
        return true;
    };
    // All bits are tested without a branch, which could not be predicted.
    bits_of(hash).fold(true, |all, bit| all & is_set(line, bit))
}

/// A filter in memory. Keys are added while others read it.
#[derive(Debug)]
pub struct KeyFilter {
    lines: Box<[Line]>,
    /// The number of keys that it has room for.
    room: usize,
    /// The number of keys added. The lock also orders writers: bits are set by a load and a store,
    /// which two writers at once would lose.
    added: Mutex<usize>,
}

const WORD_BITS: usize = u64::BITS as usize;
/// The lines of this many hashes are prefetched at once.
const ADDED_TOGETHER: usize = 64;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; LINE_BYTES * 8 / WORD_BITS]);

impl Line {
    fn word(&self, bit: usize) -> &AtomicU64 {
        &self.0[(bit / WORD_BITS) % self.0.len()]
    }
}

impl KeyFilter {
    /// Creates an empty filter for `room` keys, with this many bits a key.
    pub fn new(room: usize, bits_per_key: usize) -> KeyFilter {
        let lines = (room * bits_per_key).div_ceil(LINE_BYTES * 8).max(1);
        KeyFilter {
            lines: (0..lines).map(|_| Line::default()).collect(),
            room,
            added: Mutex::default(),
        }
    }

    /// Returns the number of keys that the filter has room for.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Returns `true` if there is room for this many further keys.
    pub fn has_room(&self, keys: usize) -> bool {
        *self.added.lock() + keys <= self.room
    }

    /// Adds keys by their hashes.
    pub fn add(&self, hashes: &[u64]) {
        let mut added = self.added.lock();
        *added += hashes.len();
        for together in hashes.chunks(ADDED_TOGETHER) {
            self.touch(together.iter().copied());
            for hash in together {
                let line = self.line(*hash);
                for bit in bits_of(*hash) {
                    let (word, set) = (line.word(bit), 1 << (bit % WORD_BITS));
                    word.store(word.load(Ordering::Relaxed) | set, Ordering::Relaxed);
                }
            }
        }
    }

    /// Sets the flags of the keys that may have been added. A key without a flag was not added.
    pub fn mark_possible(&self, keys: &[HashedKey<'_>], is_possible: &mut [bool]) {
        debug_assert_eq!(keys.len(), is_possible.len());
        self.touch(keys.iter().map(|key| key.hash));
        for (key, is_possible) in keys.iter().zip(is_possible) {
            *is_possible |= self.may_contain(key.hash);
        }
    }

    fn may_contain(&self, hash: u64) -> bool {
        let line = self.line(hash);
        let is_set = |bit| line.word(bit).load(Ordering::Relaxed) >> (bit % WORD_BITS) & 1 == 1;
        bits_of(hash).fold(true, |all, bit| all & is_set(bit))
    }

    fn touch(&self, hashes: impl Iterator<Item = u64>) {
        let words = hashes.map(|hash| self.line(hash).word(0));
        prefetch::load(words.map(|word| word.load(Ordering::Relaxed) as u8));
    }

    /// Returns the memory of the filter, in bytes.
    pub fn bytes(&self) -> u64 {
        (self.lines.len() * LINE_BYTES) as u64
    }

    fn line(&self, hash: u64) -> &Line {
        &self.lines[line_of(hash, self.lines.len())]
    }
}

#[inline]
fn is_set(line: &[u8; LINE_BYTES], bit: usize) -> bool {
    line[(bit / 8) % LINE_BYTES] >> (bit % 8) & 1 == 1
}

fn line_of(hash: u64, lines: usize) -> usize {
    ((u128::from(hash) * lines as u128) >> 64) as usize
}

fn bits_of(hash: u64) -> impl Iterator<Item = usize> {
    let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..PROBES).map(move |probe| (mixed >> (9 * probe + 1)) as usize & (LINE_BYTES * 8 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_members_and_few_others_pass() {
        let hash_of = |number: u64| hash(&number.to_be_bytes());
        let members: Vec<u64> = (0..20_000).map(hash_of).collect();
        for (bits, strangers_max) in [(10, 2_500), (16, 300)] {
            let page = build(&members, bits);
            assert!(members.iter().all(|member| may_contain(&page, *member)));
            let strangers = (20_000..120_000)
                .map(hash_of)
                .filter(|hash| may_contain(&page, *hash))
                .count();
            assert!(strangers < strangers_max, "{strangers} of 100,000");
        }
    }

    #[test]
    fn keys_are_added_to_a_filter_in_memory() {
        let filter = KeyFilter::new(20_000, 16);
        let hash_of = |number: u64| hash(&number.to_be_bytes());
        assert!(!(0..20_000).any(|number| filter.may_contain(hash_of(number))));
        let hashes: Vec<u64> = (0..20_000).map(hash_of).collect();
        hashes.chunks(700).for_each(|some| filter.add(some));
        assert!((0..20_000).all(|number| filter.may_contain(hash_of(number))));
        let candidates = (20_000..120_000).filter(|number| filter.may_contain(hash_of(*number)));
        assert!(candidates.count() < 300);
    }
}
