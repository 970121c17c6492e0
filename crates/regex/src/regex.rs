//! One compiled pattern, and the choice of its engine.
//!
//! Compiled patterns share a memory budget. A pattern that does not fit is compiled again for each
//! search.

use std::fmt;

use memchr::memmem::Finder;
use regex_syntax::hir::{Hir, Look};
use windrow_interrupt::Interrupt;
use windrow_invariant::Bug;

use crate::backtrack::Search;
use crate::budget::{LazyPart, Reservation};
use crate::hir::translate;
use crate::linear::Linear;
use crate::program::Program;
use crate::syntax::{Options, Pattern, parse};
use crate::{Captures, MatchError, ParseError};

/// The longest pattern in bytes: MongoDB sets the same limit in PCRE2.
const PATTERN_BYTES_MAX: usize = 32_764;

/// The memory in bytes of a pattern that is plain text, in addition to the text itself.
const TEXT_BYTES: usize = 512;

/// The memory in bytes of the smallest automaton and its caches, in addition to the bytes that
/// `regex-automata` reports.
const AUTOMATON_BYTES: usize = 12 << 10;

/// Characters with a special meaning in a pattern.
const SPECIAL: &[char] = &[
    '\\', '^', '$', '.', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}',
];

fn is_plain_text(pattern: &str, options: Options) -> bool {
    !options.case_insensitive && !options.extended && !pattern.contains(SPECIAL)
}

/// The searches that a pattern is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Only [`Regex::is_match`]. [`Regex::captures_at`] also works, but is slower.
    Existence,
    /// Both [`Regex::is_match`] and [`Regex::captures_at`].
    Positions,
}

/// A compiled regular expression.
///
/// ```
/// use windrow_interrupt::Uninterrupted;
/// use windrow_regex::{Options, Purpose, Regex};
///
/// let regex = Regex::new("^(?!foo).*bar", Options::default(), Purpose::Existence)?;
/// assert_eq!(regex.is_match("a bar", &Uninterrupted), Ok(true));
/// assert_eq!(regex.is_match("foo bar", &Uninterrupted), Ok(false));
/// # Ok::<(), windrow_regex::ParseError>(())
/// ```
pub struct Regex {
    pattern: String,
    options: Options,
    purpose: Purpose,
    /// `None` if the budget of compiled patterns is used up: each search compiles the pattern.
    compiled: Option<Reservation<Engine>>,
}

enum Engine {
    /// The pattern has no special characters, so a search for its text suffices.
    Text(Box<Finder<'static>>),
    Linear(Box<Exact>),
    Backtracking {
        program: Program,
        filter: Filter,
    },
}

/// A pattern for which the linear engine finds the start of each match.
struct Exact {
    linear: Linear,
    /// `true` if the linear engine finds the end and the groups of a match as well.
    has_positions: bool,
    pattern: Pattern,
    /// Finds ends and groups if the linear engine cannot, or only at a high cost.
    program: LazyPart<Program>,
}

/// Excludes start positions from a search with the backtracking engine.
enum Filter {
    /// A match begins at the start of the text.
    TextStart,
    /// A match begins only where this pattern matches, which has fewer conditions.
    Wider(Box<Linear>),
    /// A match may begin anywhere.
    None,
}

impl Regex {
    /// Compiles a pattern. Fails if it is malformed, longer than 32,764 bytes or too large when
    /// compiled.
    ///
    /// All compiled patterns of the process together take at most 256 MiB. A pattern beyond that
    /// matches the same texts, but each search compiles it.
    pub fn new(pattern: &str, options: Options, purpose: Purpose) -> Result<Regex, ParseError> {
        if pattern.len() > PATTERN_BYTES_MAX {
            let message = "pattern string is longer than the limit set by the application";
            return Err(ParseError::new(message));
        }
        let engine = Engine::new(pattern, options, purpose)?;
        let bytes = engine.memory_bytes();
        Ok(Regex {
            pattern: pattern.to_owned(),
            options,
            purpose,
            compiled: Reservation::new(engine, bytes).ok(),
        })
    }

    /// Returns `true` if the text has a match. Fails if the search is interrupted, or needs more
    /// steps or memory than a search may use.
    pub fn is_match(&self, text: &str, interrupt: &dyn Interrupt) -> Result<bool, MatchError> {
        self.with_engine(interrupt, |engine| engine.is_match(text, interrupt))
    }

    /// Returns the first match that begins at or after the byte `start`, or `None`. Fails as
    /// [`Regex::is_match`] does.
    pub fn captures_at(
        &self,
        text: &str,
        start: usize,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Captures>, MatchError> {
        self.with_engine(interrupt, |engine| {
            engine.captures_at(text, start, interrupt)
        })
    }

    /// Runs a search. Checks the interrupt first if the pattern must be compiled.
    fn with_engine<T>(
        &self,
        interrupt: &dyn Interrupt,
        search: impl FnOnce(&Engine) -> Result<T, MatchError>,
    ) -> Result<T, MatchError> {
        if let Some(engine) = &self.compiled {
            return search(engine);
        }
        interrupt.check()?;
        let engine = Engine::new(&self.pattern, self.options, self.purpose);
        let engine = engine
            .map_err(|error| Bug::new(format!("/{}/ was compiled once: {error}", self.pattern)))?;
        search(&engine)
    }

    /// Returns about how many bytes of memory the compiled pattern takes; 0 if each search compiles
    /// it.
    pub fn memory_bytes(&self) -> usize {
        self.compiled.as_ref().map_or(0, Reservation::bytes)
    }

    /// Returns the pattern for the linear engine; `None` if the backtracking engine is needed to
    /// tell if a text matches.
    pub(crate) fn linear(&self) -> Option<Hir> {
        match self.compiled.as_deref() {
            Some(Engine::Text(text)) => Some(Hir::literal(text.needle())),
            Some(Engine::Linear(exact)) => Some(exact.linear.hir().clone()),
            Some(Engine::Backtracking { .. }) => None,
            None => {
                let pattern = parse(&self.pattern, self.options).ok()?;
                let plain = translate(&pattern.node, false);
                (!plain.is_wider).then_some(plain.hir)
            }
        }
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "/{}/", self.pattern)
    }
}

impl Engine {
    fn new(pattern: &str, options: Options, purpose: Purpose) -> Result<Engine, ParseError> {
        if is_plain_text(pattern, options) {
            return Ok(Engine::Text(Box::new(Finder::new(pattern).into_owned())));
        }
        let pattern = parse(pattern, options)?;
        let plain = translate(&pattern.node, false);
        if plain.is_wider {
            return Engine::backtracking(&pattern, plain.hir);
        }
        let has_positions = !plain.moves_positions && purpose == Purpose::Positions;
        let hir = if has_positions {
            translate(&pattern.node, true).hir
        } else {
            plain.hir.clone()
        };
        let Ok(linear) = Linear::new(&hir, plain.hir.clone()) else {
            // The automaton is too large. The program for backtracking is much smaller.
            return Engine::backtracking(&pattern, plain.hir);
        };
        Ok(Engine::Linear(Box::new(Exact {
            linear,
            has_positions,
            pattern,
            program: LazyPart::new(),
        })))
    }

    fn backtracking(pattern: &Pattern, wider: Hir) -> Result<Engine, ParseError> {
        Ok(Engine::Backtracking {
            program: Program::new(&pattern.node, pattern.groups)?,
            filter: Filter::new(wider),
        })
    }

    fn is_match(&self, text: &str, interrupt: &dyn Interrupt) -> Result<bool, MatchError> {
        match self {
            Engine::Text(finder) => Ok(finder.find(text.as_bytes()).is_some()),
            Engine::Linear(exact) => exact.linear.is_match(text, interrupt),
            Engine::Backtracking { program, filter } => {
                let found = backtrack(program, filter, text, 0, interrupt)?;
                Ok(found.is_some())
            }
        }
    }

    fn captures_at(
        &self,
        text: &str,
        start: usize,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Captures>, MatchError> {
        match self {
            Engine::Text(finder) => {
                let rest = text.as_bytes().get(start..).unwrap_or_default();
                let found = finder.find(rest).map(|at| start + at);
                Ok(found.map(|at| vec![Some(at..at + finder.needle().len())]))
            }
            Engine::Linear(exact) => exact.captures_at(text, start, interrupt),
            Engine::Backtracking { program, filter } => {
                backtrack(program, filter, text, start, interrupt)
            }
        }
    }

    /// Returns about how many bytes the process grows by, including the caches that a search fills.
    fn memory_bytes(&self) -> usize {
        match self {
            Engine::Text(finder) => TEXT_BYTES + finder.needle().len(),
            Engine::Linear(exact) => AUTOMATON_BYTES + exact.linear.memory_bytes(),
            Engine::Backtracking { program, filter } => {
                let filter = match filter {
                    Filter::Wider(linear) => AUTOMATON_BYTES + linear.memory_bytes(),
                    Filter::TextStart | Filter::None => 0,
                };
                program.memory_bytes() + filter
            }
        }
    }
}

impl Exact {
    fn captures_at(
        &self,
        text: &str,
        start: usize,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Captures>, MatchError> {
        let Some(found) = self.linear.find(text, start, interrupt)? else {
            return Ok(None);
        };
        if self.has_positions {
            if self.pattern.groups == 0 {
                return Ok(Some(vec![Some(found)]));
            }
            if let Some(captures) = self.linear.captures(text, &found) {
                return Ok(Some(captures));
            }
        }
        let captures = self.program.with(
            || self.new_program(),
            Program::memory_bytes,
            |program| Search::new(program, text, start, interrupt)?.match_at(found.start),
        )?;
        let missing = || {
            let message = format!(
                "{:?} matches at {} in one engine only",
                self.pattern.node, found.start
            );
            Bug::new(message).into()
        };
        captures.map(Some).ok_or_else(missing)
    }

    fn new_program(&self) -> Result<Program, MatchError> {
        let Pattern { node, groups } = &self.pattern;
        // The pattern has no look-behind, so its size is the only possible reason.
        Program::new(node, *groups).map_err(|_| MatchError::TooMuchMemory)
    }
}

impl Filter {
    fn new(wider: Hir) -> Filter {
        let properties = wider.properties();
        let matches_empty = properties.minimum_len() == Some(0);
        let is_anchored = properties.look_set_prefix().contains(Look::Start);
        match Linear::new(&wider.clone(), wider) {
            Ok(linear) if !matches_empty => Filter::Wider(Box::new(linear)),
            _ if is_anchored => Filter::TextStart,
            _ => Filter::None,
        }
    }

    /// Returns the first position at or after `start` where a match may begin. Fails if it is
    /// interrupted.
    fn next(
        &self,
        text: &str,
        start: usize,
        interrupt: &dyn Interrupt,
    ) -> Result<Option<Candidate>, MatchError> {
        let here = Candidate {
            position: start,
            bytes_read: 0,
        };
        match self {
            Filter::TextStart => Ok((start == 0).then_some(here)),
            Filter::Wider(linear) => {
                let found = linear.find(text, start, interrupt)?;
                Ok(found.map(|found| Candidate {
                    position: found.start,
                    bytes_read: found.end - start,
                }))
            }
            Filter::None => Ok((start <= text.len()).then_some(here)),
        }
    }
}

/// A position where a match may begin.
struct Candidate {
    position: usize,
    /// The number of bytes that the filter read to find the position.
    bytes_read: usize,
}

/// How many times the length of the text a filter may read, in addition to [`FILTER_BYTES_MIN`]. A
/// filter that reads more costs more than it saves, and the search continues without it.
const FILTER_READS_MAX: usize = 4;

/// The number of bytes that a filter may read in any text.
const FILTER_BYTES_MIN: usize = 1 << 16;

/// Returns the first match that begins at or after `start`: tries each position that the filter
/// allows.
fn backtrack(
    program: &Program,
    filter: &Filter,
    text: &str,
    start: usize,
    interrupt: &dyn Interrupt,
) -> Result<Option<Captures>, MatchError> {
    let (mut filter, mut bytes_left) = (filter, FILTER_READS_MAX * text.len() + FILTER_BYTES_MIN);
    let Some(mut candidate) = filter.next(text, start, interrupt)? else {
        return Ok(None);
    };
    let mut search = Search::new(program, text, start, interrupt)?;
    loop {
        if let Some(captures) = search.match_at(candidate.position)? {
            return Ok(Some(captures));
        }
        search.count(candidate.bytes_read)?;
        match bytes_left.checked_sub(candidate.bytes_read) {
            Some(left) => bytes_left = left,
            None => filter = &Filter::None,
        }
        let rest = text.get(candidate.position..).unwrap_or_default();
        let Some(character) = rest.chars().next() else {
            return Ok(None);
        };
        let from = candidate.position + character.len_utf8();
        match filter.next(text, from, interrupt)? {
            Some(next) => candidate = next,
            None => return Ok(None),
        }
    }
}
