//! The distinct terms of one document, numbered in the order of their first occurrence.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::RandomState;

/// Numbers terms: a hash table with open addressing. The text of all terms is in one string. A map
/// of owned strings would allocate once per term.
///
/// ```
/// use windrow_text::TermTable;
///
/// let mut table = TermTable::default();
/// let numbers = ["to", "be", "or", "not", "to", "be"].map(|term| table.number(term));
/// assert_eq!(numbers, [0, 1, 2, 3, 0, 1]);
/// assert_eq!((table.term(2), table.len()), ("or", 4));
/// ```
pub struct TermTable {
    hasher: RandomState,
    /// The terms, without separators.
    text: String,
    /// The start of each term in the text, and the end of the last one.
    starts: Vec<u32>,
    /// The upper half of a term's hash, and its number plus one in the lower half; 0 if the slot is
    /// free. The length is a power of two.
    slots: Vec<u64>,
}

/// The initial number of slots.
const SLOTS_MIN: usize = 256;

impl Default for TermTable {
    fn default() -> TermTable {
        TermTable {
            hasher: RandomState::default(),
            text: String::new(),
            starts: vec![0],
            slots: vec![0; SLOTS_MIN],
        }
    }
}

impl TermTable {
    /// Removes all terms. Halves a table that is mostly empty: after one huge document, each
    /// `clear` would otherwise fill all its slots.
    pub fn clear(&mut self) {
        if self.slots.len() > SLOTS_MIN && self.len() * 16 < self.slots.len() {
            self.slots.truncate(self.slots.len() / 2);
        }
        self.slots.fill(0);
        self.text.clear();
        self.starts.truncate(1);
    }

    /// Returns the number of terms.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns `true` if there are no terms.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of a term. A new term gets the number [`len`](Self::len).
    #[allow(clippy::indexing_slicing, reason = "slots are masked")]
    #[inline]
    pub fn number(&mut self, term: &str) -> u32 {
        if self.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = self.hash(term);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let number = (slot as u32).wrapping_sub(1);
            if slot >> 32 == hash >> 32 && self.bytes(number) == term.as_bytes() {
                return number;
            }
            at = (at + 1) & mask;
        }
        let number = self.len() as u32;
        self.slots[at] = slot(hash, number);
        self.text.push_str(term);
        self.starts.push(self.text.len() as u32);
        number
    }

    /// Returns the term with this number, or an empty string if there is none.
    #[inline]
    pub fn term(&self, number: u32) -> &str {
        self.text.get(self.range(number)).unwrap_or_default()
    }

    /// Returns the bytes of a term. Comparing bytes does not check character boundaries.
    #[inline]
    fn bytes(&self, number: u32) -> &[u8] {
        let text = self.text.as_bytes();
        text.get(self.range(number)).unwrap_or_default()
    }

    #[inline]
    fn range(&self, number: u32) -> Range<usize> {
        let ends = self.starts.get(number as usize..);
        let ends = ends.and_then(<[u32]>::first_chunk);
        ends.map_or(0..0, |[start, end]| *start as usize..*end as usize)
    }

    /// Returns the terms in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len() as u32).map(|number| self.term(number))
    }

    fn hash(&self, term: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(term.as_bytes());
        hasher.finish()
    }

    /// Doubles the number of slots.
    #[allow(clippy::indexing_slicing, reason = "slots are masked")]
    #[cold]
    fn grow(&mut self) {
        let length = self.slots.len() * 2;
        self.slots.clear();
        self.slots.resize(length, 0);
        for number in 0..self.len() as u32 {
            let hash = self.hash(self.term(number));
            let mut at = hash as usize & (length - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (length - 1);
            }
            self.slots[at] = slot(hash, number);
        }
    }
}

fn slot(hash: u64, number: u32) -> u64 {
    hash >> 32 << 32 | (u64::from(number) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_keep_their_numbers_while_the_table_grows() {
        let mut table = TermTable::default();
        for count in [3_000, 5, 0, 700] {
            let term = |one| format!("{}{one}", "x".repeat(one % 40));
            let terms: Vec<String> = (0..count).map(term).collect();
            for _ in 0..2 {
                for (number, term) in terms.iter().enumerate() {
                    assert_eq!(table.number(term), number as u32);
                }
            }
            assert!(table.iter().eq(terms.iter().map(String::as_str)));
            assert_eq!((table.len(), table.is_empty()), (count, count == 0));
            assert_eq!(table.term(count as u32), "");
            table.clear();
        }
    }

    #[test]
    fn a_table_that_is_mostly_empty_shrinks() {
        let mut table = TermTable::default();
        for number in 0..10_000 {
            table.number(&number.to_string());
        }
        for _ in 0..20 {
            table.clear();
            assert_eq!(["w1", "w2", "w1"].map(|term| table.number(term)), [0, 1, 0]);
        }
        assert_eq!(table.slots.len(), SLOTS_MIN);
    }
}
