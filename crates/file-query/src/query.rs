//! A parsed query.

use std::fmt;
use std::ops::Bound;

use crate::date::DateRange;
use crate::field::{Field, TextField, TokenField};

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
    /// Words and phrases that count as the text.
    pub synonyms: Vec<String>,
}

impl TextMatch {
    /// Returns the match of a text without synonyms.
    pub(crate) fn new(field: Option<TextField>, text: &str, kind: TextMatchKind) -> TextMatch {
        TextMatch {
            field,
            text: text.to_owned(),
            kind,
            synonyms: Vec::new(),
        }
    }
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

    /// Returns the parts without parts that a result can have: those that are not excluded.
    ///
    /// ```
    /// use windrow_file_query::{Query, QueryContext};
    ///
    /// let query = Query::parse("(bread OR ext:md) -draft", &QueryContext::default())?;
    /// let parts: Vec<String> = query.leaves().iter().map(|it| it.to_string()).collect();
    /// assert_eq!(parts, ["bread", "ext:md"]);
    /// # Ok::<(), windrow_file_query::QueryError>(())
    /// ```
    pub fn leaves(&self) -> Vec<&Query> {
        match self {
            Query::All(parts) | Query::Any(parts) => parts.iter().flat_map(Query::leaves).collect(),
            Query::Not(_) => Vec::new(),
            Query::Text(_) | Query::Token { .. } | Query::Date(_) | Query::Size(_) => vec![self],
        }
    }
}

/// The query in its own language. Dates and sizes are shown by the name of their field alone.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::All(parts) => write_joined(f, parts, " "),
            Query::Any(parts) => write_joined(f, parts, " OR "),
            Query::Not(part) => write!(f, "-{part}"),
            Query::Text(text) => write!(f, "{text}"),
            Query::Token { field, value } => {
                write!(f, "{}:{value}", Field::Token(*field).name())
            }
            Query::Date(_) => f.write_str("date"),
            Query::Size(_) => f.write_str("size"),
        }
    }
}

fn write_joined(f: &mut fmt::Formatter<'_>, parts: &[Query], between: &str) -> fmt::Result {
    f.write_str("(")?;
    for (number, part) in parts.iter().enumerate() {
        if number > 0 {
            f.write_str(between)?;
        }
        write!(f, "{part}")?;
    }
    f.write_str(")")
}

impl fmt::Display for TextMatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(field) = self.field {
            write!(f, "{}:", Field::Text(field).name())?;
        }
        match self.kind {
            TextMatchKind::Phrase { slop: 0 } => write!(f, "\"{}\"", self.text),
            TextMatchKind::Phrase { slop } => write!(f, "\"{}\"p{slop}", self.text),
            TextMatchKind::Similar => write!(f, "~{}", self.text),
            TextMatchKind::AnyForm | TextMatchKind::ThisForm | TextMatchKind::Pattern => {
                f.write_str(&self.text)
            }
        }
    }
}
