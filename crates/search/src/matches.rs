//! The interface of operators: records in increasing order of ids, with scores.

use crate::batch::Batch;
use crate::bits::set_bit;
use crate::postings::END;

/// Records in increasing order of ids.
///
/// A term, a phrase and a filter are such lists, and so is each operator over them. A list is a
/// cursor: a new list is on its first record. If reading fails, a list ends early, as
/// [`Postings`](crate::Postings) describes.
///
/// Scores are never negative and never NaN.
pub trait Matches {
    /// Returns the id of the current record, or [`END`].
    fn id(&self) -> u64;

    /// Moves to the next record and returns its id, or [`END`].
    fn next(&mut self) -> u64;

    /// Moves to the first record with this id or a greater one, and returns its id, or [`END`].
    /// Does not move backwards.
    fn seek(&mut self, id: u64) -> u64;

    /// Returns `id` if the list has this record, and moves to it. Otherwise returns a greater id
    /// such that the list has no record from `id` up to that one. The list then has no current
    /// record: before it is read, it must be moved by `seek` or `probe` to an id that is not less.
    ///
    /// This is cheaper than [`seek`](Self::seek) for lists that verify each record at some cost,
    /// such as phrases: `probe` verifies no other record than `id`.
    #[inline]
    fn probe(&mut self, id: u64) -> u64 {
        self.seek(id)
    }

    /// Returns the score of the current record. The list must not be at its end.
    fn score(&mut self) -> f64;

    /// Returns an upper estimate of the number of records in the list.
    fn count_at_most(&mut self) -> u64;

    /// Returns the number of records in the list, if it is known without reading them.
    fn count(&mut self) -> Option<u64> {
        None
    }

    /// Moves the block cursor, which is independent of the list's own position, to the block with
    /// the first record whose id is `id` or greater. Returns the greatest id to which the bound of
    /// the block applies. `id` must not be less than in the call before.
    ///
    /// The default implementation of this and [`block_bound`](Self::block_bound) makes the list one
    /// block.
    fn block_end(&mut self, _id: u64) -> u64 {
        END
    }

    /// Returns an upper bound of the scores of the records from the id passed to
    /// [`block_end`](Self::block_end) to the end of the block.
    fn block_bound(&mut self) -> f64 {
        self.bound()
    }

    /// Returns an upper bound of the scores of the records from `first` to `last`. Moves the block
    /// cursor, as [`block_end`](Self::block_end) does.
    fn bound_between(&mut self, first: u64, last: u64) -> f64 {
        let mut bound = 0.0_f64;
        let mut id = first;
        loop {
            let end = self.block_end(id);
            bound = bound.max(self.block_bound());
            if end >= last {
                return bound;
            }
            id = end + 1;
        }
    }

    /// Returns an upper bound of the scores of all records in the list.
    fn bound(&mut self) -> f64;

    /// Returns the number of postings that were read so far in all lists below this one.
    fn postings_read(&self) -> u64;

    /// Returns an upper estimate of the number of postings in all lists below this one.
    fn postings(&mut self) -> u64;

    /// Reads the records from the current one up to the record `last`, at most 128, with their
    /// scores, and moves to the record after them. The batch is empty if there are none.
    #[inline]
    fn read(&mut self, last: u64, batch: &mut Batch) {
        batch.clear();
        let mut id = self.id();
        while id <= last && id != END && !batch.is_full() {
            batch.push_scored(id, self.score());
            id = self.next();
        }
    }

    /// Sets the bit `id - first` for each record below `first + 64 * bits.len()`, and moves to the
    /// first record that is not below. Returns its id, or [`END`]. The list must be at `first` or
    /// later.
    #[inline]
    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        let mut id = self.id();
        while id != END && set_bit(bits, id.wrapping_sub(first)) {
            id = self.next();
        }
        id
    }
}
