//! A list of postings that is read forward by record id.

pub use windrow_postings::Impact;

use crate::batch::Batch;

/// The id of a list that has ended.
pub const END: u64 = u64::MAX;

/// The postings of one term, in increasing order of record ids.
///
/// A list stands on its first posting when it is opened. Reading can fail, for example because a
/// block is damaged, or because the operation is to stop. Such a list ends, and whoever opened it
/// asks the reader for the error when the search has ended. So no operator has to pass errors on
/// for every posting.
pub trait Postings {
    /// Returns the id of the record that the list stands on, or [`END`].
    fn id(&self) -> u64;

    /// Moves to the next record and returns its id, or [`END`].
    fn next(&mut self) -> u64;

    /// Moves to the first record with this id or a greater one, and returns its id, or [`END`].
    /// Does not move if the list is there or beyond.
    fn seek(&mut self, id: u64) -> u64;

    /// Returns the number of times that the term occurs in the record. At least 1.
    fn frequency(&mut self) -> u32;

    /// Returns the number of tokens of the field in the record. 0 if it is not known.
    fn length(&mut self) -> u32;

    /// Returns the score that the index stores for the term in the record, if it stores one because
    /// it does not follow from frequency and length.
    fn stored_score(&mut self) -> Option<f64>;

    /// Appends the positions of the term in the record, in increasing order. Appends none if the
    /// index has no positions.
    fn positions(&mut self, into: &mut Vec<u32>);

    /// Moves the list's look at blocks, and not the list, to the block with the first record whose
    /// id is `id` or greater. Returns the greatest id that the block speaks for, or [`END`] if no
    /// such record is left. `id` may not be less than in the call before. Reads no posting.
    fn block_end(&mut self, id: u64) -> u64;

    /// Returns the bound of the scores in the block that [`block_end`](Self::block_end) went to.
    fn block_bound(&mut self) -> Bound;

    /// Returns the bound of all scores of the list.
    fn bound(&mut self) -> Bound;

    /// Returns about how many records the list has: not fewer than there are.
    fn count_at_most(&mut self) -> u64;

    /// Returns how many records the list has, if that is known without reading the postings.
    fn count(&mut self) -> Option<u64>;

    /// Reads the postings from the current one up to the record `last`, 128 at most, and moves
    /// behind them. The batch is empty if there are none. An implementation with unpacked blocks
    /// gains by copying from them.
    #[inline]
    fn read(&mut self, last: u64, batch: &mut Batch) {
        batch.clear();
        let mut id = self.id();
        while id <= last && id != END && !batch.is_full() {
            batch.push(id, self.frequency(), self.length(), self.stored_score());
            id = self.next();
        }
    }

    /// Sets the bit `id - first` for each record below `first + 64 * bits.len()`, and moves to the
    /// first record that is not below. Returns its id, or [`END`]. The list may not stand below
    /// `first`. Counts and filters read lists by this function: an implementation with unpacked
    /// blocks gains by its own loop over them.
    #[inline]
    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        let mut id = self.id();
        while id != END && crate::bits::set_bit(bits, id.wrapping_sub(first)) {
            id = self.next();
        }
        id
    }
}

/// What bounds the scores of some postings: no score is greater than that of both impacts and the
/// stored score.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bound {
    /// Frequencies and lengths. An impact without frequency bounds nothing.
    pub impacts: [Impact; 2],
    /// The greatest stored score. 0 if no score is stored.
    pub stored_score: f64,
}
