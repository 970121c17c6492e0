//! What can go wrong with a pattern or a search.

use std::fmt;

use windrow_interrupt::Interrupted;
use windrow_invariant::Bug;

/// The caller's: a malformed pattern. The text is a sentence.
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

/// Why a search has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchError {
    /// The search was stopped before its end.
    Interrupted(Interrupted),
    /// The pattern's: it took more steps on this text than a search may take.
    TooManySteps,
    /// The pattern's: it held more alternatives of this text than a search may hold.
    TooMuchMemory,
    /// Ours.
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
