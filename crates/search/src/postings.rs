//! Lists of postings, which are read forward by record id.

pub use windrow_postings::Impact;

use crate::batch::Batch;

/// The id that a list returns after its last record.
pub const END: u64 = u64::MAX;

/// The postings of one term, in increasing order of record ids.
///
/// A list is a cursor: a new list is on its first posting. A list ends early if reading fails, for
/// example because a block is damaged, or if the operation is interrupted. The reader that opened
/// the list then has the error: check it after the search. Operators therefore need not handle
/// errors for each posting.
///
/// A list has a second cursor over its blocks, which reads no postings. It serves to skip blocks
/// whose scores are too low, and is independent of the first one:
/// [`block_end`](Self::block_end) moves it.
pub trait Postings {
    /// Returns the id of the current record, or [`END`].
    fn id(&self) -> u64;

    /// Moves to the next record and returns its id, or [`END`].
    fn next(&mut self) -> u64;

    /// Moves to the first record with this id or a greater one, and returns its id, or [`END`].
    /// Does not move backwards.
    fn seek(&mut self, id: u64) -> u64;

    /// Returns the number of times that the term occurs in the current record, at least 1.
    fn frequency(&mut self) -> u32;

    /// Returns the number of tokens of the field in the current record; 0 if it is not known.
    fn length(&mut self) -> u32;

    /// Returns the score that the index stores for the term in the current record. `None` if the
    /// score follows from frequency and length.
    fn stored_score(&mut self) -> Option<f64>;

    /// Appends the positions of the term in the current record, in increasing order. Appends none
    /// if the index has no positions.
    fn positions(&mut self, into: &mut Vec<u32>);

    /// Moves the block cursor to the block with the first record whose id is `id` or greater.
    /// Returns the greatest id to which the bound of the block applies, or [`END`] if no such
    /// record is left. `id` must not be less than in the call before.
    fn block_end(&mut self, id: u64) -> u64;

    /// Returns the bound of the scores in the current block of the block cursor.
    fn block_bound(&mut self) -> Bound;

    /// Returns the bound of all scores of the list.
    fn bound(&mut self) -> Bound;

    /// Returns an upper estimate of the number of records in the list.
    fn count_at_most(&mut self) -> u64;

    /// Returns the number of records in the list, if it is known without reading the postings.
    fn count(&mut self) -> Option<u64>;

    /// Reads the postings from the current one up to the record `last`, at most 128, and moves to
    /// the posting after them. The batch is empty if there are none. An implementation that has
    /// unpacked blocks should override this and copy from them, which is faster.
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
    /// first record that is not below. Returns its id, or [`END`]. The list must be at `first` or
    /// later. Counts and filters read lists with this function. An implementation that has unpacked
    /// blocks should override it with a loop over them, which is faster.
    #[inline]
    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        let mut id = self.id();
        while id != END && crate::bits::set_bit(bits, id.wrapping_sub(first)) {
            id = self.next();
        }
        id
    }
}

/// An upper bound of the scores of some postings: the greatest of the stored score and the scores
/// of the impacts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bound {
    /// Frequencies and lengths. An impact with the frequency 0 is absent.
    pub impacts: [Impact; 2],
    /// The greatest stored score. 0 if no score is stored.
    pub stored_score: f64,
}
