//! A parsed query.

use std::fmt;
use std::ops::Bound;

use crate::date::DateRange;
use crate::field::{Field, TextField, TokenField};

/// A parsed query.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// All parts must match. Never empty.
    All(Vec<Query>),
    /// At least one part must match. Never empty.
    Any(Vec<Query>),
    /// The part must not match.
    Not(Box<Query>),
    /// Words in a text.
    Text(TextMatch),
    /// A property with this value, or with a value that matches the pattern with `*` and `?`.
    Token {
        /// The property.
        field: TokenField,
        /// The value. In lower case, unless the field is a folder.
        value: String,
    },
    /// A time range of the document's own date, or else of the modification time.
    Date(DateRange),
    /// A range of the file size.
    Size(SizeRange),
}

/// Words in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextMatch {
    /// The field. `None` is any field of a document.
    pub field: Option<TextField>,
    /// The words or the pattern.
    pub text: String,
    /// The kind of match.
    pub kind: TextMatchKind,
    /// Synonyms, which also match.
    pub synonyms: Vec<String>,
}

impl TextMatch {
    /// Returns a match without synonyms.
    pub(crate) fn new(field: Option<TextField>, text: &str, kind: TextMatchKind) -> TextMatch {
        TextMatch {
            field,
            text: text.to_owned(),
            kind,
            synonyms: Vec::new(),
        }
    }
}

/// The kind of match of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextMatchKind {
    /// The word in any of its forms.
    AnyForm,
    /// The word in exactly this form.
    ThisForm,
    /// The word or a similarly spelled one.
    Similar,
    /// A word that matches a pattern with `*` and `?`.
    Pattern,
    /// The words in this order, with a maximum number of transpositions (slop).
    Phrase {
        /// The maximum slop.
        slop: u32,
    },
}

/// A range of sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// The minimum.
    pub lower: Bound<u64>,
    /// The maximum.
    pub upper: Bound<u64>,
}

impl Query {
    /// Returns `true` if the query consists of exclusions only.
    pub(crate) fn is_negative(&self) -> bool {
        match self {
            Query::Not(_) => true,
            Query::All(parts) => parts.iter().all(Query::is_negative),
            Query::Any(parts) => parts.iter().any(Query::is_negative),
            Query::Text(_) | Query::Token { .. } | Query::Date(_) | Query::Size(_) => false,
        }
    }

    /// Returns the words that results should contain: those in any field that are not excluded.
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

    /// Returns the leaves of the query that are not excluded.
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

/// Formats the query in its own language. Dates and sizes are shown by the names of their fields
/// only.
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
