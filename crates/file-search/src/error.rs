//! Errors of searches.

use std::fmt;

/// The reason why a search failed. Its text is a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchError {
    /// The query is invalid.
    Query(String),
    /// A file of saved searches or synonyms cannot be used.
    File(String),
}

impl fmt::Display for SearchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchError::Query(text) | SearchError::File(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for SearchError {}
