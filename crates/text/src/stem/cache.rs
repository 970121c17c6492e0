//! A cache of stems.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

/// The number of slots; a power of two. A slot has 48 bytes, so the slots fit into the second-level
/// cache of a CPU.
const SLOTS: usize = 4096;

/// The maximum length in bytes of a cached word. Longer words are rare and would make each slot
/// larger.
const WORD_BYTES_MAX: usize = 36;

/// The maximum length in bytes of the part of a stem that is not a prefix of its word. The few
/// stems with a longer part are not cached.
const TAIL_BYTES_MAX: usize = 9;

/// The number of words after which the slots are allocated. A search string has a few words only
/// and should not pay for the allocation.
const WORDS_BEFORE_USE: u32 = 256;

/// A direct-mapped cache: the hash of a word selects its slot, and a new word replaces the old one.
pub(super) struct StemCache {
    hasher: FixedState,
    slots: Vec<Slot>,
    words_before_use: u32,
}

/// A word and its stem.
#[derive(Clone)]
struct Slot {
    word: [u8; WORD_BYTES_MAX],
    word_bytes: u8,
    /// The length in bytes of the prefix that the word and its stem share.
    prefix_bytes: u8,
    /// The length of the rest of the stem. 0 for most words: their stem is a prefix.
    tail_bytes: u8,
    tail: [u8; TAIL_BYTES_MAX],
}

/// The result of a lookup.
pub(super) enum CacheLookup<'word, 'cache> {
    Unknown,
    /// The stem: a prefix of the word.
    Prefix(&'word str),
    /// The stem in two parts: a prefix of the word, and the end that replaces the rest.
    Changed(&'word str, &'cache str),
}

impl StemCache {
    pub(super) fn new() -> StemCache {
        // Collisions cost time but do not change results, so a fixed seed is sufficient.
        StemCache {
            hasher: FixedState::default(),
            slots: Vec::new(),
            words_before_use: WORDS_BEFORE_USE,
        }
    }

    /// Returns the stored stem of a word.
    pub(super) fn find<'word>(&self, word: &'word str) -> CacheLookup<'word, '_> {
        let Some(slot) = self.slots.get(self.slot_index(word)) else {
            return CacheLookup::Unknown;
        };
        let is_known = usize::from(slot.word_bytes) == word.len()
            && slot.word.get(..word.len()) == Some(word.as_bytes());
        let Some(prefix) = word.get(..usize::from(slot.prefix_bytes)) else {
            return CacheLookup::Unknown;
        };
        if !is_known {
            return CacheLookup::Unknown;
        }
        if slot.tail_bytes == 0 {
            return CacheLookup::Prefix(prefix);
        }
        let tail = slot.tail.get(..usize::from(slot.tail_bytes));
        match tail.map(std::str::from_utf8) {
            Some(Ok(tail)) => CacheLookup::Changed(prefix, tail),
            _ => CacheLookup::Unknown,
        }
    }

    /// Stores the stem of a word, except for the first [`WORDS_BEFORE_USE`] words, for words that
    /// are empty or too long, and for stems that end too differently.
    pub(super) fn remember(&mut self, word: &str, stem: &str) {
        if word.is_empty() || word.len() > WORD_BYTES_MAX {
            return;
        }
        if self.words_before_use > 0 {
            self.words_before_use -= 1;
            return;
        }
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, Slot::FREE);
        }
        let index = self.slot_index(word);
        let prefix_bytes = common_prefix(word, stem);
        let tail = stem.as_bytes().get(prefix_bytes..).unwrap_or_default();
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        let Some(target) = slot.tail.get_mut(..tail.len()) else {
            return;
        };
        target.copy_from_slice(tail);
        slot.tail_bytes = tail.len() as u8;
        if let Some(target) = slot.word.get_mut(..word.len()) {
            target.copy_from_slice(word.as_bytes());
        }
        slot.word_bytes = word.len() as u8;
        slot.prefix_bytes = prefix_bytes as u8;
    }

    fn slot_index(&self, word: &str) -> usize {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(word.as_bytes());
        hasher.finish() as usize % SLOTS
    }
}

impl Slot {
    const FREE: Slot = Slot {
        word: [0; WORD_BYTES_MAX],
        word_bytes: 0,
        prefix_bytes: 0,
        tail_bytes: 0,
        tail: [0; TAIL_BYTES_MAX],
    };
}

/// Returns the length in bytes of the longest common prefix, which ends at a character boundary.
fn common_prefix(word: &str, stem: &str) -> usize {
    word.chars()
        .zip(stem.chars())
        .take_while(|(left, right)| left == right)
        .map(|(character, _)| character.len_utf8())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{CacheLookup, StemCache};

    #[test]
    fn find_returns_stored_stems() {
        let check = |word: &str, stem: &str, is_remembered: bool| {
            let mut cache = StemCache::new();
            assert!(
                matches!(cache.find(word), CacheLookup::Unknown),
                "{word:?} before"
            );
            for _ in 0..=super::WORDS_BEFORE_USE {
                assert!(
                    matches!(cache.find(word), CacheLookup::Unknown),
                    "{word:?} before use"
                );
                cache.remember(word, stem);
            }
            let found = match cache.find(word) {
                CacheLookup::Unknown => None,
                CacheLookup::Prefix(stem) => Some(stem.to_string()),
                CacheLookup::Changed(prefix, tail) => Some(format!("{prefix}{tail}")),
            };
            assert_eq!(found.as_deref(), is_remembered.then_some(stem), "{word:?}");
            assert!(matches!(cache.find("other"), CacheLookup::Unknown));
        };
        check("running", "run", true);
        check("happy", "happi", true);
        check("same", "same", true);
        check("ağacı", "ağaç", true);
        check("über", "uber", true);
        check("word", "another w", true);
        check("word", "another wo", false);
        check("", "", false);
        check(&"a".repeat(36), "a", true);
        check(&"a".repeat(37), "a", false);
    }
}
