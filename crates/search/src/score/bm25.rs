//! BM25 as Lucene's `BM25Similarity` computes it.
//!
//! Source: Robertson and others, "Okapi at TREC-3", 1994; Lucene's documentation of
//! `BM25Similarity`.
//!
//! ```text
//! idf    = ln(1 + (N - n + 0.5) / (n + 0.5))         N records with the field, n with the term
//! norm   = k1 · (1 - b + b · length / average)       k1 = 1.2, b = 0.75
//! weight = boost · idf
//! score  = weight - weight / (1 + frequency · (1 / norm))
//! ```
//! The last line equals `weight · frequency / (frequency + norm)`. Each of its operations is also
//! monotone in floating point, so the score of a bound is never below the score of a posting. All
//! numbers are `f32`, except those in the logarithm. Lengths are rounded by
//! [`length_code`](windrow_postings::length_code), as in Lucene.

mod explain;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;

pub use explain::ExplainedBm25;
use windrow_postings::{Impact, length_code, length_of_code};

use super::{FieldStatistics, Scorer, Similarity};
use crate::postings::Bound;

const K1: f32 = 1.2;
const B: f32 = 0.75;

/// The scorer of a term or a phrase.
///
/// ```
/// use windrow_search::{Bm25, FieldStatistics, Scorer};
///
/// let field = FieldStatistics { records: 1, length: 4 };
/// let scorer = Bm25::new(1.0, field, &[1]);
/// assert!((scorer.score(1, 4, None) - 0.13076).abs() < 1e-5);
/// ```
#[derive(Clone, Debug)]
pub struct Bm25 {
    weight: f32,
    norms: Arc<Norms>,
}

/// 1 / norm for each length of a field.
#[derive(Debug)]
struct Norms {
    by_code: [f32; 256],
    /// The values of short lengths. For these, the code of the length need not be computed.
    by_length: [f32; LENGTHS],
}

/// The number of entries of `by_length`.
const LENGTHS: usize = 1_024;

impl Norms {
    fn new(field: FieldStatistics) -> Norms {
        let by_code = inverse_norms(field);
        let mut by_length = [0.0; LENGTHS];
        for (norm, code) in by_code.iter().zip(0..=u8::MAX) {
            let from = length_of_code(code) as usize;
            let to = code
                .checked_add(1)
                .map_or(LENGTHS, |next| length_of_code(next) as usize);
            if let Some(lengths) = by_length.get_mut(from..LENGTHS.min(to)) {
                lengths.fill(*norm);
            }
        }
        Norms { by_code, by_length }
    }

    #[inline]
    fn inverse_norm(&self, length: u32) -> f32 {
        match self.by_length.get(length as usize) {
            Some(norm) => *norm,
            None => self.inverse_norm_of_code(length_code(length)),
        }
    }

    #[inline]
    fn inverse_norm_of_code(&self, code: u8) -> f32 {
        let [.., last] = self.by_code;
        self.by_code.get(usize::from(code)).copied().unwrap_or(last)
    }
}

impl Bm25 {
    /// Creates the scorer of a term, or of a phrase of several terms. `records` has the number of
    /// records with each term.
    pub fn new(boost: f32, field: FieldStatistics, records: &[u64]) -> Bm25 {
        let idfs = records.iter().map(|count| idf(*count, field.records));
        let idf = idfs.map(f64::from).sum::<f64>() as f32;
        Bm25 {
            weight: boost * idf,
            norms: norms_of(field),
        }
    }

    #[inline]
    fn score_of(&self, frequency: f32, inverse_norm: f32) -> f64 {
        f64::from(self.weight - self.weight / (1.0 + frequency * inverse_norm))
    }

    fn bound_of(&self, impact: Impact) -> f64 {
        match impact.frequency {
            0 => 0.0,
            windrow_postings::impact::FREQUENCY_MANY => self.bound_of_all(),
            frequency => self.score_of(
                f32::from(frequency),
                self.norms.inverse_norm_of_code(impact.length),
            ),
        }
    }
}

impl Scorer for Bm25 {
    #[inline]
    fn score(&self, frequency: u32, length: u32, _stored: Option<f64>) -> f64 {
        self.score_of(frequency as f32, self.norms.inverse_norm(length))
    }

    fn score_phrase(&self, frequency: f32, length: u32) -> f64 {
        self.score_of(frequency, self.norms.inverse_norm(length))
    }

    #[inline]
    fn bound(&self, bound: Bound) -> f64 {
        let [one, other] = bound.impacts;
        self.bound_of(one).max(self.bound_of(other))
    }

    fn bound_of_all(&self) -> f64 {
        f64::from(self.weight)
    }
}

/// Returns the inverse document frequency of a term that `count` of `records` records have.
fn idf(count: u64, records: u64) -> f32 {
    // Deletions make the statistics inexact: they may count more records with the term than with
    // the field.
    let records = records.max(count) as f64;
    let count = count as f64;
    (1.0 + (records - count + 0.5) / (count + 0.5)).ln() as f32
}

/// Returns the average length of a field.
fn average_length(field: FieldStatistics) -> f32 {
    let average = (field.length as f64 / field.records.max(1) as f64) as f32;
    if average > 0.0 { average } else { 1.0 }
}

fn inverse_norms(field: FieldStatistics) -> [f32; 256] {
    let average = average_length(field);
    std::array::from_fn(|code| {
        // As in Lucene, the length is 1 if it is not known.
        let length = length_of_code(code.clamp(1, 255) as u8) as f32;
        1.0 / (K1 * ((1.0 - B) + B * length / average))
    })
}

/// The number of fields whose norms each thread caches.
const FIELDS_CACHED: usize = 8;

thread_local! {
    /// The norms that were used last. Computing the norms of a field takes longer than counting the
    /// records of a term.
    static NORMS: RefCell<VecDeque<(FieldStatistics, Arc<Norms>)>> = RefCell::default();
}

/// Returns the norms of a field from the cache, or computes them. A write changes the statistics of
/// a field, so its norms are then computed again.
fn norms_of(field: FieldStatistics) -> Arc<Norms> {
    NORMS.with_borrow_mut(|cache| {
        if let Some((_, norms)) = cache.iter().find(|(statistics, _)| *statistics == field) {
            return norms.clone();
        }
        let norms = Arc::new(Norms::new(field));
        cache.truncate(FIELDS_CACHED - 1);
        cache.push_front((field, norms.clone()));
        norms
    })
}

/// Creates the scorers of a query.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bm25Similarity;

impl Similarity for Bm25Similarity {
    type Scorer = Bm25;

    fn scorer(&self, boost: f32, field: FieldStatistics, records: &[u64]) -> Bm25 {
        Bm25::new(boost, field, records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: FieldStatistics = FieldStatistics {
        records: 1_000,
        length: 50_000,
    };

    #[test]
    fn scores_follow_the_formula() {
        let scorer = Bm25::new(2.0, FIELD, &[10]);
        let idf = (1.0f64 + 990.5 / 10.5).ln();
        for (frequency, length) in [(1, 1), (3, 39), (7, 50), (200, 1_000)] {
            let length_known = f64::from(length_of_code(length_code(length)));
            let norm = 1.2 * (0.25 + 0.75 * length_known / 50.0);
            let frequency_known = f64::from(frequency);
            let exact = 2.0 * idf * frequency_known / (frequency_known + norm);
            let found = scorer.score(frequency, length, None);
            assert!((found - exact).abs() < 1e-5, "{found} {exact}");
        }
        let phrase = Bm25::new(1.0, FIELD, &[10, 20]);
        let sum = f64::from(idf_sum(&[10, 20]));
        assert_eq!(phrase.bound_of_all(), sum);
    }

    fn idf_sum(records: &[u64]) -> f32 {
        records
            .iter()
            .map(|count| f64::from(idf(*count, FIELD.records)))
            .sum::<f64>() as f32
    }

    #[test]
    fn bounds_are_never_below_a_score() {
        let scorer = Bm25Similarity.scorer(1.5, FIELD, &[3]);
        for frequency in [1, 2, 3, 100, 254, 255, 256, 100_000] {
            for length in [0, 1, 2, 39, 40, 41, 500, 1_000_000] {
                let impacts = [Impact::new(frequency, length), Impact::default()];
                let bound = scorer.bound(Bound {
                    impacts,
                    stored_score: 0.0,
                });
                let score = scorer.score(frequency, length, None);
                assert!(bound >= score, "{frequency} of {length}: {bound} {score}");
                assert!(scorer.bound_of_all() >= bound);
            }
        }
        assert_eq!(scorer.bound(Bound::default()), 0.0);
    }

    #[test]
    fn statistics_without_records_give_finite_scores() {
        let scorer = Bm25::new(1.0, FieldStatistics::default(), &[5]);
        assert!(scorer.score(1, 0, None).is_finite());
        assert!(scorer.score(1, 0, None) >= 0.0);
    }
}
