//! Records whose scores a function changes.

use crate::matches::Matches;
use crate::score::BoundFunction;

/// The records of a list with the scores that a function gives them.
#[derive(Clone, Debug)]
pub struct Rescored<M> {
    list: M,
    function: BoundFunction,
    factor: f64,
}

impl<M: Matches> Rescored<M> {
    /// Creates the list. `factor` multiplies the results of the function.
    pub fn new(list: M, function: BoundFunction, factor: f64) -> Rescored<M> {
        Rescored {
            list,
            function,
            factor,
        }
    }
}

impl<M: Matches> Matches for Rescored<M> {
    #[inline]
    fn id(&self) -> u64 {
        self.list.id()
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.list.next()
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        self.list.seek(id)
    }

    #[inline]
    fn probe(&mut self, id: u64) -> u64 {
        self.list.probe(id)
    }

    fn score(&mut self) -> f64 {
        let (id, relevance) = (self.list.id(), self.list.score());
        self.function.score(id, relevance) * self.factor
    }

    fn count_at_most(&mut self) -> u64 {
        self.list.count_at_most()
    }

    fn count(&mut self) -> Option<u64> {
        self.list.count()
    }

    fn bound(&mut self) -> f64 {
        let relevance = self.list.bound();
        self.function.bound(relevance) * self.factor
    }

    fn postings_read(&self) -> u64 {
        self.list.postings_read()
    }

    fn postings(&mut self) -> u64 {
        self.list.postings()
    }

    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        self.list.fill(first, bits)
    }
}
