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
    /// Returns the new score of the current record of the list.
    fn score(&self, list: &mut impl Matches) -> f64;

    /// Returns an upper bound of the new scores of all records in the list.
    fn bound(&self, list: &mut impl Matches) -> f64;
}

/// Gives all records this score. A score of 0 makes the list a filter.
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

/// Computes the scores with a function.
#[derive(Clone, Debug)]
pub struct FunctionScore {
    /// The function.
    pub function: BoundFunction,
    /// The factor by which the results of the function are multiplied.
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
    /// Creates the list of the same records with other scores.
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
