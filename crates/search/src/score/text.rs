//! The score of MongoDB's `$text`.
//!
//! ```text
//! score = (1 + 1/2 + 1/4 + …) · (0.5 · occurrences / tokens + 0.5)      a summand per occurrence
//! ```
//! A posting whose score does not follow from its frequency and length stores it: several values, a
//! weight, a value that equals the term. The module `score` of the crate `text` has the whole
//! formula. The operations here are in the same order, since another order changes the last bits.

use windrow_postings::{Impact, impact::FREQUENCY_MANY, length_of_code};

use super::{FieldStatistics, Scorer, Similarity};
use crate::postings::Bound;

/// The scorer of all terms: `$text` does not weigh terms by how rare they are.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextScore;

/// The limit of the sum of the summands.
const FREQUENCY_LIMIT: f64 = 2.0;

/// Returns the score of that many occurrences in that many tokens.
#[inline]
fn text_score(occurrences: u32, tokens: u32) -> f64 {
    // A value has at least as many tokens as occurrences. So the coefficient is at most 1 even if
    // the number of tokens is not known.
    let tokens = tokens.max(occurrences);
    let coefficient = 0.5 * f64::from(occurrences) / f64::from(tokens) + 0.5;
    frequency(occurrences) * coefficient
}

/// Returns the sum of the first `occurrences` summands of 1 + 1/2 + 1/4 + … It is 2 - 2^(1 -
/// occurrences), and each sum is exact until rounding makes it 2.
#[inline]
fn frequency(occurrences: u32) -> f64 {
    const EXPONENT_OF_ONE: u64 = 1_023;
    const MANTISSA_BITS: u32 = 52;
    let exponent = EXPONENT_OF_ONE + 1 - u64::from(occurrences.min(60));
    FREQUENCY_LIMIT - f64::from_bits(exponent << MANTISSA_BITS)
}

fn bound_of(impact: Impact) -> f64 {
    match impact.frequency {
        0 => 0.0,
        FREQUENCY_MANY => FREQUENCY_LIMIT,
        occurrences => text_score(u32::from(occurrences), length_of_code(impact.length)),
    }
}

impl Scorer for TextScore {
    #[inline]
    fn score(&self, frequency: u32, length: u32, stored: Option<f64>) -> f64 {
        stored.unwrap_or_else(|| text_score(frequency, length))
    }

    /// `$text` gives no score to phrases: their words are terms of the query.
    fn score_phrase(&self, _frequency: f32, _length: u32) -> f64 {
        0.0
    }

    #[inline]
    fn bound(&self, bound: Bound) -> f64 {
        let [one, other] = bound.impacts;
        bound_of(one).max(bound_of(other)).max(bound.stored_score)
    }

    fn bound_of_all(&self) -> f64 {
        f64::INFINITY
    }
}

/// Creates [`TextScore`] for each term. Boosts do not apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextSimilarity;

impl Similarity for TextSimilarity {
    type Scorer = TextScore;

    fn scorer(&self, _boost: f32, _field: FieldStatistics, _records: &[u64]) -> TextScore {
        TextScore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_the_manual() {
        assert_eq!(TextScore.score(1, 2, None), 0.75);
        assert_eq!(TextScore.score(1, 2, Some(7.25)), 7.25);
        assert_eq!(
            TextScore.score(3, 10, None),
            1.75 * (0.5 * 3.0 / 10.0 + 0.5)
        );
        assert_eq!(TextScore.score(1, 0, None), 1.0);
    }

    #[test]
    fn frequencies_equal_the_sums_of_their_summands() {
        for occurrences in 0..=255 {
            let sum: f64 = (0..occurrences).map(|one| 0.5f64.powi(one)).sum();
            assert_eq!(frequency(occurrences as u32), sum, "{occurrences}");
        }
    }

    #[test]
    fn bounds_are_never_below_a_score() {
        for occurrences in [1, 2, 3, 40, 254, 255, 70_000] {
            for over in [0, 1, 5, 100, 10_000] {
                let tokens = occurrences + over;
                let bound = Bound {
                    impacts: [Impact::of(occurrences, tokens), Impact::default()],
                    stored_score: 0.0,
                };
                assert!(TextScore.bound(bound) >= TextScore.score(occurrences, tokens, None));
            }
        }
        let stored = Bound {
            stored_score: 9.5,
            ..Bound::default()
        };
        assert_eq!(TextScore.bound(stored), 9.5);
    }
}
