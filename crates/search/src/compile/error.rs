//! Limits, and why a query cannot be compiled.

use std::fmt;

use windrow_interrupt::Interrupted;

use crate::automaton::PatternError;

/// What a query may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The greatest number of postings lists that are open at the same time: terms, words of
    /// phrases, and similar words.
    pub lists: usize,
    /// The greatest number of terms that are found for one similar word.
    pub fuzzy_terms: usize,
    /// The greatest depth of queries within each other.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            lists: 16_384,
            fuzzy_terms: 1_000,
            depth: 100,
        }
    }
}

/// Why a query cannot be compiled.
#[derive(Clone, Debug, PartialEq)]
pub enum CompileError<E> {
    /// The source failed.
    Source(E),
    /// The compilation was stopped before its end.
    Interrupted(Interrupted),
    /// The query has more terms, words of phrases and similar words than the limit.
    TooManyLists {
        /// The limit.
        limit: usize,
    },
    /// Queries are within each other more deeply than the limit.
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// A similar word has more edits than an automaton supports.
    TooManyEdits {
        /// The number of edits.
        edits: u8,
    },
    /// A pattern is wrong or too large.
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        error: PatternError,
    },
}

impl<E> From<Interrupted> for CompileError<E> {
    fn from(interrupted: Interrupted) -> Self {
        CompileError::Interrupted(interrupted)
    }
}

impl<E: fmt::Display> fmt::Display for CompileError<E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Source(error) => error.fmt(formatter),
            CompileError::Interrupted(interrupted) => interrupted.fmt(formatter),
            CompileError::TooManyLists { limit } => write!(
                formatter,
                "the query has more than {limit} terms, words of phrases and similar words"
            ),
            CompileError::TooDeep { limit } => {
                write!(formatter, "the query is nested more than {limit} deep")
            }
            CompileError::TooManyEdits { edits } => write!(
                formatter,
                "similar words may have {} edits, not {edits}",
                crate::automaton::EDITS_MAX
            ),
            CompileError::Pattern { pattern, error } => {
                let shown: String = pattern.chars().take(100).collect();
                write!(
                    formatter,
                    "the pattern {shown:?} cannot be searched: {error}"
                )
            }
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for CompileError<E> {}
