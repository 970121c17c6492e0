//! The score of MongoDB's `$text`.
//!
//! The crate `text` has the formula. If the score of a posting does not follow from its frequency
//! and length, the posting stores it: if there are several values, a weight, or a value that equals
//! the term.

use windrow_postings::{Impact, impact::FREQUENCY_MANY, length_of_code};
use windrow_text::SCORE_LIMIT;

use super::{FieldStatistics, Scorer, Similarity};
use crate::postings::Bound;

/// The scorer of all terms: in `$text`, the score does not depend on how rare a term is.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextScore;

/// Returns the score of a term with `occurrences` occurrences in a value of `tokens` tokens.
#[inline]
fn text_score(occurrences: u32, tokens: u32) -> f64 {
    // A value has at least as many tokens as occurrences. The maximum therefore only matters if the
    // number of tokens is not known (0), and then keeps the coefficient at 1 or less.
    windrow_text::score(occurrences, tokens.max(occurrences))
}

fn bound_of(impact: Impact) -> f64 {
    match impact.frequency {
        0 => 0.0,
        FREQUENCY_MANY => SCORE_LIMIT,
        occurrences => text_score(u32::from(occurrences), length_of_code(impact.length)),
    }
}

impl Scorer for TextScore {
    #[inline]
    fn score(&self, frequency: u32, length: u32, stored: Option<f64>) -> f64 {
        stored.unwrap_or_else(|| text_score(frequency, length))
    }

    /// Returns 0: in `$text`, the words of a phrase have scores as terms of the query, and the
    /// phrase itself has none.
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
    fn bounds_are_never_below_a_score() {
        for occurrences in [1, 2, 3, 40, 254, 255, 70_000] {
            for over in [0, 1, 5, 100, 10_000] {
                let tokens = occurrences + over;
                let bound = Bound {
                    impacts: [Impact::new(occurrences, tokens), Impact::default()],
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
