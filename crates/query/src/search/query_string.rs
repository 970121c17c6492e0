//! The query language of the operator `queryString`: the syntax of Lucene's classic query parser.
//!
//! ```text
//! query   = clause { [AND | OR] clause }                  && is AND, || is OR
//! clause  = [+ | - | NOT] [field:] (term | "(" query ")" [^boost])
//! term    = (word | word* | w?ld*ard | /regex/) [~edits] [^boost]
//!         | "phrase" [~slop] [^boost] | ("[" | "{") end TO end ("]" | "}") [^boost]
//! ```
//! `AND` and `OR` have no precedence: `AND` makes the clauses on both of its sides required, `OR`
//! leaves them as they are. A word may have several terms or none after its analysis, and a clause
//! without terms does not count. So the tree holds the operators as they are written.
//!
//! Sources: MongoDB's manual, Lucene's documentation of the package `queryparser.classic` and the
//! token definitions of its grammar.

mod lexer;
mod parser;

use std::sync::Arc;

/// A query, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// Clauses with operators between them. Never empty.
    Clauses(Vec<Clause>),
    /// All records: `*:*`.
    All,
    /// A condition on a field.
    Field { path: Arc<str>, kind: FieldKind },
    /// An expression with a score that is multiplied.
    Boost(Box<Expression>, f32),
}

/// A part of a query with the operators before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// `AND` is before the clause.
    pub follows_and: bool,
    pub modifier: Modifier,
    pub expression: Expression,
}

/// The sign of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    None,
    /// `+`
    Required,
    /// `-`, `!` or `NOT`
    Prohibited,
}

/// What a field has to have.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// Any term of a word.
    Word(String),
    /// Words next to each other.
    Phrase { text: String, slop: u32 },
    /// A term that begins with a string.
    Prefix(String),
    /// A term that matches a pattern with `*` and `?`. Backslashes are still in it.
    Wildcard(String),
    /// A term that matches a regular expression.
    Regex(String),
    /// A term that is similar to a word.
    Fuzzy { word: String, edits: u8 },
    /// A term between two others.
    Range {
        lower: Option<String>,
        upper: Option<String>,
        includes_lower: bool,
        includes_upper: bool,
    },
}

/// Parses a query. Words without a field are those of the default path. Fails with a sentence that
/// has the position.
pub fn parse(query: &str, default_path: &str) -> Result<Expression, String> {
    parser::parse(query, default_path)
}
