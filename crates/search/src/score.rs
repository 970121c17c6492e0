//! Scores of terms in records.
//!
//! - [`Scorer`]: the score of one posting, and upper bounds of scores.
//! - [`Bm25`]: relevance as Lucene computes it.
//! - [`ExplainedBm25`]: the explanation of a BM25 score.
//! - [`TextScore`]: the score of MongoDB's `$text`.
//! - [`ScoreFunction`]: scores that also depend on values of the records.
//! - [`Similarity`]: creates the scorers of a query's terms from statistics.

mod bm25;
mod function;
mod text;

pub use bm25::{Bm25, Bm25Similarity, ExplainedBm25};
pub use function::{BoundFunction, Gauss, RecordValue, RecordValues, ScoreFunction, ValueNumber};
pub use text::{TextScore, TextSimilarity};

use crate::batch::Batch;
use crate::postings::Bound;

/// The score of one posting.
pub trait Scorer {
    /// Returns the score of a posting. `frequency` is the number of times that the term occurs,
    /// `length` the number of tokens of the field (0 if it is not known), `stored` the score that
    /// the index stores, if any.
    fn score(&self, frequency: u32, length: u32, stored: Option<f64>) -> f64;

    /// Computes the scores of a batch of postings.
    #[inline]
    fn score_batch(&self, batch: &mut Batch) {
        let postings = batch.frequencies.iter().zip(&batch.lengths);
        for (score, (frequency, length)) in batch.scores.iter_mut().zip(postings).take(batch.count)
        {
            *score = self.score(*frequency, *length, None);
        }
        for (at, stored) in &batch.stored_scores {
            let posting = (batch.frequencies.get(*at), batch.lengths.get(*at));
            if let (Some(slot), (Some(frequency), Some(length))) =
                (batch.scores.get_mut(*at), posting)
            {
                *slot = self.score(*frequency, *length, Some(*stored));
            }
        }
    }

    /// Returns the score of a phrase. The frequency of a phrase with slop is a sum of fractions.
    fn score_phrase(&self, frequency: f32, length: u32) -> f64;

    /// Returns an upper bound of the scores of all postings within `bound`.
    fn bound(&self, bound: Bound) -> f64;

    /// Returns an upper bound of the scores of all possible postings.
    fn bound_of_all(&self) -> f64;
}

/// Creates the scorers of the terms of a query.
pub trait Similarity {
    /// The scorers.
    type Scorer: Scorer;

    /// Returns the scorer of a term, or of a phrase of several terms. `records` contains the number
    /// of records with each of the terms.
    fn scorer(&self, boost: f32, field: FieldStatistics, records: &[u64]) -> Self::Scorer;
}

/// The statistics of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldStatistics {
    /// The number of records that have the field.
    pub records: u64,
    /// The number of tokens of the field in all records together.
    pub length: u64,
}
