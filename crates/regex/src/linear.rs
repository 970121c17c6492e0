//! The linear engine: patterns as finite automata.
//!
//! A search whose worst case is small uses `regex-automata`'s own engine, which chooses among several
//! strategies and cannot be interrupted. Any other search steps a lazy DFA byte by byte and checks the
//! interrupt.

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta;
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Hir, HirKind};
use windrow_invariant::Bug;

use crate::{Captures, MatchError, ParseError, ShouldStop};

/// The largest compiled automaton in bytes. The backtracking engine's programs are far smaller.
const AUTOMATON_BYTES_MAX: usize = 2 << 20;

/// The largest automaton of several patterns together, in bytes.
const JOINED_BYTES_MAX: usize = 1 << 20;

/// The most states of several patterns together: some strategies of `regex-automata` do not heed the
/// limit in bytes.
const JOINED_STATES_MAX: usize = 1 << 17;

/// Memory for the states that a lazy DFA has met, in bytes.
const CACHE_BYTES_MAX: usize = 2 << 20;

/// States times bytes of text that a search may visit without an interrupt. The slowest strategy
/// visits about 50 million a second, so such a search takes less than 100 ms.
const UNINTERRUPTED_VISITS_MAX: usize = 1 << 22;

/// States times slots for captures: memory of the slowest strategy, in words of 8 bytes.
const CAPTURE_WORDS_MAX: usize = 1 << 20;

/// An automaton for a pattern without conditions that need backtracking.
pub(crate) struct Linear {
    engine: meta::Regex,
    /// The same pattern without groups.
    plain: Hir,
    states: usize,
    automata: OnceLock<Result<Automata, ParseError>>,
}

impl Linear {
    /// Compiles `hir`. `plain` is the same pattern without groups.
    pub(crate) fn new(hir: &Hir, plain: Hir) -> Result<Linear, ParseError> {
        Linear::with_limit(hir, plain, AUTOMATON_BYTES_MAX)
    }

    /// Compiles several patterns joined to one.
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
            automata: OnceLock::new(),
        })
    }

    /// Bytes of the compiled pattern.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.engine.memory_usage() + self.states * size_of::<u64>()
    }

    /// The pattern without groups.
    pub(crate) fn hir(&self) -> &Hir {
        &self.plain
    }

    fn is_small(&self, bytes: usize) -> bool {
        self.states.saturating_mul(bytes.saturating_add(1)) <= UNINTERRUPTED_VISITS_MAX
    }

    fn has_small_captures(&self, bytes: usize) -> bool {
        let slots = 2 * self.engine.captures_len();
        let visits = self.states.saturating_mul(slots);
        visits <= CAPTURE_WORDS_MAX && self.is_small(bytes.saturating_mul(slots.div_ceil(4)))
    }

    /// Whether `text` has a match.
    pub(crate) fn is_match(&self, text: &str, should_stop: ShouldStop) -> Result<bool, MatchError> {
        if self.is_small(text.len()) {
            return Ok(self.engine.is_match(text));
        }
        let input = Input::new(text).earliest(true);
        let end = self.automata()?.end(&input, self.states, should_stop)?;
        Ok(end.is_some())
    }

    /// The bytes of the first match at or after `start`.
    pub(crate) fn find(
        &self,
        text: &str,
        start: usize,
        should_stop: ShouldStop,
    ) -> Result<Option<Range<usize>>, MatchError> {
        let input = Input::new(text).range(start..);
        if self.is_small(text.len().saturating_sub(start)) {
            return Ok(self.engine.find(input).map(|found| found.range()));
        }
        let automata = self.automata()?;
        let Some(end) = automata.end(&input, self.states, should_stop)? else {
            return Ok(None);
        };
        let input = input.range(start..end).anchored(Anchored::Yes);
        let start = automata.start(&input, self.states, should_stop)?;
        let start =
            start.ok_or_else(|| Bug::new(format!("a match ends at {end} and has no start")))?;
        Ok(Some(start..end))
    }

    /// The groups of the match at `found`. `None` if that is too expensive without interrupts.
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

    fn automata(&self) -> Result<&Automata, MatchError> {
        let automata = self.automata.get_or_init(|| Automata::new(&self.plain));
        automata.as_ref().map_err(|_| MatchError::TooMuchMemory)
    }
}

/// The reason without the pattern, which the caller has.
pub(crate) fn reason(error: &meta::BuildError) -> String {
    match error.size_limit() {
        Some(limit) => format!("regular expression is too large: more than {limit} bytes"),
        None => error.to_string(),
    }
}

/// Lazy DFAs that are stepped byte by byte.
struct Automata {
    forward: Steps,
    /// Reads text backwards from the end of a match to its start.
    reverse: Steps,
}

struct Steps {
    dfa: DFA,
    caches: Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync>>,
}

impl Steps {
    fn new(hir: &Hir, is_reverse: bool) -> Result<Steps, ParseError> {
        let config = thompson::Config::new()
            .nfa_size_limit(Some(8 * AUTOMATON_BYTES_MAX))
            .which_captures(thompson::WhichCaptures::None)
            .reverse(is_reverse);
        let nfa = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(hir)
            .map_err(|error| ParseError::new(error.to_string()))?;
        let kind = match is_reverse {
            true => MatchKind::All,
            false => MatchKind::LeftmostFirst,
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
        Ok(Steps {
            dfa,
            caches: Pool::new(Box::new(move || for_caches.create_cache())),
        })
    }
}

/// Bytes between two checks of the interrupt: fewer for large automata, where a new state of the DFA
/// takes a visit to each state.
fn bytes_per_check(states: usize) -> usize {
    (UNINTERRUPTED_VISITS_MAX / states.max(1)).clamp(16, 8192)
}

impl Automata {
    fn new(hir: &Hir) -> Result<Automata, ParseError> {
        Ok(Automata {
            forward: Steps::new(hir, false)?,
            reverse: Steps::new(hir, true)?,
        })
    }

    /// Where the first match in the input's range ends.
    fn end(
        &self,
        input: &Input<'_>,
        states: usize,
        should_stop: ShouldStop,
    ) -> Result<Option<usize>, MatchError> {
        let Steps { dfa, caches } = &self.forward;
        let cache = &mut *caches.get();
        let mut state = dfa
            .start_state_forward(cache, input)
            .map_err(automaton_failed)?;
        let mut end = None;
        let per_check = bytes_per_check(states);
        let haystack = input.haystack();
        let range = haystack.get(input.get_range()).unwrap_or_default();
        let mut at = input.start();
        for bytes in range.chunks(per_check) {
            if should_stop() {
                return Err(MatchError::Interrupted);
            }
            for byte in bytes {
                state = dfa
                    .next_state(cache, state, *byte)
                    .map_err(automaton_failed)?;
                if state.is_tagged() {
                    // The automaton reports a match one byte late.
                    if state.is_match() {
                        end = Some(at);
                        if input.get_earliest() {
                            return Ok(end);
                        }
                    } else if state.is_dead() {
                        return Ok(end);
                    }
                }
                at += 1;
            }
        }
        state = match haystack.get(at) {
            Some(byte) => dfa.next_state(cache, state, *byte),
            None => dfa.next_eoi_state(cache, state),
        }
        .map_err(automaton_failed)?;
        if state.is_match() {
            end = Some(at);
        }
        Ok(end)
    }

    /// Where the longest match that ends with the input's range starts.
    fn start(
        &self,
        input: &Input<'_>,
        states: usize,
        should_stop: ShouldStop,
    ) -> Result<Option<usize>, MatchError> {
        let Steps { dfa, caches } = &self.reverse;
        let cache = &mut *caches.get();
        let mut state = dfa
            .start_state_reverse(cache, input)
            .map_err(automaton_failed)?;
        let mut start = None;
        let per_check = bytes_per_check(states);
        let haystack = input.haystack();
        let range = haystack.get(input.get_range()).unwrap_or_default();
        let mut at = input.end();
        for bytes in range.rchunks(per_check) {
            if should_stop() {
                return Err(MatchError::Interrupted);
            }
            for byte in bytes.iter().rev() {
                state = dfa
                    .next_state(cache, state, *byte)
                    .map_err(automaton_failed)?;
                if state.is_match() {
                    start = Some(at);
                } else if state.is_dead() {
                    return Ok(start);
                }
                at -= 1;
            }
        }
        state = match at.checked_sub(1).and_then(|before| haystack.get(before)) {
            Some(byte) => dfa.next_state(cache, state, *byte),
            None => dfa.next_eoi_state(cache, state),
        }
        .map_err(automaton_failed)?;
        if state.is_match() {
            start = Some(at);
        }
        Ok(start)
    }
}

/// The automata have no bytes at which they give up and clear their caches as often as they need.
fn automaton_failed(error: impl std::fmt::Display) -> MatchError {
    Bug::new(format!("a lazy DFA failed: {error}")).into()
}

/// An upper estimate of an automaton's states.
fn states(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(class) => {
            // A range of code points is at most about four sequences of up to four bytes.
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
