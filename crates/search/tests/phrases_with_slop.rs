//! Phrases with slop have the frequencies that Lucene's documentation implies, and match where an
//! exhaustive search finds a match.

mod common;

use common::Random;
use windrow_search::memory::{MemoryPosting, MemoryPostings};
use windrow_search::operators::{Phrase, PhraseTerm};
use windrow_search::{Bound, END, Matches, Scorer};

/// A scorer that returns the frequency of a phrase as its score.
#[derive(Clone, Copy)]
struct Frequency;

impl Scorer for Frequency {
    fn score(&self, frequency: u32, _length: u32, _stored: Option<f64>) -> f64 {
        f64::from(frequency)
    }

    fn score_phrase(&self, frequency: f32, _length: u32) -> f64 {
        f64::from(frequency)
    }

    fn bound(&self, _bound: Bound) -> f64 {
        f64::INFINITY
    }

    fn bound_of_all(&self) -> f64 {
        f64::INFINITY
    }
}

/// Returns the frequency of a phrase in a text, where each letter is a word.
fn frequency(text: &str, phrase: &str, slop: u32) -> f64 {
    let terms = phrase.char_indices().map(|(position, letter)| {
        let positions: Vec<u32> = (0..)
            .zip(text.chars())
            .filter(|(_, found)| *found == letter)
            .map(|(position, _)| position)
            .collect();
        let posting = MemoryPosting {
            id: 5,
            frequency: positions.len() as u32,
            length: 9,
            score: None,
            positions,
        };
        PhraseTerm {
            list: MemoryPostings::new((posting.frequency > 0).then_some(posting)),
            position: position as u32,
            term: letter as usize,
        }
    });
    let mut phrase = Phrase::new(terms.collect(), slop, Frequency);
    if phrase.id() == END {
        0.0
    } else {
        phrase.score()
    }
}

fn check(text: &str, phrase: &str, slop: u32, expected: f32) {
    let found = frequency(text, phrase, slop);
    assert_eq!(found, f64::from(expected), "{phrase:?}~{slop} in {text:?}");
}

#[test]
fn frequencies_are_those_of_lucene() {
    check("xabay", "ab", 2, 1.0 + 1.0 / 3.0);
    check("ab", "ab", 1, 1.0);
    check("ba", "ab", 1, 0.0);
    check("ba", "ab", 2, 1.0 / 3.0);
    check("axb", "ab", 1, 0.5);
    check("axxb", "ab", 1, 0.0);
    // The documentation of Lucene's `SloppyPhraseMatcher` says that these two differ. The expected
    // frequencies were computed by hand from its procedure: distances of 0, 4 and 4; of 4 and 0.
    check("abcba", "abc", 4, 1.0 + 1.0 / 5.0 + 1.0 / 5.0);
    check("abcba", "cba", 4, 1.0 + 1.0 / 5.0);
    // A term that the phrase has twice needs two positions.
    check("a", "aa", 5, 0.0);
    check("xa", "aa", 5, 0.0);
    check("aa", "aa", 1, 1.0);
    check("axa", "aa", 1, 0.5);
}

/// Returns `true` if any choice of positions has at most this distance.
fn has_match(text: &str, phrase: &str, slop: u32) -> bool {
    let places: Vec<Vec<i64>> = (0..)
        .zip(phrase.chars())
        .map(|(offset, letter)| {
            let positions = (0..).zip(text.chars());
            let positions = positions.filter(|(_, found)| *found == letter);
            positions
                .map(|(position, _): (i64, _)| position - offset)
                .collect()
        })
        .collect();
    let lowest = places.iter().flatten().copied();
    lowest.clone().any(|low| {
        let high = low + i64::from(slop);
        places
            .iter()
            .all(|place| place.iter().any(|one| (low..=high).contains(one)))
    })
}

#[test]
fn a_match_within_the_slop_is_found_if_there_is_one() {
    let random = &mut Random(3);
    for _ in 0..20_000 {
        let letters = |random: &mut Random, count: u64| -> String {
            (0..count)
                .map(|_| (b'a' + random.below(6) as u8) as char)
                .collect()
        };
        let length = 1 + random.below(14);
        let text = letters(random, length);
        let mut phrase = letters(random, 4);
        let mut seen = Vec::new();
        phrase.retain(|letter| {
            let is_first = !seen.contains(&letter);
            seen.push(letter);
            is_first
        });
        let slop = 1 + random.below(5) as u32;
        let found = frequency(&text, &phrase, slop);
        assert_eq!(
            found > 0.0,
            has_match(&text, &phrase, slop),
            "{phrase:?}~{slop} {text:?}"
        );
    }
}
