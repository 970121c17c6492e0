//! Records whose scores depend on the distance of a value from an origin.

use std::sync::Arc;

use crate::matches::Matches;
use crate::postings::END;
use crate::score::RecordValue;

/// The records that have a value. The score is higher if the value is nearer to an origin. If a
/// record has several values, the nearest one counts.
#[derive(Clone, Debug)]
pub struct Near {
    values: Arc<[RecordValue]>,
    /// The index of the first value of the current record.
    at: usize,
    nearness: Nearness,
    factor: f64,
    count: u64,
    bound: f64,
}

/// The function from values to scores: `pivot / (pivot + distance)`, where the distance is that of
/// the value from the origin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearness {
    /// The value with the score 1.
    pub origin: f64,
    /// The distance at which the score is a half. Greater than 0.
    pub pivot: f64,
}

impl Nearness {
    /// Returns the score of a value, rounded to 32 bits as in Lucene.
    pub fn score(&self, value: f64) -> f64 {
        let score = self.pivot / (self.pivot + (self.origin - value).abs());
        f64::from(score as f32)
    }
}

impl Near {
    /// Creates the list. All scores are multiplied by `factor`.
    pub fn new(values: Arc<[RecordValue]>, nearness: Nearness, factor: f64) -> Near {
        let (mut count, mut greatest) = (0, 0.0_f64);
        for record in values.chunk_by(|one, other| one.id == other.id) {
            count += 1;
            greatest = greatest.max(greatest_score(record, nearness));
        }
        Near {
            values,
            at: 0,
            nearness,
            factor,
            count,
            bound: greatest * factor,
        }
    }

    /// Returns the values of the current record.
    fn record(&self) -> &[RecordValue] {
        let mut records = self.rest().chunk_by(|one, other| one.id == other.id);
        records.next().unwrap_or_default()
    }

    fn rest(&self) -> &[RecordValue] {
        self.values.get(self.at..).unwrap_or_default()
    }
}

fn greatest_score(values: &[RecordValue], nearness: Nearness) -> f64 {
    let scores = values.iter().map(|it| nearness.score(it.value));
    scores.fold(0.0, f64::max)
}

impl Matches for Near {
    #[inline]
    fn id(&self) -> u64 {
        self.rest().first().map_or(END, |it| it.id)
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.at += self.record().len();
        self.id()
    }

    fn seek(&mut self, id: u64) -> u64 {
        self.at += self.rest().partition_point(|it| it.id < id);
        self.id()
    }

    fn score(&mut self) -> f64 {
        greatest_score(self.record(), self.nearness) * self.factor
    }

    fn count_at_most(&mut self) -> u64 {
        self.count
    }

    fn count(&mut self) -> Option<u64> {
        Some(self.count)
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
    fn the_nearest_value_of_a_record_counts() {
        let values = [(3, 5.0), (8, -90.0), (8, 11.0), (9, 40.0)];
        let values: Arc<[RecordValue]> = values.map(|(id, value)| RecordValue { id, value }).into();
        let nearness = Nearness {
            origin: 10.0,
            pivot: 5.0,
        };
        let mut list = Near::new(values, nearness, 2.0);
        assert_eq!((list.id(), list.score()), (3, 1.0));
        assert_eq!((list.seek(4), list.next(), list.seek(8)), (8, 9, 9));
        assert_eq!(list.score(), 2.0 * nearness.score(40.0));
        assert_eq!((list.seek(10), list.next(), list.seek(1)), (END, END, END));
        assert_eq!(list.count(), Some(3));
        assert_eq!(list.bound(), 2.0 * nearness.score(11.0));
        assert_eq!(Near::new(Arc::new([]), nearness, 1.0).id(), END);
    }
}
