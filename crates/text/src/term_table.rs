//! The distinct strings of documents, numbered in the order of their first occurrence.

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

use crate::word_ends::WordEnds;

/// Numbers strings: a hash table with open addressing. The text of all strings is in one string. A
/// map of owned strings would allocate once per string.
///
/// ```
/// use windrow_text::TermTable;
///
/// let mut table = TermTable::default();
/// let numbers = ["to", "be", "or", "not", "to", "be"].map(|term| table.number(term));
/// assert_eq!(numbers, [0, 1, 2, 3, 0, 1]);
/// assert_eq!((table.term(2), table.len()), ("or", 4));
/// ```
#[derive(Default)]
pub struct TermTable {
    hasher: RandomState,
    /// The strings, without separators.
    text: String,
    /// Indexed by the number of the string.
    rows: Vec<Row>,
    /// The upper half of a string's hash, and its number plus one in the lower half; 0 if the slot
    /// is free. The length is a power of two, or 0 before the first string.
    slots: Vec<u64>,
}

/// A string. Its ends and its length determine it if it has at most 16 bytes, so that the text is
/// not read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Row {
    ends: WordEnds,
    start: u32,
    length: u32,
}

/// The number of slots of the smallest table that is not empty.
const SLOTS_MIN: usize = 256;

impl TermTable {
    /// Removes all strings. Halves a table that is mostly empty: after one huge document, each
    /// `clear` would otherwise fill all its slots.
    pub fn clear(&mut self) {
        if self.slots.len() > SLOTS_MIN && self.len() * 16 < self.slots.len() {
            self.slots.truncate(self.slots.len() / 2);
        }
        self.slots.fill(0);
        self.text.clear();
        self.rows.clear();
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns `true` if there are no strings.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the total length of the strings in bytes.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the number of a string. A new string gets the number [`len`](Self::len).
    #[allow(clippy::indexing_slicing, reason = "slots are masked")]
    #[inline]
    pub fn number(&mut self, term: &str) -> u32 {
        if self.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = self.hash(term);
        let ends = WordEnds::new(term.as_bytes());
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let number = (slot as u32).wrapping_sub(1);
            if slot >> 32 == hash >> 32 && self.is_at(number, term, ends) {
                return number;
            }
            at = (at + 1) & mask;
        }
        let number = self.len() as u32;
        self.slots[at] = slot(hash, number);
        self.rows.push(Row {
            ends,
            start: self.text.len() as u32,
            length: term.len() as u32,
        });
        self.text.push_str(term);
        number
    }

    /// Returns `true` if the string with this number is `term`, whose ends are `ends`.
    #[inline]
    fn is_at(&self, number: u32, term: &str, ends: WordEnds) -> bool {
        self.rows.get(number as usize).is_some_and(|row| {
            row.ends == ends
                && row.length as usize == term.len()
                && (term.len() <= WordEnds::BYTES || self.bytes(row) == term.as_bytes())
        })
    }

    /// Returns the string with this number, or an empty string if there is none.
    #[inline]
    pub fn term(&self, number: u32) -> &str {
        let row = self.rows.get(number as usize);
        row.map_or("", |row| {
            let start = row.start as usize;
            let text = self.text.get(start..start + row.length as usize);
            text.unwrap_or_default()
        })
    }

    /// Returns the bytes of a string. Comparing bytes does not check character boundaries.
    fn bytes(&self, row: &Row) -> &[u8] {
        let start = row.start as usize;
        let bytes = self.text.as_bytes();
        bytes
            .get(start..start + row.length as usize)
            .unwrap_or_default()
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
        let length = (self.slots.len() * 2).max(SLOTS_MIN);
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

/// A period in which numbers of terms keep their meaning: equal numbers of the same generation stand
/// for the same term. No two generations of a process are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermGeneration(u64);

impl TermGeneration {
    /// Begins a generation.
    #[allow(clippy::new_without_default, reason = "each generation is another one")]
    pub fn new() -> TermGeneration {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        TermGeneration(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the number of the generation.
    pub fn number(self) -> u64 {
        self.0
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
            for (number, term) in terms.iter().enumerate() {
                assert_eq!(table.term(number as u32), term);
            }
            assert_eq!(table.text_bytes(), terms.concat().len());
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
