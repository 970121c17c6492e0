//! Wildcards and regular expressions as deterministic automata.

use regex_automata::Anchored;
use regex_automata::MatchKind;
use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::Hir;

use super::error::{AUTOMATON_BYTES_MAX, PatternError};
use super::{Automaton, regex};

/// The terms that match a wildcard or a regular expression as a whole.
#[derive(Clone, Debug)]
pub struct Dfa {
    dfa: dense::DFA<Vec<u32>>,
    start: StateID,
}

impl Dfa {
    /// Creates the set of the terms that match a wildcard: `*` matches any characters, `?` matches
    /// one character, and a backslash makes the next character a literal.
    ///
    /// # Errors
    /// Fails if the automaton would be too large.
    pub fn wildcard(pattern: &str) -> Result<Dfa, PatternError> {
        Dfa::new(&regex::wildcard(pattern))
    }

    /// Creates the set of the terms that match a regular expression in Lucene's syntax:
    ///
    /// | | |
    /// |---|---|
    /// | `.` `@` `#` | any character, any characters, nothing |
    /// | `[a-z_]` `[^a-z]` | a character of a class, or not of it |
    /// | `\d` `\D` `\s` `\S` `\w` `\W` | an ASCII digit, blank, letter or digit or `_`; or not |
    /// | `?` `*` `+` `{2}` `{2,}` `{2,5}` | repetitions of what is before |
    /// | `ab` `a\|b` `(a)` | one after the other, one of both, a group |
    /// | `"ab"` `\a` | characters as they are |
    ///
    /// Lucene's optional operators `~` (complement), `&` (intersection) and `<1-9>` (numbers) are
    /// refused.
    ///
    /// # Errors
    /// Fails if the pattern is wrong or its automaton would be too large.
    pub fn regex(pattern: &str) -> Result<Dfa, PatternError> {
        Dfa::new(&regex::parse(pattern)?)
    }

    fn new(hir: &Hir) -> Result<Dfa, PatternError> {
        let config = thompson::Config::new().nfa_size_limit(Some(AUTOMATON_BYTES_MAX));
        let mut compiler = thompson::Compiler::new();
        let nfa = compiler.configure(config).build_from_hir(hir);
        let nfa = nfa.map_err(|_| PatternError::TooLarge)?;
        let config = dense::Config::new()
            .accelerate(false)
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Anchored)
            .dfa_size_limit(Some(AUTOMATON_BYTES_MAX))
            .determinize_size_limit(Some(AUTOMATON_BYTES_MAX));
        let mut builder = dense::Builder::new();
        let dfa = builder.configure(config).build_from_nfa(&nfa);
        let dfa = dfa.map_err(|_| PatternError::TooLarge)?;
        let start = start::Config::new().anchored(Anchored::Yes);
        let start = dfa
            .start_state(&start)
            .map_err(|_| PatternError::TooLarge)?;
        Ok(Dfa { dfa, start })
    }
}

impl Automaton for Dfa {
    type State = StateID;

    fn start(&self) -> StateID {
        self.start
    }

    #[inline]
    fn step(&self, state: &StateID, byte: u8) -> StateID {
        self.dfa.next_state(*state, byte)
    }

    fn is_match(&self, state: &StateID) -> bool {
        self.dfa.is_match_state(self.dfa.next_eoi_state(*state))
    }

    #[inline]
    fn can_match(&self, state: &StateID) -> bool {
        !self.dfa.is_dead_state(*state)
    }
}
