//! Records that are in one list, with a higher score if they are also in another one.

use crate::matches::Matches;

/// The records of `required`. If a record is also in `optional`, both scores are added.
#[derive(Clone, Debug)]
pub struct Optional<M> {
    required: M,
    optional: M,
}

impl<M: Matches> Optional<M> {
    /// Creates the list.
    pub fn new(required: M, optional: M) -> Optional<M> {
        Optional { required, optional }
    }
}

impl<M: Matches> Matches for Optional<M> {
    #[inline]
    fn id(&self) -> u64 {
        self.required.id()
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.required.next()
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        self.required.seek(id)
    }

    fn score(&mut self) -> f64 {
        let id = self.required.id();
        let score = self.required.score();
        if self.optional.probe(id) == id {
            score + self.optional.score()
        } else {
            score
        }
    }

    fn count_at_most(&mut self) -> u64 {
        self.required.count_at_most()
    }

    fn count(&mut self) -> Option<u64> {
        self.required.count()
    }

    fn block_end(&mut self, id: u64) -> u64 {
        let end = self.required.block_end(id);
        end.min(self.optional.block_end(id))
    }

    fn block_bound(&mut self) -> f64 {
        self.required.block_bound() + self.optional.block_bound()
    }

    fn bound(&mut self) -> f64 {
        self.required.bound() + self.optional.bound()
    }

    fn postings_read(&self) -> u64 {
        self.required.postings_read() + self.optional.postings_read()
    }

    fn postings(&mut self) -> u64 {
        self.required.postings() + self.optional.postings()
    }

    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        self.required.fill(first, bits)
    }
}
