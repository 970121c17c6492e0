//! The documents of each workload, from a seed: what is stored, not how it is sent.
//!
//! Every corpus writes one document after another into a buffer of the caller's. Documents of the
//! same seed and number are the same, whichever way they are asked for.

use crate::random::Random;

pub mod natural;
pub mod pairs;
pub mod people;
pub mod readings;
pub mod registers;
pub mod users;
pub mod weather;
pub mod words;

/// The ids of documents which a client made in order: a time that grows, a process, a counter.
pub fn object_id(number: u64) -> [u8; 12] {
    let mut id = [0x57; 12];
    let seconds = 1_700_000_000 + (number / 100_000) as u32;
    id[..4].copy_from_slice(&seconds.to_be_bytes());
    id[8..].copy_from_slice(&(number as u32).to_be_bytes());
    id
}

/// How the documents of a corpus are written.
pub trait Corpus: Sync {
    /// Appends document `number`, counted from 0.
    fn write(&self, number: u64, out: &mut Vec<u8>);

    /// Documents `first` to `end` (not included) one after another.
    fn batch(&self, first: u64, end: u64, out: &mut Vec<u8>) {
        out.clear();
        for number in first..end {
            self.write(number, out);
        }
    }
}

/// The generator of one document, whatever was written before it.
fn random_of(seed: u64, number: u64) -> Random {
    Random::stream(seed, number)
}
