//! The score of a term in a record.
//!
//! - [`Scorer`]: the score of one posting, and upper bounds of scores.
//! - [`Bm25`]: relevance as Lucene computes it.
//! - [`ExplainedBm25`]: how it came about.
//! - [`TextScore`]: the score of MongoDB's `$text`.
//! - [`ScoreFunction`]: scores that depend on values of the records, too.
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
    /// Returns the score of a posting: how often the term occurs, the number of tokens of the field
    /// (0 if it is not known), and the stored score if there is one.
    fn score(&self, frequency: u32, length: u32, stored: Option<f64>) -> f64;

    /// Computes the scores of some postings.
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

    /// Returns the score of a phrase. Its frequency is a sum of fractions if the phrase has slop.
    fn score_phrase(&self, frequency: f32, length: u32) -> f64;

    /// Returns a score that no posting within the bound has more than.
    fn bound(&self, bound: Bound) -> f64;

    /// Returns a score that no posting at all has more than.
    fn bound_of_all(&self) -> f64;
}

/// Creates scorers.
pub trait Similarity {
    /// The scorers.
    type Scorer: Scorer;

    /// Returns the scorer of a term, or of a phrase of several terms: `records` has the number of
    /// records with each term.
    fn scorer(&self, boost: f32, field: FieldStatistics, records: &[u64]) -> Self::Scorer;
}

/// What is counted for a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldStatistics {
    /// The number of records that have the field.
    pub records: u64,
    /// The sum of the number of its tokens over all records.
    pub length: u64,
}
