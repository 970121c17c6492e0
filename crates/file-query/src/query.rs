//! A parsed query.

use std::ops::Bound;

use crate::date::DateRange;
use crate::field::{TextField, TokenField};

/// A parsed query.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// All of them. Never empty.
    All(Vec<Query>),
    /// At least one of them. Never empty.
    Any(Vec<Query>),
    /// Not this one.
    Not(Box<Query>),
    /// Words in a text.
    Text(TextMatch),
    /// A property with exactly this value, or with one that matches the pattern with `*` and `?`.
    Token {
        /// The property.
        field: TokenField,
        /// The value, in lower case unless the field is a folder.
        value: String,
    },
    /// A time in a range: that of the document itself, otherwise of the file's last change.
    Date(DateRange),
    /// A size of the file in a range.
    Size(SizeRange),
}

/// Words in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextMatch {
    /// The text. `None`: any of a document.
    pub field: Option<TextField>,
    /// The words or the pattern.
    pub text: String,
    /// How they have to match.
    pub kind: TextMatchKind,
}

/// How words have to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMatchKind {
    /// The word in any of its forms.
    AnyForm,
    /// The word in this form.
    ThisForm,
    /// The word or one that is spelled like it.
    Similar,
    /// A word that matches a pattern with `*` and `?`.
    Pattern,
    /// The words in this order, with at most so many moves of a word by one place.
    Phrase {
        /// The number of moves.
        slop: u32,
    },
}

/// A range of sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// The least size.
    pub lower: Bound<u64>,
    /// The greatest size.
    pub upper: Bound<u64>,
}

impl Query {
    /// Returns `true` if the query only excludes.
    pub(crate) fn is_negative(&self) -> bool {
        match self {
            Query::Not(_) => true,
            Query::All(parts) => parts.iter().all(Query::is_negative),
            Query::Any(parts) => parts.iter().any(Query::is_negative),
            Query::Text(_) | Query::Token { .. } | Query::Date(_) | Query::Size(_) => false,
        }
    }

    /// Returns the words that a result should have: those that are sought in any text and not excluded.
    pub fn words(&self) -> Vec<&TextMatch> {
        match self {
            Query::All(parts) | Query::Any(parts) => parts.iter().flat_map(Query::words).collect(),
            Query::Text(text) if text.field.is_none() => vec![text],
            Query::Text(_)
            | Query::Not(_)
            | Query::Token { .. }
            | Query::Date(_)
            | Query::Size(_) => Vec::new(),
        }
    }
}
