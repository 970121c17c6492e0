//! Phrases with slop, as Lucene's `SloppyPhraseMatcher` defines them.
//!
//! Each word of the phrase has a cursor over the positions of its term in the record. The *shifted
//! position* of a word is the position of its cursor minus its offset in the phrase. All shifted
//! positions are equal if the record has the exact phrase there.
//!
//! 1. The *distance* of a match is the greatest shifted position minus the smallest.
//! 2. A match with a distance up to the slop adds `1 / (1 + distance)` to the frequency.
//! 3. Then the cursor with the smallest shifted position moves on, until one cursor ends.
//!
//! This procedure does not try all combinations of positions. It defines the result.
//!
//! Two words with the same term must not have the same position. If they do, the one with the
//! smaller shifted position moves on.

/// A word of the phrase.
#[derive(Clone, Copy, Debug)]
pub(super) struct SloppyTerm {
    /// The offset of the word in the phrase.
    pub offset: u32,
    /// The number of the term. Words with the same term have the same number.
    pub term: usize,
}

/// Computes the frequency of a phrase in a record.
#[derive(Clone, Debug)]
pub(super) struct SloppyMatcher {
    words: Vec<PhrasePositions>,
    /// For each term of several words, the indexes of these words in the order of their offsets.
    repeats: Vec<Vec<usize>>,
    slop: i64,
    /// The greatest shifted position.
    end: i64,
}

/// The cursor of a word of the phrase over its positions in a record.
#[derive(Clone, Debug)]
struct PhrasePositions {
    offset: u32,
    /// The index of the word's group in `repeats`.
    repeat: Option<usize>,
    positions: Vec<u32>,
    /// The index of the current position.
    at: usize,
    /// The current position minus the offset.
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

    /// Returns the sort key of the word. The word with the smallest key moves on.
    fn order(&self) -> (i64, u32) {
        (self.shifted, self.offset)
    }
}

impl SloppyMatcher {
    pub fn new(terms: Vec<SloppyTerm>, slop: u32) -> SloppyMatcher {
        let mut repeats: Vec<Vec<usize>> = Vec::new();
        let mut numbers: Vec<Option<usize>> = vec![None; terms.len()];
        let mut by_term: Vec<usize> = (0..terms.len()).collect();
        by_term.sort_by_key(|word| terms.get(*word).map(|one| (one.term, one.offset)));
        let same = |one: &usize, other: &usize| {
            terms.get(*one).map(|one| one.term) == terms.get(*other).map(|other| other.term)
        };
        for group in by_term.chunk_by(same).filter(|group| group.len() > 1) {
            for word in group {
                if let Some(number) = numbers.get_mut(*word) {
                    *number = Some(repeats.len());
                }
            }
            repeats.push(group.to_vec());
        }
        let words = terms
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
            words: words.collect(),
            repeats,
            slop: i64::from(slop),
            end: i64::MIN,
        }
    }

    /// Returns the empty lists of positions, one for each word. The caller fills them with the
    /// positions in a record.
    pub fn positions(&mut self) -> impl Iterator<Item = &mut Vec<u32>> {
        self.words.iter_mut().map(|word| {
            word.positions.clear();
            &mut word.positions
        })
    }

    /// Returns the sum of the weights of all matches; 0 if there is none.
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

    /// Moves all words to their first positions. Words with the same term get different positions.
    /// Returns `false` if there are too few positions.
    fn begin(&mut self) -> bool {
        for word in &mut self.words {
            word.at = 0;
            if !word.update_shifted() {
                return false;
            }
        }
        for group in &self.repeats {
            for (number, word) in group.iter().enumerate() {
                let Some(word) = self.words.get_mut(*word) else {
                    continue;
                };
                word.at = number;
                if !word.update_shifted() {
                    return false;
                }
            }
        }
        let shifted = self.words.iter().map(|word| word.shifted);
        self.end = shifted.max().unwrap_or(i64::MIN);
        true
    }

    /// Returns the word that moves on next.
    fn first(&self) -> Option<usize> {
        let words = self.words.iter().enumerate();
        let first = words.min_by_key(|(_, word)| word.order());
        first.map(|(number, _)| number)
    }

    /// Returns the smallest shifted position of the words except one.
    fn least_of_others(&self, except: usize) -> i64 {
        let others = self.words.iter().enumerate();
        let others = others.filter(|(number, _)| *number != except);
        let shifted = others.map(|(_, word)| word.shifted);
        shifted.min().unwrap_or(i64::MAX)
    }

    /// Moves the word with the smallest shifted position on until another word has the smallest
    /// one, and returns the least distance of these steps.
    fn next_match(&mut self) -> Option<Match> {
        let moving = self.first()?;
        let next = self.least_of_others(moving);
        let mut distance = self.distance(moving)?;
        loop {
            if !self.advance(moving) || !self.resolve_repeats(moving) {
                let is_last = true;
                return Some(Match { distance, is_last });
            }
            if self.words.get(moving)?.shifted > next {
                let is_last = false;
                return Some(Match { distance, is_last });
            }
            distance = distance.min(self.distance(moving)?);
        }
    }

    /// Returns the distance of a match whose smallest shifted position is that of the word.
    fn distance(&self, word: usize) -> Option<i64> {
        Some(self.end - self.words.get(word)?.shifted)
    }

    /// Moves a word to its next position. Returns `false` if there is none.
    fn advance(&mut self, word: usize) -> bool {
        let Some(word) = self.words.get_mut(word) else {
            return false;
        };
        let moved = word.step();
        if moved {
            self.end = self.end.max(word.shifted);
        }
        moved
    }

    /// Moves words with the same term on until no two have the same position. Returns `false` if
    /// a word has no further position.
    fn resolve_repeats(&mut self, moved: usize) -> bool {
        let mut moved = moved;
        while let Some(other) = self.collision(moved) {
            let order = |word: usize| self.words.get(word).map(PhrasePositions::order);
            if order(other) <= order(moved) {
                moved = other;
            }
            if !self.advance(moved) {
                return false;
            }
        }
        true
    }

    /// Returns another word with the same term and the same position.
    fn collision(&self, word: usize) -> Option<usize> {
        let one = self.words.get(word)?;
        let group = self.repeats.get(one.repeat?)?;
        let mut others = group.iter().filter(|other| **other != word);
        let found = others.find(|other| {
            let other = self.words.get(**other);
            other.is_some_and(|other| other.position() == one.position())
        });
        found.copied()
    }
}

struct Match {
    distance: i64,
    /// `true` if a word has no further position.
    is_last: bool,
}
