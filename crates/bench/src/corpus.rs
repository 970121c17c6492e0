//! The documents of each workload, generated from a seed. Documents with the same seed and number
//! are identical, however they are requested.

use crate::random::Random;

pub mod natural;
pub mod pairs;
pub mod people;
pub mod readings;
pub mod registers;
pub mod users;
pub mod weather;
pub mod words;

/// An ObjectId as a client would generate it: a growing time, a process, a counter.
pub fn object_id(number: u64) -> [u8; 12] {
    let mut id = [0x57; 12];
    let seconds = 1_700_000_000 + (number / 100_000) as u32;
    id[..4].copy_from_slice(&seconds.to_be_bytes());
    id[8..].copy_from_slice(&(number as u32).to_be_bytes());
    id
}

/// A generator of documents.
pub trait Corpus: Sync {
    /// Appends the document with this number, counted from 0.
    fn write(&self, number: u64, out: &mut Vec<u8>);

    /// Replaces `out` by the documents from `first` to `end` (exclusive).
    fn batch(&self, first: u64, end: u64, out: &mut Vec<u8>) {
        out.clear();
        for number in first..end {
            self.write(number, out);
        }
    }
}

/// The generator of random numbers for a document, independent of other documents.
fn document_random(seed: u64, number: u64) -> Random {
    Random::stream(seed, number)
}
