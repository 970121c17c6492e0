//! The errors of parsing a pattern and of a search.

use std::fmt;

use windrow_interrupt::Interrupted;
use windrow_invariant::Bug;

/// The pattern is malformed or too large, which is the caller's fault. The text says what is wrong
/// with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl ParseError {
    pub(crate) fn new(message: impl Into<String>) -> ParseError {
        ParseError(message.into())
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

/// Why a search ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchError {
    /// The search was stopped before its end.
    Interrupted(Interrupted),
    /// The pattern needs more backtracking steps on this text than a search may take.
    TooManySteps,
    /// The search needs more memory than it may use: for pending alternatives, for the automata of
    /// a long text, or because the text has 4 GiB or more.
    TooMuchMemory,
    /// An invariant of this crate is broken.
    Bug(Bug),
}

impl fmt::Display for MatchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchError::Interrupted(interrupted) => interrupted.fmt(formatter),
            MatchError::TooManySteps => formatter.write_str("match limit exceeded"),
            MatchError::TooMuchMemory => formatter.write_str("heap limit exceeded"),
            MatchError::Bug(bug) => bug.fmt(formatter),
        }
    }
}

impl std::error::Error for MatchError {}

impl From<Interrupted> for MatchError {
    fn from(interrupted: Interrupted) -> MatchError {
        MatchError::Interrupted(interrupted)
    }
}

impl From<Bug> for MatchError {
    fn from(bug: Bug) -> MatchError {
        MatchError::Bug(bug)
    }
}
