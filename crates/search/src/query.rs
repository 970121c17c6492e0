//! Queries as data: they can be printed, compared and rewritten without an index.

use std::fmt;
use std::ops::Bound;

use crate::operators::Nearness;
use crate::score::{ScoreFunction, ValueNumber};

/// A query over the terms of fields.
///
/// It is printed as in Lucene: `+` is before a query that must match, `-` before one that must not
/// match, and `#` before one that must match and adds no score.
///
/// ```
/// use windrow_search::{BooleanQuery, Query};
///
/// let query = Query::Boolean(BooleanQuery {
///     must: vec![Query::term("title", "coffee")],
///     must_not: vec![Query::term("title", "tea")],
///     ..BooleanQuery::default()
/// });
/// assert_eq!(query.to_string(), r#"(+title:"coffee" -title:"tea")"#);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// No record.
    Nothing,
    /// All records.
    All,
    /// The records with a term.
    Term {
        /// The field.
        field: String,
        /// The term.
        term: Vec<u8>,
    },
    /// The records with a phrase.
    Phrase(PhraseQuery),
    /// The records with a term that begins with some bytes. All have the same score.
    Prefix {
        /// The field.
        field: String,
        /// The bytes.
        prefix: Vec<u8>,
    },
    /// The records with a term that matches a wildcard: see
    /// [`Dfa::wildcard`](crate::automaton::Dfa). All have the same score.
    Wildcard {
        /// The field.
        field: String,
        /// The wildcard.
        pattern: String,
    },
    /// The records with a term that matches a regular expression in Lucene's syntax: see
    /// [`Dfa::regex`](crate::automaton::Dfa). All have the same score.
    Regex {
        /// The field.
        field: String,
        /// The regular expression.
        pattern: String,
    },
    /// The records with a term that is similar to a word.
    Fuzzy(FuzzyQuery),
    /// The records with any of some terms. All have the same score.
    Terms {
        /// The field.
        field: String,
        /// The terms.
        terms: Vec<Vec<u8>>,
    },
    /// The records with a term between two others in the order of their bytes. All have the same
    /// score.
    Range {
        /// The field.
        field: String,
        /// The least term.
        lower: Bound<Vec<u8>>,
        /// The greatest term.
        upper: Bound<Vec<u8>>,
    },
    /// The records that have a field. All have the same score.
    Exists {
        /// The field.
        field: String,
    },
    /// The records that another index has found: [`Source::filter`](crate::Source::filter) with
    /// this number. All have the same score.
    Filter {
        /// The number.
        number: usize,
        /// A description of the filter for messages.
        label: String,
    },
    /// The records that have a value, with scores by its distance from an origin.
    Near {
        /// The number of the list of values: [`Source::values`](crate::Source::values).
        number: usize,
        /// The function from values to scores.
        nearness: Nearness,
        /// A description of the query for messages.
        label: String,
    },
    /// A combination of queries.
    Boolean(BooleanQuery),
    /// A query with scores that are multiplied.
    Boost {
        /// The query.
        query: Box<Query>,
        /// The factor.
        boost: f32,
    },
    /// The records of a query, with scores that a function changes.
    Function {
        /// The query.
        query: Box<Query>,
        /// The function.
        function: ScoreFunction<ValueNumber>,
    },
    /// The records of a query, all with the same score.
    Constant {
        /// The query.
        query: Box<Query>,
        /// The score.
        score: f32,
    },
}

/// Words next to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhraseQuery {
    /// The field.
    pub field: String,
    /// The words.
    pub words: Vec<PhraseWord>,
    /// The greatest number of moves of a word by one position that make the phrase.
    pub slop: u32,
}

/// A word of a phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhraseWord {
    /// The term.
    pub term: Vec<u8>,
    /// Its position in the phrase.
    pub position: u32,
}

/// A word that may be misspelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FuzzyQuery {
    /// The field.
    pub field: String,
    /// The word.
    pub word: String,
    /// The greatest number of edits, at most 2: see [`Fuzzy`](crate::automaton::Fuzzy).
    pub edits: u8,
    /// The number of characters at the beginning that must be equal.
    pub prefix: usize,
    /// The greatest number of terms that are searched. The most similar ones are taken.
    pub expansions: usize,
}

/// A combination of queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BooleanQuery {
    /// All of these must match.
    pub must: Vec<Query>,
    /// Each of these that matches adds to the score.
    pub should: Vec<Query>,
    /// A record that matches any of these is excluded.
    pub must_not: Vec<Query>,
    /// All of these must match. They do not add to the score.
    pub filter: Vec<Query>,
    /// The number of queries in `should` that must match. It is at least 1 if `must` and `filter`
    /// are empty.
    pub minimum_should_match: usize,
}

impl BooleanQuery {
    /// Returns the number of queries in `should` that must match.
    pub fn minimum(&self) -> usize {
        let is_required = self.must.is_empty() && self.filter.is_empty() && !self.should.is_empty();
        self.minimum_should_match.max(usize::from(is_required))
    }
}

impl Query {
    /// Returns the query for the records with a term.
    pub fn term(field: &str, term: &str) -> Query {
        Query::Term {
            field: field.to_owned(),
            term: term.as_bytes().to_vec(),
        }
    }

    /// Returns the query for the records with a phrase.
    pub fn phrase<'w>(field: &str, words: impl IntoIterator<Item = &'w str>, slop: u32) -> Query {
        let words = words.into_iter().zip(0..);
        let words = words.map(|(word, position)| PhraseWord {
            term: word.as_bytes().to_vec(),
            position,
        });
        Query::Phrase(PhraseQuery {
            field: field.to_owned(),
            words: words.collect(),
            slop,
        })
    }

    /// Returns the query for the records that match any of some queries.
    pub fn any(queries: Vec<Query>) -> Query {
        Query::Boolean(BooleanQuery {
            should: queries,
            ..BooleanQuery::default()
        })
    }

    /// Returns the query for the records that match all of some queries.
    pub fn all(queries: Vec<Query>) -> Query {
        Query::Boolean(BooleanQuery {
            must: queries,
            ..BooleanQuery::default()
        })
    }

    /// Returns a query for the same records, with scores that are multiplied by `boost`.
    #[must_use]
    pub fn boost(self, boost: f32) -> Query {
        Query::Boost {
            query: Box::new(self),
            boost,
        }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Nothing => formatter.write_str("nothing"),
            Query::All => formatter.write_str("*:*"),
            Query::Term { field, term } => write!(formatter, "{field}:{}", QuotedTerm(term)),
            Query::Phrase(phrase) => phrase.fmt(formatter),
            Query::Prefix { field, prefix } => write!(formatter, "{field}:{}*", QuotedTerm(prefix)),
            Query::Wildcard { field, pattern } => write!(formatter, "{field}:wildcard({pattern})"),
            Query::Regex { field, pattern } => write!(formatter, "{field}:/{pattern}/"),
            Query::Fuzzy(fuzzy) => fuzzy.fmt(formatter),
            Query::Terms { field, terms } => {
                write!(formatter, "{field}:(")?;
                separated(formatter, terms.iter().map(|term| QuotedTerm(term)))?;
                formatter.write_str(")")
            }
            Query::Range {
                field,
                lower,
                upper,
            } => {
                write!(formatter, "{field}:")?;
                match lower {
                    Bound::Included(term) => write!(formatter, "[{}", QuotedTerm(term))?,
                    Bound::Excluded(term) => write!(formatter, "{{{}", QuotedTerm(term))?,
                    Bound::Unbounded => formatter.write_str("[*")?,
                }
                match upper {
                    Bound::Included(term) => write!(formatter, " TO {}]", QuotedTerm(term)),
                    Bound::Excluded(term) => write!(formatter, " TO {}}}", QuotedTerm(term)),
                    Bound::Unbounded => formatter.write_str(" TO *]"),
                }
            }
            Query::Exists { field } => write!(formatter, "{field}:*"),
            Query::Filter { label, .. } | Query::Near { label, .. } => formatter.write_str(label),
            Query::Boolean(boolean) => boolean.fmt(formatter),
            Query::Boost { query, boost } => write!(formatter, "{query}^{boost}"),
            Query::Function { query, .. } => write!(formatter, "function({query})"),
            Query::Constant { query, score } => write!(formatter, "constant({query})^{score}"),
        }
    }
}

impl fmt::Display for PhraseQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:\"", self.field)?;
        let words = self.words.iter();
        separated(formatter, words.map(|word| word.term.escape_ascii()))?;
        formatter.write_str("\"")?;
        if self.slop > 0 {
            write!(formatter, "~{}", self.slop)?;
        }
        Ok(())
    }
}

impl fmt::Display for FuzzyQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FuzzyQuery {
            field, word, edits, ..
        } = self;
        write!(formatter, "{field}:{}~{edits}", QuotedTerm(word.as_bytes()))
    }
}

impl fmt::Display for BooleanQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clauses = |sign, queries| Clauses { sign, queries }.each();
        let must = clauses("+", &self.must);
        let filter = clauses("#", &self.filter);
        let should = clauses("", &self.should);
        let must_not = clauses("-", &self.must_not);
        formatter.write_str("(")?;
        separated(formatter, must.chain(filter).chain(should).chain(must_not))?;
        formatter.write_str(")")?;
        match self.minimum_should_match {
            0 => Ok(()),
            minimum => write!(formatter, "~{minimum}"),
        }
    }
}

/// Clauses of one kind.
struct Clauses<'q> {
    sign: &'static str,
    queries: &'q [Query],
}

impl<'q> Clauses<'q> {
    fn each(self) -> impl Iterator<Item = String> + use<'q> {
        let Clauses { sign, queries } = self;
        queries.iter().map(move |query| format!("{sign}{query}"))
    }
}

/// Prints a term in quotation marks, with escapes for bytes that are not ASCII.
struct QuotedTerm<'t>(&'t [u8]);

impl fmt::Display for QuotedTerm<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) => write!(formatter, "{text:?}"),
            Err(_) => write!(formatter, "\"{}\"", self.0.escape_ascii()),
        }
    }
}

fn separated(
    formatter: &mut fmt::Formatter<'_>,
    parts: impl Iterator<Item = impl fmt::Display>,
) -> fmt::Result {
    for (number, part) in parts.enumerate() {
        if number > 0 {
            formatter.write_str(" ")?;
        }
        part.fmt(formatter)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_printed() {
        let query = Query::Boolean(BooleanQuery {
            must: vec![Query::phrase("body", ["hot", "coffee"], 2)],
            should: vec![
                Query::term("title", "größe").boost(2.5),
                Query::Range {
                    field: "year".to_owned(),
                    lower: Bound::Excluded(b"19\xFF".to_vec()),
                    upper: Bound::Unbounded,
                },
            ],
            must_not: vec![Query::Exists {
                field: "old".to_owned(),
            }],
            filter: vec![Query::Filter {
                number: 1,
                label: "n:[1 TO 5]".to_owned(),
            }],
            minimum_should_match: 1,
        });
        assert_eq!(
            query.to_string(),
            "(+body:\"hot coffee\"~2 #n:[1 TO 5] title:\"größe\"^2.5 \
             year:{\"19\\xff\" TO *] -old:*)~1"
        );
        assert_eq!(query, query.clone());
    }
}
