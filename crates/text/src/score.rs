//! The score of each term in a document.
//!
//! For each string value with `n` tokens that are no stop words, and each distinct term in it:
//! `weight · freq · coeff · adjust` is added to the term's score, where
//! - `freq = 1 + 1/2 + 1/4 + …`, one summand an occurrence,
//! - `coeff = 0.5 · occurrences / n + 0.5`,
//! - `adjust = 1.1` where the whole value is the term but for ASCII case, else 1.

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use foldhash::fast::RandomState;

use crate::analyzer::{Analyzer, Sensitivity};
use crate::language::{Language, TextVersion};
use crate::visible;

/// What a value that is the bare term counts more.
const WHOLE_VALUE_ADJUSTMENT: f64 = 1.1;

/// The distinct terms of one document with their scores. Made once and cleared between documents.
pub struct DocumentTerms {
    analyzers: Analyzers,
    terms: TermTable,
    /// The terms of the value at hand.
    in_value: Vec<u32>,
}

impl DocumentTerms {
    /// For documents of an index of that version.
    pub fn new(version: TextVersion) -> DocumentTerms {
        DocumentTerms {
            analyzers: Analyzers::new(version, Sensitivity::NONE),
            terms: TermTable::new(),
            in_value: Vec::new(),
        }
    }

    /// Forget the document; the buffers stay.
    pub fn clear(&mut self) {
        self.terms.clear();
    }

    /// Add one string value of an indexed field. An array's elements are a value each.
    pub fn add(&mut self, text: &str, weight: f64, language: Language) {
        let text = visible(text);
        let (terms, in_value) = (&mut self.terms, &mut self.in_value);
        in_value.clear();
        let mut tokens_count = 0_u32;
        self.analyzers.of(language).terms(text, |found| {
            tokens_count += 1;
            let (number, entry) = terms.entry(found.term);
            if entry.occurrences == 0 {
                in_value.push(number);
            }
            entry.occur();
        });
        self.finish_value(text, weight, tokens_count);
    }

    fn finish_value(&mut self, text: &str, weight: f64, tokens_count: u32) {
        for number in &self.in_value {
            let (term, entry) = self.terms.get_mut(*number);
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

    /// The distinct terms and their scores, in the order in which the document has them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.terms.iter()
    }

    /// How many distinct terms there are.
    pub fn len(&self) -> usize {
        self.terms.entries.len()
    }

    /// Has the document no terms?
    pub fn is_empty(&self) -> bool {
        self.terms.entries.is_empty()
    }
}

/// One analyzer a language, made when the first text of it comes.
pub(crate) struct Analyzers {
    version: TextVersion,
    sensitivity: Sensitivity,
    by_slot: Vec<(usize, Analyzer)>,
}

impl Analyzers {
    pub(crate) fn new(version: TextVersion, sensitivity: Sensitivity) -> Analyzers {
        Analyzers {
            version,
            sensitivity,
            by_slot: Vec::new(),
        }
    }

    pub(crate) fn of(&mut self, language: Language) -> &mut Analyzer {
        let slot = language.slot();
        let index = match self.by_slot.iter().position(|(known, _)| *known == slot) {
            Some(index) => index,
            None => {
                let analyzer = Analyzer::with_sensitivity(language, self.version, self.sensitivity);
                self.by_slot.push((slot, analyzer));
                self.by_slot.len() - 1
            }
        };
        #[allow(clippy::indexing_slicing, reason = "the index was found or made above")]
        &mut self.by_slot[index].1
    }
}

/// A term of the document: where its bytes stand, its score so far, and its count in the value at hand.
struct Entry {
    hash: u64,
    start: u32,
    length: u32,
    occurrences: u32,
    next_summand: f64,
    frequency: f64,
    score: f64,
}

impl Entry {
    /// Where its term is in [`TermTable::bytes`].
    fn text_range(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.length as usize
    }

    fn occur(&mut self) {
        self.occurrences += 1;
        self.frequency += self.next_summand;
        self.next_summand *= 0.5;
    }

    fn finish_value(&mut self, weight: f64, tokens_count: u32, adjustment: f64) {
        let coefficient = (0.5 * f64::from(self.occurrences) / f64::from(tokens_count)) + 0.5;
        self.score += weight * self.frequency * coefficient * adjustment;
        self.occurrences = 0;
        self.frequency = 0.0;
        self.next_summand = 1.0;
    }
}

/// Terms by their bytes: an open-addressed table of entry numbers over one string of all terms.
/// Measured against a map of owned strings it saves an allocation a term.
struct TermTable {
    hasher: RandomState,
    bytes: String,
    entries: Vec<Entry>,
    /// Entry number + 1, or 0 for a free place. The length is a power of two.
    places: Vec<u32>,
}

const PLACES_MIN: usize = 256;

impl TermTable {
    fn new() -> TermTable {
        TermTable {
            hasher: RandomState::default(),
            bytes: String::new(),
            entries: Vec::new(),
            places: vec![0; PLACES_MIN],
        }
    }

    /// A table that one huge document stretched shrinks again, so that clearing stays cheap.
    fn clear(&mut self) {
        if self.places.len() > PLACES_MIN && self.entries.len() * 16 < self.places.len() {
            self.places.truncate(self.places.len() / 2);
        }
        self.places.fill(0);
        self.bytes.clear();
        self.entries.clear();
    }

    fn entry(&mut self, term: &str) -> (u32, &mut Entry) {
        if self.entries.len() * 2 >= self.places.len() {
            self.grow();
        }
        let hash = self.hash(term);
        let number = self.find_or_insert(term, hash);
        #[allow(
            clippy::indexing_slicing,
            reason = "the number was found or made above"
        )]
        (number, &mut self.entries[number as usize])
    }

    #[allow(
        clippy::indexing_slicing,
        reason = "places are masked, numbers are of entries that exist"
    )]
    fn find_or_insert(&mut self, term: &str, hash: u64) -> u32 {
        let mask = self.places.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            match self.places[place] {
                0 => break,
                number => {
                    let entry = &self.entries[number as usize - 1];
                    if entry.hash == hash && self.text(entry) == term {
                        return number - 1;
                    }
                }
            }
            place = (place + 1) & mask;
        }
        let number = self.entries.len() as u32;
        self.places[place] = number + 1;
        self.entries.push(Entry {
            hash,
            start: self.bytes.len() as u32,
            length: term.len() as u32,
            occurrences: 0,
            next_summand: 1.0,
            frequency: 0.0,
            score: 0.0,
        });
        self.bytes.push_str(term);
        number
    }

    #[allow(clippy::indexing_slicing, reason = "places are masked")]
    fn grow(&mut self) {
        let mask = self.places.len() * 2 - 1;
        self.places.clear();
        self.places.resize(mask + 1, 0);
        for (number, entry) in self.entries.iter().enumerate() {
            let mut place = entry.hash as usize & mask;
            while self.places[place] != 0 {
                place = (place + 1) & mask;
            }
            self.places[place] = number as u32 + 1;
        }
    }

    fn hash(&self, term: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(term.as_bytes());
        hasher.finish()
    }

    #[allow(clippy::indexing_slicing, reason = "an entry's text is in `bytes`")]
    fn text(&self, entry: &Entry) -> &str {
        &self.bytes[entry.text_range()]
    }

    /// The text and the entry of a number that [`TermTable::entry`] returned.
    #[allow(clippy::indexing_slicing, reason = "an entry's text is in `bytes`")]
    fn get_mut(&mut self, number: u32) -> (&str, &mut Entry) {
        let entry = &mut self.entries[number as usize];
        (&self.bytes[entry.text_range()], entry)
    }

    fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.entries
            .iter()
            .map(|entry| (self.text(entry), entry.score))
    }
}

#[cfg(test)]
mod tests {
    use super::DocumentTerms;
    use crate::{Language, TextVersion};

    fn check(values: &[(&str, f64, Language)], expected: &[(&str, f64)]) {
        let mut terms = DocumentTerms::new(TextVersion::V3);
        // A document before it must leave nothing behind.
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
    fn one_value_scores_by_occurrences_and_length() {
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
    fn values_add_up_with_their_weights() {
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
    fn frequency_halves_until_it_vanishes() {
        for (count, expected) in [(1, 1.1), (3, 1.75), (12, 1.999_511_718_75), (1100, 2.0)] {
            let text = vec!["cake"; count].join(" ");
            check(&[(&text, 1.0, Language::ENGLISH)], &[("cake", expected)]);
        }
    }

    #[test]
    fn a_large_document_grows_the_table_and_later_ones_shrink_it() {
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
        assert_eq!(terms.terms.places.len(), super::PLACES_MIN);
    }
}
