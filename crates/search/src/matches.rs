//! What operators have in common: records in increasing order of ids, with scores.

use crate::batch::Batch;
use crate::bits::set_bit;
use crate::postings::END;

/// Records in increasing order of ids.
///
/// A term, a phrase and a filter are such lists, and so is each operator over them. A list stands
/// on its first record when it is created. [`Postings`](crate::Postings) tells what happens if
/// reading fails.
///
/// Scores are never negative and never NaN.
pub trait Matches {
    /// Returns the id of the record that the list stands on, or [`END`].
    fn id(&self) -> u64;

    /// Moves to the next record and returns its id, or [`END`].
    fn next(&mut self) -> u64;

    /// Moves to the first record with this id or a greater one, and returns its id, or [`END`].
    /// Does not move if the list is there or beyond.
    fn seek(&mut self, id: u64) -> u64;

    /// Returns `id` if the list has this record. Otherwise returns a greater id such that the list
    /// has no record before it. Afterwards the list stands on a record only if `id` was returned,
    /// and may then only be moved forward by `seek` and `probe` to ids that are not less.
    ///
    /// It differs from [`seek`](Self::seek) for lists that check a record at some cost, as phrases
    /// do: `probe` checks no other record than `id`.
    #[inline]
    fn probe(&mut self, id: u64) -> u64 {
        self.seek(id)
    }

    /// Returns the score of the record that the list stands on. Call it only on a record.
    fn score(&mut self) -> f64;

    /// Returns about how many records the list has: not fewer than there are.
    fn count_at_most(&mut self) -> u64;

    /// Returns how many records the list has, if that is known without reading.
    fn count(&mut self) -> Option<u64> {
        None
    }

    /// Moves the list's look at blocks, and not the list, to the block with the first record whose
    /// id is `id` or greater. Returns the greatest id that the block speaks for. `id` may not be
    /// less than in the call before.
    ///
    /// A list that does not implement this and [`block_bound`](Self::block_bound) is one block.
    fn block_end(&mut self, _id: u64) -> u64 {
        END
    }

    /// Returns a score that no record has more than, of those from the id to the end of the block
    /// that [`block_end`](Self::block_end) went to.
    fn block_bound(&mut self) -> f64 {
        self.bound()
    }

    /// Returns a score that no record has more than, of those from `first` to `last`. Looks at
    /// blocks as [`block_end`](Self::block_end) does.
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

    /// Returns a score that no record of the list has more than.
    fn bound(&mut self) -> f64;

    /// Returns how many postings were read so far, in all lists below this one.
    fn postings_read(&self) -> u64;

    /// Returns how many postings there are at most, in all lists below this one.
    fn postings(&mut self) -> u64;

    /// Reads the records from the current one up to the record `last`, 128 at most, with their
    /// scores, and moves behind them. The batch is empty if there are none.
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
    /// first record that is not below. Returns its id, or [`END`]. The list may not stand below
    /// `first`.
    #[inline]
    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        let mut id = self.id();
        while id != END && set_bit(bits, id.wrapping_sub(first)) {
            id = self.next();
        }
        id
    }
}
