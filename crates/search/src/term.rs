//! The records with a term, and their scores.

use crate::batch::Batch;
use crate::matches::Matches;
use crate::postings::Postings;
use crate::score::Scorer;

/// The postings of a term and the scorer of the term.
#[derive(Clone, Debug)]
pub struct Term<P, S> {
    list: P,
    scorer: S,
    postings_read: u64,
}

impl<P: Postings, S: Scorer> Term<P, S> {
    /// Creates the list of the records with a term.
    pub fn new(list: P, scorer: S) -> Term<P, S> {
        Term {
            list,
            scorer,
            postings_read: 1,
        }
    }
}

impl<P: Postings, S: Scorer> Matches for Term<P, S> {
    #[inline]
    fn id(&self) -> u64 {
        self.list.id()
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.postings_read += 1;
        self.list.next()
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        let current = self.list.id();
        if current >= id {
            return current;
        }
        self.postings_read += 1;
        self.list.seek(id)
    }

    #[inline]
    fn score(&mut self) -> f64 {
        let frequency = self.list.frequency();
        let length = self.list.length();
        let stored = self.list.stored_score();
        self.scorer.score(frequency, length, stored)
    }

    fn count_at_most(&mut self) -> u64 {
        self.list.count_at_most()
    }

    fn count(&mut self) -> Option<u64> {
        self.list.count()
    }

    #[inline]
    fn block_end(&mut self, id: u64) -> u64 {
        self.list.block_end(id)
    }

    #[inline]
    fn block_bound(&mut self) -> f64 {
        self.scorer.bound(self.list.block_bound())
    }

    fn bound(&mut self) -> f64 {
        self.scorer.bound(self.list.bound())
    }

    fn postings_read(&self) -> u64 {
        self.postings_read
    }

    fn postings(&mut self) -> u64 {
        self.list.count_at_most()
    }

    #[inline]
    fn read(&mut self, last: u64, batch: &mut Batch) {
        self.list.read(last, batch);
        self.postings_read += batch.count as u64;
        self.scorer.score_batch(batch);
    }

    /// Does not count the postings that it reads.
    #[inline]
    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        self.list.fill(first, bits)
    }
}
