//! Patterns that cannot be searched.

use std::fmt;

/// A pattern that cannot be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// The pattern is malformed.
    Syntax {
        /// What is wrong.
        message: &'static str,
        /// The byte of the pattern.
        at: usize,
    },
    /// The automaton of the pattern would take too much memory.
    TooLarge,
}

impl fmt::Display for PatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Syntax { message, at } => write!(formatter, "{message} at byte {at}"),
            PatternError::TooLarge => write!(
                formatter,
                "the automaton of the pattern takes more than {AUTOMATON_BYTES_MAX} bytes"
            ),
        }
    }
}

impl std::error::Error for PatternError {}

/// The greatest size of an automaton. A pattern like `*a??????????????????` has an automaton whose
/// size doubles with each `?`.
pub(super) const AUTOMATON_BYTES_MAX: usize = 4 << 20;
