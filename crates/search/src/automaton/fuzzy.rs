//! Terms that are similar to a word.
//!
//! The distance is that of Lucene's fuzzy queries ("optimal string alignment"): the number of
//! characters to insert, delete or substitute, where a transposition of two neighbours is one edit.
//!
//! The distances of prefixes form a table with a row for each character that was read. A state
//! contains the part of the table that later rows need: the cells near the diagonal of the last
//! row, and those cells of the row before that a transposition uses. Its size therefore does not
//! depend on the length of the word.

use super::Automaton;
use super::utf8::{PartialCharacter, Utf8Step};

/// The greatest distance.
pub const EDITS_MAX: u8 = 2;

/// The number of cells in a row whose distance from the diagonal is at most [`EDITS_MAX`].
const CELLS: usize = 2 * EDITS_MAX as usize + 1;

/// The terms within a distance of a word, with a prefix that must be equal.
#[derive(Clone, Debug)]
pub struct Fuzzy {
    prefix: Vec<u8>,
    /// The word after the prefix.
    word: Vec<char>,
    edits: u8,
    /// A character that is not in the word.
    other: char,
}

/// What is known of the bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// This number of bytes of the prefix was read.
    Prefix(usize),
    /// The prefix was read, and these are the rows after the bytes that follow it.
    Word(Rows),
    /// The term is not similar.
    Dead,
}

/// The last two rows of the table of distances. Cell `k` of a row of `depth` characters belongs to
/// the first `depth + k - edits` characters of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rows {
    depth: u32,
    row: [u8; CELLS],
    before: [u8; CELLS],
    /// The last character, if it was the first half of a possible transposition.
    last: char,
    partial: PartialCharacter,
}

impl Fuzzy {
    /// Creates the set of the terms that begin with the first `prefix` characters of the word, and
    /// whose rest has at most `edits` edits. Returns `None` if there are more edits than
    /// [`EDITS_MAX`].
    pub fn new(word: &str, edits: u8, prefix: usize) -> Option<Fuzzy> {
        if edits > EDITS_MAX {
            return None;
        }
        let rest = word.char_indices().nth(prefix);
        let (prefix, rest) = word.split_at(rest.map_or(word.len(), |(at, _)| at));
        let mut unused = ('\u{E000}'..='\u{F8FF}').chain('\u{F0000}'..=char::MAX);
        Some(Fuzzy {
            prefix: prefix.as_bytes().to_vec(),
            word: rest.chars().collect(),
            edits,
            other: unused.find(|other| !rest.contains(*other))?,
        })
    }

    /// Returns the distance of the term that led to a state, if it is in the set.
    pub fn distance(&self, state: &State) -> Option<u8> {
        match state {
            State::Prefix(count) => {
                let is_whole = *count == self.prefix.len() && self.word.is_empty();
                is_whole.then_some(0)
            }
            State::Word(rows) if rows.partial.is_empty() => self.distance_of(rows),
            _ => None,
        }
    }

    fn distance_of(&self, rows: &Rows) -> Option<u8> {
        let cell = (self.word.len() + usize::from(self.edits)).checked_sub(rows.depth as usize)?;
        let distance = rows.row.get(cell).copied()?;
        (distance <= self.edits).then_some(distance)
    }

    /// Returns the distance of cells that are too far from the diagonal.
    fn far(&self) -> u8 {
        self.edits + 1
    }

    /// Returns the rows before the first character.
    fn first_rows(&self) -> Rows {
        let mut row = [self.far(); CELLS];
        let reachable = row.iter_mut().skip(usize::from(self.edits));
        for (distance, cell) in (0..=self.word.len().min(usize::from(self.edits))).zip(reachable) {
            *cell = distance as u8;
        }
        Rows {
            depth: 0,
            row,
            before: [self.far(); CELLS],
            last: self.other,
            partial: PartialCharacter::default(),
        }
    }

    /// Returns the rows after one more character.
    #[inline]
    fn read(&self, rows: &Rows, character: char) -> Rows {
        let (edits, far) = (usize::from(self.edits), self.far());
        let depth = rows.depth as usize + 1;
        let mut row = [far; CELLS];
        let mut left = far;
        for cell in 0..=2 * edits {
            // The cell belongs to the first `length` characters of the word.
            let Some(length) = (depth + cell).checked_sub(edits) else {
                continue;
            };
            if length > self.word.len() {
                break;
            }
            let at = |row: &[u8; CELLS], cell: usize| row.get(cell).copied().unwrap_or(far);
            let mut least = far.min(left + 1).min(at(&rows.row, cell + 1) + 1);
            if length > 0 {
                let expected = self.word.get(length - 1) == Some(&character);
                least = least.min(at(&rows.row, cell) + u8::from(!expected));
                let is_swap = length > 1
                    && self.word.get(length - 1) == Some(&rows.last)
                    && self.word.get(length - 2) == Some(&character);
                if is_swap {
                    least = least.min(at(&rows.before, cell) + 1);
                }
            }
            left = least;
            if let Some(slot) = row.get_mut(cell) {
                *slot = least;
            }
        }
        Rows {
            depth: depth as u32,
            row,
            before: rows.row,
            last: character,
            partial: PartialCharacter::default(),
        }
    }

    #[inline]
    fn is_alive(&self, rows: &Rows) -> bool {
        rows.row.iter().any(|distance| *distance <= self.edits)
    }

    /// Returns `true` if any character may follow.
    fn any_may_follow(&self, rows: &Rows) -> bool {
        // A character that is not in the word costs an edit.
        rows.row.iter().any(|distance| *distance < self.edits)
    }

    /// Calls `take` with the bytes of each character of the word that may follow.
    fn each_that_may_follow(&self, rows: &Rows, mut take: impl FnMut(&[u8])) {
        let near = (rows.depth as usize).saturating_sub(usize::from(self.edits) + 1);
        for character in self.word.iter().skip(near).take(CELLS + 2) {
            if self.is_alive(&self.read(rows, *character)) {
                take(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    fn step_rows(&self, rows: &Rows, byte: u8) -> State {
        let next = match rows.partial.read(byte) {
            Utf8Step::Character(character) => self.read(rows, character),
            Utf8Step::Incomplete(partial) => {
                let next = Rows { partial, ..*rows };
                let mut alive = self.any_may_follow(rows);
                if !alive {
                    let bytes = partial.bytes();
                    self.each_that_may_follow(rows, |one| alive |= one.starts_with(bytes));
                }
                return if alive {
                    State::Word(next)
                } else {
                    State::Dead
                };
            }
            Utf8Step::Invalid => return State::Dead,
        };
        if self.is_alive(&next) {
            State::Word(next)
        } else {
            State::Dead
        }
    }

    fn after_prefix(&self, count: usize) -> State {
        if count < self.prefix.len() {
            State::Prefix(count)
        } else {
            State::Word(self.first_rows())
        }
    }
}

impl Automaton for Fuzzy {
    type State = State;

    fn start(&self) -> State {
        self.after_prefix(0)
    }

    fn step(&self, state: &State, byte: u8) -> State {
        match state {
            State::Prefix(count) if self.prefix.get(*count) == Some(&byte) => {
                self.after_prefix(count + 1)
            }
            State::Word(rows) => self.step_rows(rows, byte),
            _ => State::Dead,
        }
    }

    fn is_match(&self, state: &State) -> bool {
        self.distance(state).is_some()
    }

    fn can_match(&self, state: &State) -> bool {
        *state != State::Dead
    }

    fn next_byte(&self, state: &State, from: u8) -> Option<u8> {
        match state {
            State::Prefix(count) => {
                let byte = self.prefix.get(*count).copied()?;
                (byte >= from).then_some(byte)
            }
            State::Word(rows) if self.any_may_follow(rows) => rows.partial.next_byte(from),
            State::Word(rows) => {
                let begun = rows.partial.bytes();
                let mut least: Option<u8> = None;
                self.each_that_may_follow(rows, |bytes| {
                    let byte = bytes.strip_prefix(begun).and_then(|rest| rest.first());
                    if let Some(byte) = byte.filter(|byte| **byte >= from) {
                        least = Some(least.map_or(*byte, |least| least.min(*byte)));
                    }
                });
                least
            }
            State::Dead => None,
        }
    }
}
