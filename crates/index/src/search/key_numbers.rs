//! Numbers of keys, one for each path and term.

use windrow_text::{KeptTerms, TermGeneration};

use crate::sink::KeyNumber;

/// Numbers keys, and decides when words and terms are forgotten.
pub(super) struct KeyNumbers {
    generation: TermGeneration,
    next: u32,
    kept: KeptTerms,
}

impl Default for KeyNumbers {
    fn default() -> KeyNumbers {
        KeyNumbers {
            generation: TermGeneration::new(),
            next: 0,
            kept: KeptTerms::default(),
        }
    }
}

impl KeyNumbers {
    /// Returns the number of another key.
    pub fn next(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        number
    }

    /// Returns a number with its generation. Returns `None` if words hardly repeat: the numbers are
    /// not worth using then.
    pub fn of(&self, number: u32) -> Option<KeyNumber> {
        self.kept.are_repeated().then_some(KeyNumber {
            generation: self.generation,
            number,
        })
    }

    /// Adds a number of words that were looked up.
    pub fn count_lookups(&mut self, words: usize) {
        self.kept.count_lookups(words);
    }

    /// Forgets the numbers if this number of words and terms with this total length is too large.
    /// Returns `true` if it does: all words and terms must be forgotten then.
    pub fn forget_if_full(&mut self, terms: usize, bytes: usize) -> bool {
        let is_full = self.kept.is_full(terms, bytes);
        if is_full {
            self.forget();
        }
        is_full
    }

    /// Forgets the numbers.
    pub fn forget(&mut self) {
        self.generation = TermGeneration::new();
        self.next = 0;
    }
}
