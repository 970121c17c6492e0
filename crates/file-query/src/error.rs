//! Syntax errors of queries.

use std::fmt;

/// An error in a query. Its text is a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryError {
    /// A quotation mark is not closed. Contains the position of its character, counted from 1.
    OpenQuote(usize),
    /// A parenthesis is not closed.
    OpenParenthesis(usize),
    /// A closing parenthesis has no opening one.
    ClosedParenthesis(usize),
    /// An operand is missing after `OR`, `NOT`, `-` or a field.
    MissingClause(String),
    /// The value is invalid for the field.
    BadValue {
        /// The name of the field.
        field: &'static str,
        /// The value as written.
        value: String,
        /// A description of the valid values.
        expected: &'static str,
    },
    /// The query is empty.
    Empty,
    /// The query contains neither letters nor digits.
    NoWords(String),
    /// The media type is not that of any supported format.
    UnknownMimeType(String),
    /// The query consists of exclusions only.
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
