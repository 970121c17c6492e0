//! Errors of queries.

use std::fmt;

/// An error in a query. Its text is a sentence for the person who wrote the query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryError {
    /// A quote is not closed. The number is that of its character, from 1 on.
    OpenQuote(usize),
    /// A parenthesis is not closed.
    OpenParenthesis(usize),
    /// A parenthesis is closed that is not open.
    ClosedParenthesis(usize),
    /// Something must follow: `OR`, `NOT`, `-` or a field.
    MissingClause(String),
    /// A field does not take such a value.
    BadValue {
        /// The name of the field.
        field: &'static str,
        /// The value as it was written.
        value: String,
        /// What the field takes.
        expected: &'static str,
    },
    /// The query is empty.
    Empty,
    /// Nothing in the query has a letter or a digit.
    NoWords(String),
    /// No format that is read has this media type.
    UnknownMimeType(String),
    /// The query has nothing but exclusions.
    OnlyNegations,
    /// Parentheses are nested too deeply.
    TooDeep,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::OpenQuote(at) => write!(f, "the quote at character {at} is not closed"),
            QueryError::OpenParenthesis(at) => {
                write!(f, "the parenthesis at character {at} is not closed")
            }
            QueryError::ClosedParenthesis(at) => {
                write!(f, "the parenthesis at character {at} closes nothing")
            }
            QueryError::MissingClause(before) => {
                write!(f, "nothing to search for follows {before:?}")
            }
            QueryError::BadValue {
                field,
                value,
                expected,
            } => write!(f, "{field}: does not take {value:?}; write {expected}"),
            QueryError::Empty => f.write_str("the query has no words"),
            QueryError::NoWords(text) => write!(
                f,
                "the query has no words: only letters and digits can be found, and {text:?} has none"
            ),
            QueryError::UnknownMimeType(value) => {
                write!(f, "mime: no format that is read has the type {value:?}")
            }
            QueryError::OnlyNegations => {
                f.write_str("the query only excludes; write at least one word that has to be found")
            }
            QueryError::TooDeep => {
                f.write_str("the parentheses of the query are nested too deeply")
            }
        }
    }
}

impl std::error::Error for QueryError {}
