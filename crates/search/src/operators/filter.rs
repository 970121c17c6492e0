//! Records that another index has found.

use crate::ids::Ids;
use crate::matches::Matches;

/// The records with the ids that another index has found. All have the same score.
#[derive(Clone, Debug)]
pub struct Filter<F> {
    ids: F,
    score: f64,
}

impl<F: Ids> Filter<F> {
    /// Creates the list of the records with these ids.
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
