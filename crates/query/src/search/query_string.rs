//! The query language of the operator `queryString`: the syntax of Lucene's classic query parser.
//!
//! ```text
//! query   = clause { [AND | OR] clause }                  && is AND, || is OR
//! clause  = [+ | - | NOT] [field:] (term | "(" query ")" [^boost])
//! term    = (word | word* | w?ld*ard | /regex/) [~edits] [^boost]
//!         | "phrase" [~slop] [^boost] | ("[" | "{") end TO end ("]" | "}") [^boost]
//! ```
//!
//! `AND` and `OR` have no precedence: `AND` makes the clauses on both of its sides required, `OR`
//! does not change them. After its analysis a word can have several terms or none, and a clause
//! without terms is ignored. This is why the tree contains the operators as they were written.
//!
//! Sources: MongoDB's manual, Lucene's documentation of the package `queryparser.classic` and the
//! token definitions of its grammar.

mod lexer;
mod parser;

use std::ops::Bound;
use std::sync::Arc;

/// A query as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// Clauses with operators between them. Never empty.
    Clauses(Vec<Clause>),
    /// All records: `*:*`.
    All,
    /// A condition on a field.
    Field { path: Arc<str>, kind: FieldKind },
    /// An expression whose score is multiplied.
    Boost(Box<Expression>, f32),
}

/// A part of a query, with the operators before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    /// `true` if `AND` precedes the clause.
    pub follows_and: bool,
    /// The sign of the clause.
    pub modifier: Modifier,
    /// The expression.
    pub expression: Expression,
}

/// The sign of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    /// No sign.
    None,
    /// `+`
    Required,
    /// `-`, `!` or `NOT`
    Prohibited,
}

/// The condition on a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldKind {
    /// Any term of a word.
    Word(String),
    /// Words next to each other.
    Phrase { text: String, slop: u32 },
    /// A term with this prefix.
    Prefix(String),
    /// A term that matches a pattern with `*` and `?`, which still contains backslashes.
    Wildcard(String),
    /// A term that matches a regular expression.
    Regex(String),
    /// A term that is similar to a word.
    Fuzzy { word: String, edits: u8 },
    /// A term between two others.
    Range {
        lower: Bound<String>,
        upper: Bound<String>,
    },
}

/// Parses a query. Words without a field apply to the default path. Fails with a sentence that
/// contains the position.
pub fn parse(query: &str, default_path: &str) -> Result<Expression, String> {
    parser::parse(query, default_path)
}
