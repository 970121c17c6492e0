//! The distinct strings of documents, numbered in the order of their first occurrence.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;

use crate::word_head::WordHead;

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
pub struct TermTable {
    hasher: RandomState,
    /// Random seeds of the hashes of short strings.
    seeds: [u64; 2],
    /// The strings, without separators.
    text: String,
    /// Indexed by the number of the string.
    rows: Vec<Row>,
    /// The upper half of a string's hash, and its number plus one in the lower half; 0 if the slot
    /// is free. The length is a power of two, or 0 before the first string.
    slots: Vec<u64>,
}

/// A string. Its head and its length determine it if it has at most 16 bytes, so that the text is
/// not read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Row {
    head: WordHead,
    start: u32,
    length: u32,
}

/// The number of slots of the smallest table that is not empty.
const SLOTS_MIN: usize = 256;

impl Default for TermTable {
    fn default() -> TermTable {
        let hasher = RandomState::default();
        TermTable {
            seeds: [0_u64, 1].map(|number| hasher.hash_one(number)),
            hasher,
            text: String::new(),
            rows: Vec::new(),
            slots: Vec::new(),
        }
    }
}

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
    pub fn number(&mut self, term: &str) -> u32 {
        self.number_in(term, 0..term.len())
    }

    /// As [`number`](Self::number), for the string with this range of a text. It is faster, because
    /// the bytes behind the string can be read, too.
    #[allow(clippy::indexing_slicing, reason = "slots are masked")]
    #[inline]
    pub fn number_in(&mut self, text: &str, range: Range<usize>) -> u32 {
        if self.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let length = range.len();
        let head = WordHead::new(text.as_bytes(), &range);
        let hash = if length <= WordHead::BYTES {
            head.hash(self.seeds)
        } else {
            self.hash_long(slice(text, range.clone()).as_bytes())
        };
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            let number = (slot as u32).wrapping_sub(1);
            if slot >> 32 == hash >> 32
                && let Some(row) = self.rows.get(number as usize)
                && row.head == head
                && row.length as usize == length
                && (length <= WordHead::BYTES || self.text_of(row) == slice(text, range.clone()))
            {
                return number;
            }
            at = (at + 1) & mask;
        }
        self.add(slice(text, range), head, at, hash)
    }

    /// Adds a string, whose slot is the one at an index.
    #[allow(clippy::indexing_slicing, reason = "the slot was found")]
    fn add(&mut self, term: &str, head: WordHead, at: usize, hash: u64) -> u32 {
        let number = self.len() as u32;
        self.slots[at] = slot(hash, number);
        self.rows.push(Row {
            head,
            start: self.text.len() as u32,
            length: term.len() as u32,
        });
        self.text.push_str(term);
        number
    }

    /// Returns the string with this number, or an empty string if there is none.
    #[inline]
    pub fn term(&self, number: u32) -> &str {
        let row = self.rows.get(number as usize);
        row.map_or("", |row| self.text_of(row))
    }

    fn text_of(&self, row: &Row) -> &str {
        let start = row.start as usize;
        slice(&self.text, start..start + row.length as usize)
    }

    #[cold]
    fn hash_long(&self, term: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(term);
        hasher.finish()
    }

    fn hash_of(&self, row: &Row) -> u64 {
        if row.length as usize <= WordHead::BYTES {
            return row.head.hash(self.seeds);
        }
        self.hash_long(self.text_of(row).as_bytes())
    }

    /// Doubles the number of slots.
    #[allow(clippy::indexing_slicing, reason = "slots are masked")]
    #[cold]
    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(SLOTS_MIN);
        self.slots.clear();
        self.slots.resize(length, 0);
        for (row, number) in self.rows.iter().zip(0..) {
            let hash = self.hash_of(row);
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

/// Returns the part of a text with a range.
fn slice(text: &str, range: Range<usize>) -> &str {
    let part = text.get(range.clone());
    part.unwrap_or_else(|| unreachable!("{range:?} is not a part of {} bytes", text.len()))
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
