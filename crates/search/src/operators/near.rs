//! Records whose scores are known before the search.

use std::sync::Arc;

use crate::matches::Matches;
use crate::postings::END;

/// A record and its score.
pub type ScoredRecord = (u64, f32);

/// Records in memory, each with a score of its own.
#[derive(Clone, Debug)]
pub struct Scored {
    records: Arc<[ScoredRecord]>,
    at: usize,
    factor: f64,
    bound: f64,
}

impl Scored {
    /// Creates the list of records in increasing order of ids. `factor` multiplies their scores, which
    /// are not negative.
    pub fn new(records: Arc<[ScoredRecord]>, factor: f64) -> Scored {
        let greatest = records.iter().map(|(_, score)| *score).fold(0.0, f32::max);
        Scored {
            records,
            at: 0,
            factor,
            bound: f64::from(greatest) * factor,
        }
    }
}

impl Matches for Scored {
    #[inline]
    fn id(&self) -> u64 {
        self.records.get(self.at).map_or(END, |(id, _)| *id)
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.at = self.at.saturating_add(1).min(self.records.len());
        self.id()
    }

    fn seek(&mut self, id: u64) -> u64 {
        let rest = self.records.get(self.at..).unwrap_or_default();
        self.at += rest.partition_point(|(own, _)| *own < id);
        self.id()
    }

    fn score(&mut self) -> f64 {
        let score = self.records.get(self.at).map_or(0.0, |(_, score)| *score);
        f64::from(score) * self.factor
    }

    fn count_at_most(&mut self) -> u64 {
        self.records.len() as u64
    }

    fn count(&mut self) -> Option<u64> {
        Some(self.records.len() as u64)
    }

    fn bound(&mut self) -> f64 {
        self.bound
    }

    fn postings_read(&self) -> u64 {
        0
    }

    fn postings(&mut self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_their_own_scores() {
        let records: Arc<[ScoredRecord]> = Arc::new([(3, 0.5), (8, 1.0), (9, 0.25)]);
        let mut list = Scored::new(records, 2.0);
        assert_eq!((list.id(), list.score(), list.bound()), (3, 1.0, 2.0));
        assert_eq!((list.seek(4), list.score()), (8, 2.0));
        assert_eq!((list.next(), list.score()), (9, 0.5));
        assert_eq!((list.seek(10), list.next(), list.seek(1)), (END, END, END));
        assert_eq!(list.count(), Some(3));
        assert_eq!(Scored::new(Arc::new([]), 1.0).id(), END);
    }
}
