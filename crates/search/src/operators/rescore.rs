//! Records whose scores are replaced.

use crate::matches::Matches;
use crate::score::BoundFunction;

/// Replaces the scores of a list.
#[derive(Clone, Debug)]
pub struct Rescore<M, R> {
    list: M,
    rule: R,
}

/// Computes the scores that replace those of a list.
pub trait ScoreRule {
    /// Returns the score of the record that the list stands on.
    fn score(&self, list: &mut impl Matches) -> f64;

    /// Returns a score that no record of the list has more than.
    fn bound(&self, list: &mut impl Matches) -> f64;
}

/// All records have this score. A score of 0 makes the list a filter.
#[derive(Clone, Copy, Debug)]
pub struct ConstantScore(pub f64);

impl ScoreRule for ConstantScore {
    #[inline]
    fn score(&self, _: &mut impl Matches) -> f64 {
        self.0
    }

    fn bound(&self, _: &mut impl Matches) -> f64 {
        self.0
    }
}

/// The scores are results of a function.
#[derive(Clone, Debug)]
pub struct FunctionScore {
    /// The function.
    pub function: BoundFunction,
    /// Its results are multiplied by it.
    pub factor: f64,
}

impl ScoreRule for FunctionScore {
    fn score(&self, list: &mut impl Matches) -> f64 {
        let (id, relevance) = (list.id(), list.score());
        self.function.score(id, relevance) * self.factor
    }

    fn bound(&self, list: &mut impl Matches) -> f64 {
        self.function.bound(list.bound()) * self.factor
    }
}

impl<M: Matches, R: ScoreRule> Rescore<M, R> {
    /// Creates the list.
    pub fn new(list: M, rule: R) -> Rescore<M, R> {
        Rescore { list, rule }
    }
}

impl<M: Matches, R: ScoreRule> Matches for Rescore<M, R> {
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

    #[inline]
    fn score(&mut self) -> f64 {
        self.rule.score(&mut self.list)
    }

    fn count_at_most(&mut self) -> u64 {
        self.list.count_at_most()
    }

    fn count(&mut self) -> Option<u64> {
        self.list.count()
    }

    fn bound(&mut self) -> f64 {
        self.rule.bound(&mut self.list)
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
