//! Phrases with slop, as Lucene's `SloppyPhraseMatcher` defines them.
//!
//! Each place of the phrase goes through the positions of its term, less its offset in the phrase.
//! All shifted positions are equal where the phrase stands exactly. The distance of a match is the
//! greatest minus the smallest of them, and it counts `1 / (1 + distance)` if the distance is at
//! most the slop. Always the place with the smallest shifted position moves on. So not every
//! combination is tried; the result is defined by this procedure.
//!
//! Places with the same term may not be at the same position: of two that are, the smaller one
//! moves on.

/// A word of the phrase.
#[derive(Clone, Copy, Debug)]
pub(super) struct SloppyTerm {
    pub offset: u32,
    pub term: usize,
}

/// Computes how often a phrase is in a record.
#[derive(Clone, Debug)]
pub(super) struct SloppyMatcher {
    places: Vec<PhrasePositions>,
    /// For each term that has several places, these places in the order of their offsets.
    repeats: Vec<Vec<usize>>,
    slop: i64,
    /// The greatest shifted position.
    end: i64,
}

/// The positions of a word of the phrase in a record.
#[derive(Clone, Debug)]
struct PhrasePositions {
    offset: u32,
    /// The number in `repeats`.
    repeat: Option<usize>,
    positions: Vec<u32>,
    at: usize,
    /// The position less the offset.
    shifted: i64,
}

impl PhrasePositions {
    /// Moves to the next position. Returns `false` if there is none.
    fn step(&mut self) -> bool {
        self.at += 1;
        self.update_shifted()
    }

    /// Computes the shifted position. Returns `false` if there is no position.
    fn update_shifted(&mut self) -> bool {
        match self.positions.get(self.at) {
            Some(position) => {
                self.shifted = i64::from(*position) - i64::from(self.offset);
                true
            }
            None => false,
        }
    }

    fn position(&self) -> i64 {
        self.shifted + i64::from(self.offset)
    }

    /// The order in which places move on.
    fn order(&self) -> (i64, u32) {
        (self.shifted, self.offset)
    }
}

impl SloppyMatcher {
    pub fn new(terms: Vec<SloppyTerm>, slop: u32) -> SloppyMatcher {
        let mut repeats: Vec<Vec<usize>> = Vec::new();
        let mut numbers: Vec<Option<usize>> = vec![None; terms.len()];
        let mut by_term: Vec<usize> = (0..terms.len()).collect();
        by_term.sort_by_key(|place| terms.get(*place).map(|one| (one.term, one.offset)));
        let same = |one: &usize, other: &usize| {
            terms.get(*one).map(|one| one.term) == terms.get(*other).map(|other| other.term)
        };
        for group in by_term.chunk_by(same).filter(|group| group.len() > 1) {
            for place in group {
                if let Some(number) = numbers.get_mut(*place) {
                    *number = Some(repeats.len());
                }
            }
            repeats.push(group.to_vec());
        }
        let places = terms
            .iter()
            .zip(numbers)
            .map(|(term, repeat)| PhrasePositions {
                offset: term.offset,
                repeat,
                positions: Vec::new(),
                at: 0,
                shifted: 0,
            });
        SloppyMatcher {
            places: places.collect(),
            repeats,
            slop: i64::from(slop),
            end: i64::MIN,
        }
    }

    /// Returns the lists into which the positions of the places in a record belong. They are empty.
    pub fn positions(&mut self) -> impl Iterator<Item = &mut Vec<u32>> {
        self.places.iter_mut().map(|place| {
            place.positions.clear();
            &mut place.positions
        })
    }

    /// Returns the sum of the weights of all matches. 0 if there is none.
    pub fn frequency(&mut self) -> f32 {
        let mut frequency = 0.0;
        if !self.begin() {
            return frequency;
        }
        while let Some(matched) = self.next_match() {
            if matched.distance <= self.slop {
                frequency += 1.0 / (1.0 + matched.distance as f32);
            }
            if matched.is_last {
                break;
            }
        }
        frequency
    }

    /// Moves all places to their first positions, with no two places at one position of a term.
    fn begin(&mut self) -> bool {
        for place in &mut self.places {
            place.at = 0;
            if !place.update_shifted() {
                return false;
            }
        }
        for group in &self.repeats {
            for (number, place) in group.iter().enumerate() {
                let Some(place) = self.places.get_mut(*place) else {
                    continue;
                };
                place.at = number;
                if !place.update_shifted() {
                    return false;
                }
            }
        }
        let shifted = self.places.iter().map(|place| place.shifted);
        self.end = shifted.max().unwrap_or(i64::MIN);
        true
    }

    /// Returns the place that moves on next.
    fn first(&self) -> Option<usize> {
        let places = self.places.iter().enumerate();
        let first = places.min_by_key(|(_, place)| place.order());
        first.map(|(number, _)| number)
    }

    /// Returns the smallest shifted position of the places except one.
    fn least_of_others(&self, except: usize) -> i64 {
        let others = self.places.iter().enumerate();
        let others = others.filter(|(number, _)| *number != except);
        let shifted = others.map(|(_, place)| place.shifted);
        shifted.min().unwrap_or(i64::MAX)
    }

    /// Moves the smallest place on until it is beyond the next one, and returns the least distance
    /// on that way.
    fn next_match(&mut self) -> Option<Match> {
        let moving = self.first()?;
        let next = self.least_of_others(moving);
        let mut distance = self.distance(moving)?;
        loop {
            if !self.advance(moving) || !self.resolve_repeats(moving) {
                let is_last = true;
                return Some(Match { distance, is_last });
            }
            if self.places.get(moving)?.shifted > next {
                let is_last = false;
                return Some(Match { distance, is_last });
            }
            distance = distance.min(self.distance(moving)?);
        }
    }

    fn distance(&self, place: usize) -> Option<i64> {
        Some(self.end - self.places.get(place)?.shifted)
    }

    /// Moves a place to its next position. Returns `false` if there is none.
    fn advance(&mut self, place: usize) -> bool {
        let Some(place) = self.places.get_mut(place) else {
            return false;
        };
        let moved = place.step();
        if moved {
            self.end = self.end.max(place.shifted);
        }
        moved
    }

    /// Moves places of the same term on until no two are at one position. Returns `false` if
    /// positions are exhausted.
    fn resolve_repeats(&mut self, moved: usize) -> bool {
        let mut moved = moved;
        while let Some(other) = self.collision(moved) {
            let order = |place: usize| self.places.get(place).map(PhrasePositions::order);
            if order(other) <= order(moved) {
                moved = other;
            }
            if !self.advance(moved) {
                return false;
            }
        }
        true
    }

    /// Returns another place of the same term at the same position.
    fn collision(&self, place: usize) -> Option<usize> {
        let one = self.places.get(place)?;
        let group = self.repeats.get(one.repeat?)?;
        let mut others = group.iter().filter(|other| **other != place);
        let found = others.find(|other| {
            let other = self.places.get(**other);
            other.is_some_and(|other| other.position() == one.position())
        });
        found.copied()
    }
}

struct Match {
    distance: i64,
    /// No more positions are left.
    is_last: bool,
}
