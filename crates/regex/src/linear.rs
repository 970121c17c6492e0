//! The linear engine: runs patterns as finite automata.
//!
//! A search with a small worst case uses the `meta` engine of `regex-automata`, which chooses among
//! several strategies and cannot be interrupted. Any other search steps a lazy DFA byte by byte and
//! checks the interrupt.

use std::ops::Range;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta;
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Hir, HirKind};
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;

use crate::budget::LazyPart;
use crate::{Captures, MatchError, ParseError};

/// The largest compiled automaton in bytes. The backtracking engine's programs are far smaller.
const AUTOMATON_BYTES_MAX: usize = 2 << 20;

/// The largest automaton of several patterns together, in bytes.
const JOINED_BYTES_MAX: usize = 1 << 20;

/// The most states of several patterns together. The limit in bytes is not enough, because some
/// strategies of `regex-automata` ignore it.
const JOINED_STATES_MAX: usize = 1 << 17;

/// The size in bytes of the cache of states that a lazy DFA builds while it searches.
const CACHE_BYTES_MAX: usize = 2 << 20;

/// The greatest product of states and bytes of text of a search that cannot be interrupted. It
/// bounds the visits of a state. The slowest strategy makes about 50 million visits a second, so
/// such a search takes less than 100 ms.
const UNINTERRUPTED_VISITS_MAX: usize = 1 << 22;

/// The greatest product of states and slots for captures: the memory of the slowest strategy, in
/// words of 8 bytes.
const CAPTURE_WORDS_MAX: usize = 1 << 20;

/// An automaton for a pattern without conditions that need backtracking.
pub(crate) struct Linear {
    engine: meta::Regex,
    /// The same pattern without groups.
    plain: Hir,
    states: usize,
    /// The automata that searches in long texts use.
    automata: LazyPart<Automata>,
}

impl Linear {
    /// Compiles `hir`. `plain` is the same pattern without groups. Fails if the automaton is too
    /// large.
    pub(crate) fn new(hir: &Hir, plain: Hir) -> Result<Linear, ParseError> {
        Linear::with_limit(hir, plain, AUTOMATON_BYTES_MAX)
    }

    /// Compiles an alternation of several patterns. Fails if the automaton is too large.
    pub(crate) fn joined(hir: Hir) -> Result<Linear, ParseError> {
        if states(&hir) > JOINED_STATES_MAX {
            return Err(ParseError::new("regular expression is too large"));
        }
        Linear::with_limit(&hir.clone(), hir, JOINED_BYTES_MAX)
    }

    fn with_limit(hir: &Hir, plain: Hir, bytes_max: usize) -> Result<Linear, ParseError> {
        let config = meta::Config::new()
            .nfa_size_limit(Some(bytes_max))
            .hybrid_cache_capacity(CACHE_BYTES_MAX);
        let engine = meta::Builder::new().configure(config).build_from_hir(hir);
        let engine = engine.map_err(|error| ParseError::new(reason(&error)))?;
        Ok(Linear {
            engine,
            states: states(&plain),
            plain,
            automata: LazyPart::new(),
        })
    }

    /// Returns the bytes of memory of the compiled pattern.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.engine.memory_usage() + self.states * size_of::<u64>()
    }

    /// Returns the pattern without groups.
    pub(crate) fn hir(&self) -> &Hir {
        &self.plain
    }

    /// Returns `true` if a search in a text of `bytes` bytes needs no interrupt.
    fn is_small(&self, bytes: usize) -> bool {
        self.states.saturating_mul(bytes.saturating_add(1)) <= UNINTERRUPTED_VISITS_MAX
    }

    /// Returns `true` if the search for the groups of a match of `bytes` bytes needs no interrupt.
    fn has_small_captures(&self, bytes: usize) -> bool {
        let slots = 2 * self.engine.captures_len();
        let visits = self.states.saturating_mul(slots);
        visits <= CAPTURE_WORDS_MAX && self.is_small(bytes.saturating_mul(slots.div_ceil(4)))
    }

    /// Returns `true` if `text` has a match.
    pub(crate) fn is_match(
        &self,
        text: &str,
        interrupt: &dyn Interrupt,
    ) -> Result<bool, MatchError> {
        if self.is_small(text.len()) {
            return Ok(self.engine.is_match(text));
        }
        self.with_automata(|automata| {
            let input = Input::new(text);
            let end = automata
                .forward
                .run(&input, SearchReport::Earliest, interrupt)?;
            Ok(end.is_some())
        })
    }

    /// Returns the byte range of the first match at or after `start`.
    pub(crate) fn find(
        &self,
        text: &str,
        start: usize,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Range<usize>>, MatchError> {
        let input = Input::new(text).range(start..);
        if self.is_small(text.len().saturating_sub(start)) {
            return Ok(self.engine.find(input).map(|found| found.range()));
        }
        self.with_automata(|automata| automata.find(input, interrupt))
    }

    /// Returns the groups of the match in the byte range `found`. `None` if that may take too long,
    /// because this search cannot be interrupted.
    pub(crate) fn captures(&self, text: &str, found: &Range<usize>) -> Option<Captures> {
        if !self.has_small_captures(found.len()) {
            return None;
        }
        let input = Input::new(text).range(found.clone());
        let mut captures = self.engine.create_captures();
        self.engine
            .search_captures(&input.anchored(Anchored::Yes), &mut captures);
        let groups = captures
            .iter()
            .map(|group| group.map(|group| group.range()));
        Some(groups.collect())
    }

    /// Runs a search with the automata, and builds them first if needed. Fails if they are too
    /// large.
    fn with_automata<T>(
        &self,
        search: impl FnOnce(&Automata) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        let build = || Automata::new(&self.plain, self.states);
        let build = || build().map_err(|_| MatchError::TooMuchMemory);
        self.automata.with(build, Automata::memory_bytes, search)
    }
}

/// Returns the text of the error without the pattern, which the caller has.
pub(crate) fn reason(error: &meta::BuildError) -> String {
    match error.size_limit() {
        Some(limit) => format!("regular expression is too large: more than {limit} bytes"),
        None => error.to_string(),
    }
}

/// Lazy DFAs for both directions.
struct Automata {
    /// Finds the end of a match.
    forward: LazyDfa,
    /// Finds the start of a match whose end is known.
    reverse: LazyDfa,
}

/// The direction in which an automaton reads the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Reverse,
}

/// A lazy DFA that is stepped byte by byte.
struct LazyDfa {
    direction: Direction,
    bytes_per_check: usize,
    dfa: DFA,
    caches: Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync>>,
}

impl LazyDfa {
    fn new(hir: &Hir, states: usize, direction: Direction) -> Result<LazyDfa, ParseError> {
        let config = thompson::Config::new()
            .nfa_size_limit(Some(8 * AUTOMATON_BYTES_MAX))
            .which_captures(thompson::WhichCaptures::None)
            .reverse(direction == Direction::Reverse);
        let nfa = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(hir)
            .map_err(|error| ParseError::new(error.to_string()))?;
        let kind = match direction {
            Direction::Forward => MatchKind::LeftmostFirst,
            Direction::Reverse => MatchKind::All,
        };
        let config = DFA::config()
            .match_kind(kind)
            .cache_capacity(CACHE_BYTES_MAX)
            .skip_cache_capacity_check(true);
        let dfa = DFA::builder()
            .configure(config)
            .build_from_nfa(nfa)
            .map_err(|error| ParseError::new(error.to_string()))?;
        let for_caches = dfa.clone();
        Ok(LazyDfa {
            direction,
            bytes_per_check: bytes_per_check(states),
            dfa,
            caches: Pool::new(Box::new(move || for_caches.create_cache())),
        })
    }

    /// Searches the input's range. Returns the end of the match that it finds, or, in the reverse
    /// direction, its start.
    fn run(
        &self,
        input: &Input<'_>,
        reported: SearchReport,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<usize>, MatchError> {
        let cache = &mut *self.caches.get();
        let haystack = input.haystack();
        let range = haystack.get(input.get_range()).unwrap_or_default();
        let mut found = None;
        let mut state = self.start(cache, input)?;
        for read in 0..range.len() {
            if read & (self.bytes_per_check - 1) == 0 {
                interrupt.check()?;
            }
            let byte = match self.direction {
                Direction::Forward => range.get(read),
                Direction::Reverse => range.get(range.len() - 1 - read),
            };
            state = self.step(cache, state, byte)?;
            if !state.is_tagged() {
                continue;
            }
            if state.is_match() {
                // The automaton reports a match one byte late.
                found = Some(self.position(input, read));
                if reported == SearchReport::Earliest {
                    return Ok(found);
                }
            } else if state.is_dead() {
                return Ok(found);
            }
        }
        let beside = match self.direction {
            Direction::Forward => haystack.get(input.end()),
            Direction::Reverse => {
                let before = input.start().checked_sub(1);
                before.and_then(|before| haystack.get(before))
            }
        };
        if self.step(cache, state, beside)?.is_match() {
            found = Some(self.position(input, range.len()));
        }
        Ok(found)
    }

    fn start(&self, cache: &mut Cache, input: &Input<'_>) -> Result<LazyStateID, MatchError> {
        match self.direction {
            Direction::Forward => self.dfa.start_state_forward(cache, input),
            Direction::Reverse => self.dfa.start_state_reverse(cache, input),
        }
        .map_err(automaton_failed)
    }

    /// Returns the state after a byte, or after the end of the text if `byte` is `None`.
    #[inline]
    fn step(
        &self,
        cache: &mut Cache,
        state: LazyStateID,
        byte: Option<&u8>,
    ) -> Result<LazyStateID, MatchError> {
        match byte {
            Some(byte) => self.dfa.next_state(cache, state, *byte),
            None => self.dfa.next_eoi_state(cache, state),
        }
        .map_err(automaton_failed)
    }

    /// Returns the position in the text after `read` bytes of the input's range.
    fn position(&self, input: &Input<'_>, read: usize) -> usize {
        match self.direction {
            Direction::Forward => input.start() + read,
            Direction::Reverse => input.end() - read,
        }
    }
}

/// Returns the number of bytes between two checks of the interrupt, a power of two. It is smaller
/// for large automata, because the DFA visits every state of the NFA to build a new state.
fn bytes_per_check(states: usize) -> usize {
    let bytes = UNINTERRUPTED_VISITS_MAX / states.max(1);
    bytes.clamp(16, 8192).next_power_of_two()
}

impl Automata {
    fn new(hir: &Hir, states: usize) -> Result<Automata, ParseError> {
        Ok(Automata {
            forward: LazyDfa::new(hir, states, Direction::Forward)?,
            reverse: LazyDfa::new(hir, states, Direction::Reverse)?,
        })
    }

    /// Returns the bytes of memory of the automata with a full cache for each direction.
    fn memory_bytes(&self) -> usize {
        let dfas = self.forward.dfa.memory_usage() + self.reverse.dfa.memory_usage();
        dfas + 2 * CACHE_BYTES_MAX
    }

    /// Returns the first match in the input's range.
    fn find(
        &self,
        input: Input<'_>,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Range<usize>>, MatchError> {
        let Some(end) = self.forward.run(&input, SearchReport::Last, interrupt)? else {
            return Ok(None);
        };
        let input = input
            .clone()
            .range(input.start()..end)
            .anchored(Anchored::Yes);
        let start = self.reverse.run(&input, SearchReport::Last, interrupt)?;
        let start =
            start.ok_or_else(|| Bug::new(format!("a match ends at {end} and has no start")))?;
        Ok(Some(start..end))
    }
}

/// The match that a search with a lazy DFA returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SearchReport {
    /// The first match that the automaton reports. The search ends there.
    Earliest,
    /// The last match that the automaton reports before its dead state.
    Last,
}

/// Makes a bug of an error of a lazy DFA. These automata cannot fail: they have no quit bytes and
/// no limit on how often they clear their caches.
fn automaton_failed(error: impl std::fmt::Display) -> MatchError {
    Bug::new(format!("a lazy DFA failed: {error}")).into()
}

/// Returns an upper estimate of the number of states of a pattern's automaton.
fn states(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(class) => {
            // A range of code points becomes at most about four sequences of up to four bytes.
            // These share states, so the estimate is 8 states for each range.
            let ranges = match class {
                regex_syntax::hir::Class::Unicode(class) => class.ranges().len(),
                regex_syntax::hir::Class::Bytes(class) => class.ranges().len(),
            };
            let is_ascii = class.maximum_len() == Some(1);
            ranges.saturating_mul(if is_ascii { 1 } else { 8 })
        }
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            let times = usize::try_from(times.max(1)).unwrap_or(usize::MAX);
            states(&repetition.sub)
                .saturating_add(1)
                .saturating_mul(times)
        }
        HirKind::Capture(capture) => states(&capture.sub).saturating_add(2),
        HirKind::Concat(parts) => parts.iter().map(states).fold(0, usize::saturating_add),
        HirKind::Alternation(branches) => {
            let all = branches
                .iter()
                .map(|branch| states(branch).saturating_add(1));
            all.fold(1, usize::saturating_add)
        }
    }
}
