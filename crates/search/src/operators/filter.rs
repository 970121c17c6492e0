//! Records that all have the same score.

use crate::ids::Ids;
use crate::matches::Matches;

/// The records of a list, each with the same score. A score of 0 makes the list a filter.
#[derive(Clone, Debug)]
pub struct Constant<M> {
    list: M,
    score: f64,
}

impl<M: Matches> Constant<M> {
    /// Creates the list.
    pub fn new(list: M, score: f64) -> Constant<M> {
        Constant { list, score }
    }
}

impl<M: Matches> Matches for Constant<M> {
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
        self.score
    }

    fn count_at_most(&mut self) -> u64 {
        self.list.count_at_most()
    }

    fn count(&mut self) -> Option<u64> {
        self.list.count()
    }

    fn bound(&mut self) -> f64 {
        self.score
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

/// Ids of another index as records that all have the same score.
#[derive(Clone, Debug)]
pub struct Filter<F> {
    ids: F,
    score: f64,
}

impl<F: Ids> Filter<F> {
    /// Creates the list of these records.
    pub fn new(ids: F, score: f64) -> Filter<F> {
        Filter { ids, score }
    }
}

impl<F: Ids> Matches for Filter<F> {
    #[inline]
    fn id(&self) -> u64 {
        self.ids.id()
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.ids.next()
    }

    #[inline]
    fn seek(&mut self, id: u64) -> u64 {
        self.ids.seek(id)
    }

    fn score(&mut self) -> f64 {
        self.score
    }

    fn count_at_most(&mut self) -> u64 {
        self.ids.count_at_most()
    }

    fn count(&mut self) -> Option<u64> {
        self.ids.count()
    }

    fn bound(&mut self) -> f64 {
        self.score
    }

    fn postings_read(&self) -> u64 {
        0
    }

    fn postings(&mut self) -> u64 {
        0
    }

    fn fill(&mut self, first: u64, bits: &mut [u64]) -> u64 {
        self.ids.fill(first, bits)
    }
}
