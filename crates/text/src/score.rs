//! The score of each term in a document.
//!
//! For each string value and each distinct term in it, `weight · freq · coeff · adjust` is added to
//! the score of the term:
//!
//! - `n` is the number of words in the value that are not stop words,
//! - `freq = 1 + 1/2 + 1/4 + …` with one summand per occurrence,
//! - `coeff = 0.5 · occurrences / n + 0.5`,
//! - `adjust = 1.1` if the whole value equals the term without regard to ASCII case, else 1.
//!
//! The formula is MongoDB's. The recorded searches in `tests/` verify it to the last bit, so the
//! order of the floating-point operations is part of it.

use crate::known_terms::KnownTerms;
use crate::language::{Language, TextVersion};
use crate::term_places::TermPlaces;
use crate::term_table::TermGeneration;
use crate::visible;

/// The factor `adjust` of a value that equals its term.
const WHOLE_VALUE_ADJUSTMENT: f64 = 1.1;

/// The distinct terms of one document with their scores.
///
/// The buffers are reused. Create one for many documents and call [`DocumentTerms::clear`] between
/// them.
///
/// ```
/// use windrow_text::{DocumentTerms, Language, TextVersion};
///
/// let mut terms = DocumentTerms::new(TextVersion::V3);
/// terms.add("Baking a cake", 1.0, Language::ENGLISH);
/// terms.add("tea", 10.0, Language::ENGLISH);
/// assert_eq!(terms.iter().collect::<Vec<_>>(), [("bake", 0.75), ("cake", 0.75), ("tea", 11.0)]);
/// ```
pub struct DocumentTerms {
    known: KnownTerms,
    /// The places of the terms in the entries.
    places: TermPlaces,
    generation: TermGeneration,
    /// In the order of the first occurrences of the terms.
    entries: Vec<Entry>,
    /// The indexes of the entries of the current value.
    in_value: Vec<u32>,
    /// The words of all values: the index of the entry, and the position.
    occurrences: Vec<(u32, u32)>,
    /// The positions, grouped by entry.
    positions: Vec<u32>,
    /// The position of the first word of the next value.
    next_position: u32,
    /// The number of words of all values.
    length: u32,
    values: u32,
    /// All values so far have weight 1.
    is_unweighted: bool,
}

/// Words of different values are so far apart that no phrase spans two values.
const VALUE_GAP: u32 = 100;

/// What an index stores for a term of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TermPosting<'a> {
    /// The term.
    pub term: &'a str,
    /// The number of the term in this [`DocumentTerms`], which it keeps for further documents: see
    /// [`DocumentTerms::generation`].
    pub number: u32,
    /// The score, as [`DocumentTerms::iter`] returns it.
    pub score: f64,
    /// The score equals [`score`] of the frequency and the length.
    pub score_follows: bool,
    /// The number of its occurrences in all values.
    pub frequency: u32,
    /// The number of words in all values that are not stop words.
    pub length: u32,
    /// The positions of the occurrences in increasing order. Stop words have positions, too, and
    /// between two values there is a gap.
    pub positions: &'a [u32],
}

/// Returns the score of a term that occurs `occurrences` times in one value of `tokens` words, if
/// the value is not the term itself and has weight 1. The last bits are those of [`DocumentTerms`].
///
/// ```
/// assert_eq!(windrow_text::score(1, 2), 0.75);
/// ```
#[inline]
pub fn score(occurrences: u32, tokens: u32) -> f64 {
    let coefficient = 0.5 * f64::from(occurrences) / f64::from(tokens) + 0.5;
    frequency(occurrences) * coefficient
}

/// The limit of the sum 1 + 1/2 + 1/4 + …, and of [`score`].
pub const SCORE_LIMIT: f64 = 2.0;

/// Returns the sum of the first `occurrences` summands of 1 + 1/2 + 1/4 + … It is 2 - 2^(1 -
/// occurrences), and each sum is exact until rounding makes it 2.
#[inline]
fn frequency(occurrences: u32) -> f64 {
    const EXPONENT_OF_ONE: u64 = 1_023;
    const MANTISSA_BITS: u32 = 52;
    let exponent = EXPONENT_OF_ONE + 1 - u64::from(occurrences.min(60));
    SCORE_LIMIT - f64::from_bits(exponent << MANTISSA_BITS)
}

impl DocumentTerms {
    /// Creates an empty set of terms for documents of an index of `version`.
    pub fn new(version: TextVersion) -> DocumentTerms {
        DocumentTerms {
            known: KnownTerms::new(version),
            places: TermPlaces::default(),
            generation: TermGeneration::new(),
            entries: Vec::new(),
            in_value: Vec::new(),
            occurrences: Vec::new(),
            positions: Vec::new(),
            next_position: 0,
            length: 0,
            values: 0,
            is_unweighted: true,
        }
    }

    /// Removes all terms. The buffers stay allocated, and terms keep their numbers unless there are
    /// too many.
    pub fn clear(&mut self) {
        if self.known.forget_if_full() {
            self.places.forget();
            self.generation = TermGeneration::new();
        }
        self.places.begin_document();
        self.entries.clear();
        self.occurrences.clear();
        (self.next_position, self.length, self.values) = (0, 0, 0);
        self.is_unweighted = true;
    }

    /// Returns the generation of the numbers of terms, which only [`clear`](Self::clear) changes.
    /// Returns `None` if terms hardly repeat: their numbers are not worth using then.
    pub fn generation(&self) -> Option<TermGeneration> {
        self.known.are_repeated().then_some(self.generation)
    }

    /// Adds one string value of an indexed field. Each element of an array is a separate value.
    /// `weight` is the weight of the field.
    pub fn add(&mut self, text: &str, weight: f64, language: Language) {
        let text = visible(text);
        let (places, entries) = (&mut self.places, &mut self.entries);
        let in_value = &mut self.in_value;
        let (occurrences, first) = (&mut self.occurrences, self.next_position);
        in_value.clear();
        let mut tokens_count = 0_u32;
        let mut last = 0;
        self.known.visit(text, language, |found| {
            tokens_count += 1;
            let index = places.place(found.term, entries.len());
            if index as usize == entries.len() {
                entries.push(Entry::new(found.term));
            }
            let Some(entry) = entries.get_mut(index as usize) else {
                unreachable!("a term has the entry {index} of {}", entries.len());
            };
            if entry.occurrences == 0 {
                in_value.push(index);
            }
            entry.add_occurrence();
            last = found.position;
            occurrences.push((index, first.saturating_add(last)));
        });
        self.next_position = first.saturating_add(last).saturating_add(VALUE_GAP);
        self.length = self.length.saturating_add(tokens_count);
        self.values += 1;
        self.is_unweighted &= weight == 1.0;
        self.finish_value(text, weight, tokens_count);
    }

    /// Adds the scores of the current value to its terms.
    fn finish_value(&mut self, text: &str, weight: f64, tokens_count: u32) {
        for index in &self.in_value {
            let Some(entry) = self.entries.get_mut(*index as usize) else {
                unreachable!("a term has the entry {index} of {}", self.entries.len());
            };
            let term = self.known.term(entry.term);
            let is_whole = term.len() == text.len() && term.eq_ignore_ascii_case(text);
            entry.finish_value(
                weight,
                tokens_count,
                if is_whole {
                    WHOLE_VALUE_ADJUSTMENT
                } else {
                    1.0
                },
            );
        }
    }

    /// Returns the distinct terms and their scores in the order of their first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        let entries = self.entries.iter();
        entries.map(|entry| (self.known.term(entry.term), entry.score))
    }

    /// Returns the postings of the distinct terms, in the order of their first occurrence.
    ///
    /// ```
    /// use windrow_text::{DocumentTerms, Language, TextVersion};
    ///
    /// let mut terms = DocumentTerms::new(TextVersion::V3);
    /// terms.add("to bake a cake, bake it slowly", 1.0, Language::ENGLISH);
    /// let bake = terms.postings().next().unwrap();
    /// assert_eq!((bake.term, bake.frequency, bake.length), ("bake", 2, 4));
    /// assert_eq!(bake.positions, [1, 4]);
    /// ```
    pub fn postings(&mut self) -> impl Iterator<Item = TermPosting<'_>> {
        self.group_positions();
        let follows = self.values == 1 && self.is_unweighted;
        let (known, length) = (&self.known, self.length);
        let mut left = self.positions.as_slice();
        self.entries.iter().map(move |entry| {
            let (positions, behind) = left.split_at(entry.total as usize);
            left = behind;
            TermPosting {
                term: known.term(entry.term),
                number: entry.term,
                score: entry.score,
                score_follows: follows && !entry.is_adjusted,
                frequency: entry.total,
                length,
                positions,
            }
        })
    }

    /// Groups the positions by the entries of their terms, in the order of the entries.
    #[allow(
        clippy::indexing_slicing,
        reason = "each occurrence has the number of an entry, and each entry counts its occurrences"
    )]
    fn group_positions(&mut self) {
        let entries = &mut self.entries;
        let mut start = 0;
        for entry in entries.iter_mut() {
            entry.next_place = start;
            start += entry.total;
        }
        self.positions.clear();
        self.positions.resize(self.occurrences.len(), 0);
        for (number, position) in &self.occurrences {
            let entry = &mut entries[*number as usize];
            self.positions[entry.next_place as usize] = *position;
            entry.next_place += 1;
        }
    }

    /// Returns the number of distinct terms.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns `true` if the document has no terms.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// The statistics of a term of the document.
struct Entry {
    /// The number of the term.
    term: u32,
    /// The number of occurrences in the current value.
    occurrences: u32,
    /// The summand of `freq` for the next occurrence in the current value.
    next_summand: f64,
    /// `freq` of the current value.
    frequency: f64,
    /// The sum over the finished values.
    score: f64,
    /// The number of occurrences in all values.
    total: u32,
    /// The index of its next position while positions are grouped.
    next_place: u32,
    /// A value equals the term.
    is_adjusted: bool,
}

impl Entry {
    /// Returns the entry of a term that has not occurred yet.
    fn new(term: u32) -> Entry {
        Entry {
            term,
            occurrences: 0,
            next_summand: 1.0,
            frequency: 0.0,
            score: 0.0,
            total: 0,
            next_place: 0,
            is_adjusted: false,
        }
    }

    fn add_occurrence(&mut self) {
        self.occurrences += 1;
        self.frequency += self.next_summand;
        self.next_summand *= 0.5;
    }

    fn finish_value(&mut self, weight: f64, tokens_count: u32, adjustment: f64) {
        let coefficient = (0.5 * f64::from(self.occurrences) / f64::from(tokens_count)) + 0.5;
        self.score += weight * self.frequency * coefficient * adjustment;
        self.is_adjusted |= adjustment != 1.0;
        self.total += self.occurrences;
        self.occurrences = 0;
        self.frequency = 0.0;
        self.next_summand = 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::{DocumentTerms, frequency};
    use crate::{Language, TextVersion};

    #[test]
    fn frequencies_equal_the_sums_of_their_summands() {
        for occurrences in 0..=255 {
            let sum: f64 = (0..occurrences).map(|one| 0.5f64.powi(one)).sum();
            assert_eq!(frequency(occurrences as u32), sum, "{occurrences}");
        }
    }

    fn check(values: &[(&str, f64, Language)], expected: &[(&str, f64)]) {
        let mut terms = DocumentTerms::new(TextVersion::V3);
        // `clear` must remove everything of the document before.
        terms.add("cake tea leftover", 9.0, Language::NONE);
        terms.clear();
        for (text, weight, language) in values {
            terms.add(text, *weight, *language);
        }
        assert_eq!(terms.iter().collect::<Vec<_>>(), expected, "of {values:?}");
        assert_eq!(
            (terms.len(), terms.is_empty()),
            (expected.len(), expected.is_empty())
        );
    }

    #[test]
    fn the_score_of_a_value_depends_on_occurrences_and_length() {
        let english = |text| [(text, 1.0, Language::ENGLISH)];
        check(&english("Baking a cake"), &[("bake", 0.75), ("cake", 0.75)]);
        check(&english("cake"), &[("cake", 1.1)]);
        check(&english("CAKE"), &[("cake", 1.1)]);
        check(&english("cakes"), &[("cake", 1.0)]);
        check(&english("cake "), &[("cake", 1.0)]);
        check(&english("café"), &[("cafe", 1.0)]);
        check(&english("cake cake"), &[("cake", 1.5)]);
        check(
            &english("cake tea cake coffee cake"),
            &[
                ("cake", 1.75 * (0.5 * 3.0 / 5.0 + 0.5)),
                ("tea", 0.6),
                ("coffe", 0.6),
            ],
        );
        check(&english("cake\0tea"), &[("cake", 1.1)]);
        check(&english(""), &[]);
        check(&english("the of"), &[]);
    }

    #[test]
    fn weighted_scores_of_values_are_summed() {
        check(
            &[
                ("cake", 1.0, Language::ENGLISH),
                ("cake", 3.0, Language::ENGLISH),
            ],
            &[("cake", 1.1 + 3.0 * 1.1)],
        );
        check(
            &[
                ("tea", 10.0, Language::NONE),
                ("tea cakes", 1.0, Language::ENGLISH),
            ],
            &[("tea", 11.0 + 0.75), ("cake", 0.75)],
        );
        check(
            &[
                ("les maisons", 1.0, Language::FRENCH),
                ("les", 1.0, Language::NONE),
            ],
            &[("maison", 1.0), ("les", 1.1)],
        );
        check(
            &[("cake", 99_999.0, Language::NONE)],
            &[("cake", 99_999.0 * 1.1)],
        );
    }

    #[test]
    fn each_occurrence_adds_half_of_the_one_before() {
        for (count, expected) in [(1, 1.1), (3, 1.75), (12, 1.999_511_718_75), (1100, 2.0)] {
            let text = vec!["cake"; count].join(" ");
            check(&[(&text, 1.0, Language::ENGLISH)], &[("cake", expected)]);
        }
    }

    #[test]
    fn a_large_document_leaves_nothing_behind() {
        let words: Vec<String> = (0..10_000).map(|number| format!("w{number}")).collect();
        let mut terms = DocumentTerms::new(TextVersion::V3);
        terms.add(&words.join(" "), 1.0, Language::NONE);
        assert_eq!(terms.len(), 10_000);
        assert!(
            terms
                .iter()
                .zip(&words)
                .all(|((term, _), word)| term == word)
        );
        for _ in 0..20 {
            terms.clear();
            terms.add("w1 w2", 1.0, Language::NONE);
            assert_eq!(
                terms.iter().collect::<Vec<_>>(),
                [("w1", 0.75), ("w2", 0.75)]
            );
        }
    }
}
