//! Records that are in one list and not in another one.

use crate::matches::Matches;
use crate::postings::END;

/// Records that are in `included` and not in `excluded`.
#[derive(Clone, Debug)]
pub struct Without<M> {
    included: M,
    excluded: M,
}

impl<M: Matches> Without<M> {
    /// Creates the list of the records of one list that are not in the other.
    pub fn new(included: M, excluded: M) -> Without<M> {
        let mut without = Without { included, excluded };
        let first = without.included.id();
        without.find(first);
        without
    }

    /// Returns both lists. If one of them is moved, the operator itself must not be used any more.
    pub(crate) fn parts_mut(&mut self) -> (&mut M, &mut M) {
        (&mut self.included, &mut self.excluded)
    }

    /// Returns the first record from `id` on that is not excluded. `included` is at `id` before,
    /// and at the returned record afterwards.
    #[inline]
    fn find(&mut self, mut id: u64) -> u64 {
        while id != END && self.excluded.probe(id) == id {
            id = self.included.next();
        }
        id
    }
}

impl<M: Matches> Matches for Without<M> {
    #[inline]
    fn id(&self) -> u64 {
        self.included.id()
    }

    #[inline]
    fn next(&mut self) -> u64 {
        let id = self.included.next();
        self.find(id)
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        if self.included.id() >= id {
            return self.included.id();
        }
        let id = self.included.seek(id);
        self.find(id)
    }

    fn score(&mut self) -> f64 {
        self.included.score()
    }

    fn count_at_most(&mut self) -> u64 {
        self.included.count_at_most()
    }

    fn block_end(&mut self, id: u64) -> u64 {
        self.included.block_end(id)
    }

    fn block_bound(&mut self) -> f64 {
        self.included.block_bound()
    }

    fn bound(&mut self) -> f64 {
        self.included.bound()
    }

    fn postings_read(&self) -> u64 {
        self.included.postings_read() + self.excluded.postings_read()
    }

    fn postings(&mut self) -> u64 {
        self.included.postings() + self.excluded.postings()
    }
}
