//! An automaton that computes each of its transitions once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::Hash;

use super::Automaton;

/// The greatest number of states in the table. Each takes 1 KB. Further states are computed each
/// time.
const STATES_MAX: usize = 8_192;

/// The entry of a transition that was not computed yet.
const NOT_COMPUTED: u32 = u32::MAX;
/// The number of the state after which no bytes can be a term of the set.
const DEAD: u32 = u32::MAX - 1;

/// An automaton with a table of the transitions that were computed. A walk over many terms uses the
/// same few transitions many times.
#[derive(Debug)]
pub struct Memo<'a, A: Automaton> {
    automaton: &'a A,
    table: RefCell<StateTable<A::State>>,
}

/// A state of a [`Memo`].
#[derive(Clone, Debug)]
pub enum MemoState<S> {
    /// No bytes can be a term of the set.
    Dead,
    /// The state with this number in the table.
    Known(u32),
    /// A state for which the table had no room.
    Other(S),
}

#[derive(Debug)]
struct StateTable<S> {
    numbers: HashMap<S, u32>,
    states: Vec<KnownState<S>>,
}

#[derive(Debug)]
struct KnownState<S> {
    state: S,
    next: [u32; 256],
    /// A bit for each byte that may follow. `None` if not computed yet.
    may_follow: Option<[u64; 4]>,
}

impl<'a, A> Memo<'a, A>
where
    A: Automaton,
    A::State: Eq + Hash,
{
    /// Creates an automaton that accepts the same terms.
    pub fn new(automaton: &'a A) -> Memo<'a, A> {
        Memo {
            automaton,
            table: RefCell::new(StateTable {
                numbers: HashMap::new(),
                states: Vec::new(),
            }),
        }
    }

    /// Returns the state of the original automaton; `None` for a dead one.
    pub fn state_of(&self, state: &MemoState<A::State>) -> Option<A::State> {
        match state {
            MemoState::Dead => None,
            MemoState::Known(number) => {
                let known = self.table.borrow();
                known
                    .states
                    .get(*number as usize)
                    .map(|it| it.state.clone())
            }
            MemoState::Other(state) => Some(state.clone()),
        }
    }

    fn enter(&self, state: A::State) -> MemoState<A::State> {
        if !self.automaton.can_match(&state) {
            return MemoState::Dead;
        }
        self.table.borrow_mut().number(state)
    }
}

impl<S: Clone + Eq + Hash> StateTable<S> {
    /// Returns the state with its number, if there is room for it.
    fn number(&mut self, state: S) -> MemoState<S> {
        if let Some(number) = self.numbers.get(&state) {
            return MemoState::Known(*number);
        }
        if self.states.len() >= STATES_MAX {
            return MemoState::Other(state);
        }
        let number = self.states.len() as u32;
        self.numbers.insert(state.clone(), number);
        self.states.push(KnownState {
            state,
            next: [NOT_COMPUTED; 256],
            may_follow: None,
        });
        MemoState::Known(number)
    }

    fn next(&self, number: u32, byte: u8) -> Option<u32> {
        let state = self.states.get(number as usize)?;
        state.next.get(usize::from(byte)).copied()
    }

    fn set_next(&mut self, number: u32, byte: u8, next: u32) {
        let state = self.states.get_mut(number as usize);
        if let Some(slot) = state.and_then(|it| it.next.get_mut(usize::from(byte))) {
            *slot = next;
        }
    }
}

impl<A> Automaton for Memo<'_, A>
where
    A: Automaton,
    A::State: Eq + Hash,
{
    type State = MemoState<A::State>;

    fn start(&self) -> MemoState<A::State> {
        self.enter(self.automaton.start())
    }

    #[inline]
    fn step(&self, state: &MemoState<A::State>, byte: u8) -> MemoState<A::State> {
        if let MemoState::Known(number) = state {
            match self.table.borrow().next(*number, byte) {
                None | Some(DEAD) => return MemoState::Dead,
                Some(NOT_COMPUTED) => {}
                Some(next) => return MemoState::Known(next),
            }
        }
        let Some(own) = self.state_of(state) else {
            return MemoState::Dead;
        };
        let next = self.enter(self.automaton.step(&own, byte));
        if let MemoState::Known(number) = state {
            let entry = match &next {
                MemoState::Dead => Some(DEAD),
                MemoState::Known(next) => Some(*next),
                MemoState::Other(_) => None,
            };
            if let Some(entry) = entry {
                self.table.borrow_mut().set_next(*number, byte, entry);
            }
        }
        next
    }

    fn is_match(&self, state: &MemoState<A::State>) -> bool {
        let own = self.state_of(state);
        own.is_some_and(|own| self.automaton.is_match(&own))
    }

    #[inline]
    fn can_match(&self, state: &MemoState<A::State>) -> bool {
        !matches!(state, MemoState::Dead)
    }

    fn next_byte(&self, state: &MemoState<A::State>, from: u8) -> Option<u8> {
        let own = self.state_of(state)?;
        let MemoState::Known(number) = state else {
            return self.automaton.next_byte(&own, from);
        };
        let mut known = self.table.borrow_mut();
        let slot = &mut known.states.get_mut(*number as usize)?.may_follow;
        let bits = slot.get_or_insert_with(|| bytes_that_may_follow(self.automaton, &own));
        next_of(bits, from)
    }
}

fn bytes_that_may_follow<A: Automaton>(automaton: &A, state: &A::State) -> [u64; 4] {
    let mut bits = [0; 4];
    let mut from = Some(0);
    while let Some(byte) = from.and_then(|from| automaton.next_byte(state, from)) {
        if let Some(word) = bits.get_mut(usize::from(byte / 64)) {
            *word |= 1 << (byte % 64);
        }
        from = byte.checked_add(1);
    }
    bits
}

/// Returns the first byte from `from` on whose bit is set.
fn next_of(bits: &[u64; 4], from: u8) -> Option<u8> {
    let at = crate::bits::next_bit(bits, u64::from(from))?;
    u8::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automaton::Fuzzy;

    /// Compares all transitions after some bytes twice: computed, and read from the table.
    fn check(word: &str, terms: &[&str]) {
        let fuzzy = Fuzzy::new(word, 2, 0).unwrap();
        let memo = Memo::new(&fuzzy);
        for term in terms.iter().chain(terms) {
            assert_eq!(
                memo.accepts(term.as_bytes()),
                fuzzy.accepts(term.as_bytes())
            );
            let (mut own, mut known) = (fuzzy.start(), memo.start());
            for byte in term.bytes() {
                for from in 0..=u8::MAX {
                    let found = memo.next_byte(&known, from);
                    assert_eq!(found, fuzzy.next_byte(&own, from), "{word} {term} {from}");
                }
                (own, known) = (fuzzy.step(&own, byte), memo.step(&known, byte));
                assert_eq!(memo.can_match(&known), fuzzy.can_match(&own));
                assert_eq!(memo.is_match(&known), fuzzy.is_match(&own));
            }
        }
    }

    #[test]
    fn it_is_the_same_automaton() {
        let terms = [
            "coffee",
            "cofefe",
            "toffees",
            "tea",
            "",
            "cöffee",
            "naïve",
            "coffeeeee",
        ];
        for word in ["coffee", "naïve", "\u{10FFFF}x", "a"] {
            check(word, &terms);
        }
    }

    #[test]
    fn states_beyond_the_limit_are_computed() {
        let word: String = (0..4_000_u32)
            .map(|at| char::from(b'a' + (at % 26) as u8))
            .collect();
        let fuzzy = Fuzzy::new(&word, 2, 0).unwrap();
        let memo = Memo::new(&fuzzy);
        for at in (0..3_990).step_by(7) {
            let mut term = word.clone();
            term.replace_range(at..at + 1, "-");
            assert!(memo.accepts(term.as_bytes()));
        }
        assert_eq!(memo.table.borrow().states.len(), STATES_MAX);
    }
}
