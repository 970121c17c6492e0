//! Sets of terms as automata over bytes: prefixes, wildcards, regular expressions, similar words.
//!
//! An [`Automaton`] accepts the terms of a set. A [`Walk`] finds the terms of an index that it
//! accepts. After a term that is not accepted, the walk seeks the next term that may be accepted.
//! It therefore visits few terms of a large index, except for sets such as `*x`, whose terms can
//! begin with any bytes.
//!
//! - [`Prefix`]: terms that begin with some bytes.
//! - [`Fuzzy`]: terms that differ from a word by a few edits.
//! - [`Memo`]: the same set as another automaton, with transitions that are computed once.
//! - [`Dfa`]: wildcards ([`Dfa::wildcard`]) and regular expressions ([`Dfa::regex`]).

mod dfa;
mod error;
mod fuzzy;
mod memo;
mod regex;
mod utf8;

pub use dfa::Dfa;
pub use error::PatternError;
pub use fuzzy::{EDITS_MAX, Fuzzy};
pub use memo::{Memo, MemoState};

use crate::terms::Terms;

/// An automaton that reads terms byte by byte.
pub trait Automaton {
    /// The state after some bytes.
    type State: Clone;

    /// Returns the state before the first byte.
    fn start(&self) -> Self::State;

    /// Returns the state after one more byte.
    fn step(&self, state: &Self::State, byte: u8) -> Self::State;

    /// Returns `true` if the bytes so far are a term of the set.
    fn is_match(&self, state: &Self::State) -> bool;

    /// Returns `true` if the bytes so far, with or without more of them, may be a term of the set.
    fn can_match(&self, state: &Self::State) -> bool;

    /// Returns `true` if a term is in the set.
    fn accepts(&self, term: &[u8]) -> bool {
        let mut state = self.start();
        for byte in term {
            state = self.step(&state, *byte);
            if !self.can_match(&state) {
                return false;
            }
        }
        self.is_match(&state)
    }

    /// Returns the smallest byte that is `from` or greater and may follow, that is, after which
    /// [`can_match`](Self::can_match) is `true`.
    fn next_byte(&self, state: &Self::State, from: u8) -> Option<u8> {
        (from..=u8::MAX).find(|byte| self.can_match(&self.step(state, *byte)))
    }
}

/// Terms that begin with some bytes.
#[derive(Clone, Debug)]
pub struct Prefix {
    bytes: Vec<u8>,
}

impl Prefix {
    /// Creates the set of the terms that begin with these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Prefix {
        Prefix {
            bytes: bytes.into(),
        }
    }
}

impl Automaton for Prefix {
    /// The number of bytes that were read and agree with the prefix. `None` if one does not agree.
    type State = Option<usize>;

    fn start(&self) -> Option<usize> {
        Some(0)
    }

    fn step(&self, state: &Option<usize>, byte: u8) -> Option<usize> {
        let count = (*state)?;
        match self.bytes.get(count) {
            Some(expected) => (*expected == byte).then_some(count + 1),
            None => Some(count),
        }
    }

    fn is_match(&self, state: &Option<usize>) -> bool {
        *state == Some(self.bytes.len())
    }

    fn can_match(&self, state: &Option<usize>) -> bool {
        state.is_some()
    }
}

/// The terms of an index that an automaton accepts, in order.
///
/// ```
/// use windrow_search::automaton::{Fuzzy, Walk};
/// use windrow_search::memory::MemoryTerms;
///
/// let terms = MemoryTerms::new([("coffee", 1), ("cover", 1), ("toffee", 1), ("tea", 1)]);
/// let fuzzy = Fuzzy::new("coffee", 1, 0).unwrap();
/// let mut walk = Walk::new(&fuzzy, terms);
/// let mut found = Vec::new();
/// while let Some(term) = walk.next() {
///     found.push(term.to_vec());
/// }
/// assert_eq!(found, [b"coffee", b"toffee"]);
/// ```
#[derive(Debug)]
pub struct Walk<'a, A: Automaton, T> {
    automaton: &'a A,
    terms: T,
    /// The bytes that were read.
    path: Vec<u8>,
    /// The states before the first of them and after each one.
    states: Vec<A::State>,
    cursor: Cursor,
    visited: u64,
}

/// The position of the cursor of a walk.
#[derive(Clone, Copy, Debug)]
enum Cursor {
    /// Where it was when the walk was created.
    Opened,
    /// On a term that was not read yet.
    OnUnread,
    /// On an accepted term.
    OnMatch,
}

/// The greatest number of bytes by which the key of a seek is extended.
const EXTENSION_BYTES: usize = 64;

impl<'a, A: Automaton, T: Terms> Walk<'a, A, T> {
    /// Creates a walk over the terms of a cursor, from its current term on.
    pub fn new(automaton: &'a A, terms: T) -> Walk<'a, A, T> {
        Walk {
            automaton,
            terms,
            path: Vec::new(),
            states: vec![automaton.start()],
            cursor: Cursor::Opened,
            visited: 0,
        }
    }

    /// Moves to the next term that the automaton accepts, and returns it.
    #[expect(
        clippy::should_implement_trait,
        reason = "the term is borrowed from the cursor"
    )]
    pub fn next(&mut self) -> Option<&[u8]> {
        while !self.step()? {}
        self.terms.term()
    }

    /// Moves one step towards the next term that the automaton accepts. Returns `true` if the
    /// automaton accepts the current term, and `None` at the end. Use it in place of
    /// [`next`](Self::next) to check an interrupt between the steps.
    pub fn step(&mut self) -> Option<bool> {
        match self.cursor {
            Cursor::Opened => self.seek_first(),
            Cursor::OnUnread => {}
            Cursor::OnMatch => self.terms.next(),
        }
        let is_match = self.read_term()?;
        self.cursor = if is_match {
            Cursor::OnMatch
        } else {
            Cursor::OnUnread
        };
        Some(is_match)
    }

    /// Returns the cursor.
    pub fn terms_mut(&mut self) -> &mut T {
        &mut self.terms
    }

    /// Returns the state of the automaton after the current term.
    pub fn state(&self) -> Option<&A::State> {
        self.states.last()
    }

    /// Returns the number of terms that the walk has visited.
    pub fn visited(&self) -> u64 {
        self.visited
    }

    /// Seeks the least term that the automaton may accept.
    fn seek_first(&mut self) {
        let mut key = Vec::new();
        if self.extend(&mut key) {
            self.terms.seek(&key);
        }
    }

    /// Reads the current term. Returns `true` if the automaton accepts it. Otherwise moves on and
    /// returns `false`. It moves to the next term if an accepted term may begin with the current
    /// one: this is far cheaper than a seek, and is always so for sets such as `*x`. Otherwise it
    /// seeks the next term that may be accepted.
    fn read_term(&mut self) -> Option<bool> {
        self.visited += 1;
        let term = self.terms.term()?;
        let common = self.path.iter().zip(term);
        let common = common.take_while(|(one, other)| one == other).count();
        self.path.truncate(common);
        self.states.truncate(common + 1);
        let mut rejected = None;
        for byte in term.iter().skip(common) {
            let state = self.automaton.step(self.states.last()?, *byte);
            if !self.automaton.can_match(&state) {
                rejected = Some(*byte);
                break;
            }
            self.path.push(*byte);
            self.states.push(state);
        }
        match rejected {
            Some(byte) => {
                let key = self.key_after(byte)?;
                self.terms.seek(&key);
            }
            None if self.automaton.is_match(self.states.last()?) => return Some(true),
            None => self.terms.next(),
        }
        Some(false)
    }

    /// Returns a key such that the automaton accepts no term between the path with the rejected
    /// byte and the key.
    fn key_after(&mut self, rejected: u8) -> Option<Vec<u8>> {
        let mut key = self.path.clone();
        let mut last = Some(rejected);
        loop {
            let byte = match last {
                Some(byte) => byte,
                None => self.pop(&mut key)?,
            };
            last = None;
            let state = self.states.last()?;
            let next = byte.checked_add(1);
            if let Some(next) = next.and_then(|from| self.automaton.next_byte(state, from)) {
                key.push(next);
                self.push(next);
                self.extend(&mut key);
                return Some(key);
            }
        }
    }

    fn pop(&mut self, key: &mut Vec<u8>) -> Option<u8> {
        self.states.pop();
        self.path.pop();
        key.pop()
    }

    fn push(&mut self, byte: u8) {
        if let Some(state) = self.states.last() {
            let state = self.automaton.step(state, byte);
            self.states.push(state);
            self.path.push(byte);
        }
    }

    /// Extends a key, which equals the path, towards the smallest accepted term that begins with
    /// it. Returns `false` if there is none. The extension may end at [`EXTENSION_BYTES`]: the key
    /// then sorts before that term.
    fn extend(&mut self, key: &mut Vec<u8>) -> bool {
        let Some(mut state) = self.states.last().cloned() else {
            return false;
        };
        for count in 0..EXTENSION_BYTES {
            if self.automaton.is_match(&state) {
                return true;
            }
            let Some(byte) = self.automaton.next_byte(&state, 0) else {
                return count > 0;
            };
            state = self.automaton.step(&state, byte);
            key.push(byte);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryTerms;

    #[test]
    fn prefixes_visit_only_their_terms() {
        let words: Vec<String> = (0..5_000).map(|number| format!("w{number}")).collect();
        let terms = MemoryTerms::new(words.iter().map(|word| (word, 1)));
        for (prefix, count) in [("w49", 111), ("w4999", 1), ("x", 0), ("", 5_000), ("v", 0)] {
            let automaton = Prefix::new(prefix);
            let mut walk = Walk::new(&automaton, terms.clone());
            let mut found = 0;
            while let Some(term) = walk.next() {
                assert!(term.starts_with(prefix.as_bytes()));
                found += 1;
            }
            assert_eq!(found, count, "{prefix}");
            assert!(walk.visited() <= count + 2, "{prefix}: {}", walk.visited());
        }
    }
}
