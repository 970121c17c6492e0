//! Text analysis for MongoDB's text search: the terms and scores of a string, and the parsed search
//! string of `$text`.
//!
//! The rules are those of MongoDB's manual
//! (<https://www.mongodb.com/docs/manual/core/indexes/index-types/index-text/>) and of recorded
//! answers of a MongoDB server: tokens of index versions 1 to 3, stop words, stems, scores, the
//! syntax of search strings, phrases, and highlighted snippets.
//!
//! Not for: files, sockets, BSON, or postings. The caller selects the indexed strings of a
//! document. The index stores and merges the postings.
//!
//! - [`Language`] and [`TextVersion`] select the rules. An [`Analyzer`] applies them to one string.
//! - [`DocumentTerms`] sums the score of each term over all strings of a document.
//! - [`Query`] is a parsed search string.
//! - [`Matcher`] tests candidates for what the index does not store: phrases, negations, case and
//!   diacritics.
//! - [`highlight`] returns the part of a text that matches a query best.
//! - A [`SearchAnalyzer`] gives the tokens of a string in a search index.
//! - A [`TermTable`] numbers the distinct terms of a document.
//!
//! ```
//! use windrow_text::{DocumentTerms, Language, Query, Sensitivity, TextVersion};
//!
//! let mut terms = DocumentTerms::new(TextVersion::V3);
//! terms.add("Baking a cake", 1.0, Language::ENGLISH);
//! assert_eq!(terms.iter().collect::<Vec<_>>(), [("bake", 0.75), ("cake", 0.75)]);
//!
//! let query = Query::parse("cakes -chocolate", Language::ENGLISH, Sensitivity::NONE, TextVersion::V3);
//! assert_eq!(query.terms(), ["cake"]);
//! assert_eq!(query.negated_terms(), ["chocol"]);
//! ```
//!
//! Modules in reading order:
//!
//! - `language`: languages and index versions
//! - `characters`: delimiters, case folding and diacritics of Unicode
//! - `stop_words`: one list per language
//! - `stem`: Snowball's stemmers, and a faster one for English
//! - `analyzer`: the terms of a string
//! - `term_table`: the distinct terms of a document
//! - `score`: the scores of the terms of a document
//! - `term_key`: the index key of a term
//! - `query`: search strings
//! - `matcher`: the test of candidates
//! - `highlight`: snippets
//! - `search_analyzer`: the analyzers of search indexes
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod analyzer;
mod by_language;
mod characters;
mod highlight;
mod kept_terms;
mod known_terms;
mod language;
mod matcher;
mod query;
mod score;
mod search_analyzer;
mod stem;
mod stop_words;
mod term_key;
mod term_places;
mod term_table;
mod word_head;

pub use analyzer::{Analyzer, Sensitivity, Term};
pub use characters::WordCase;
pub use highlight::{HighlightOptions, Snippet, highlight};
pub use kept_terms::KeptTerms;
pub use language::{Language, TextVersion, UnknownLanguage};
pub use matcher::Matcher;
pub use query::Query;
pub use score::{DocumentTerms, SCORE_LIMIT, TermPosting, score};
pub use search_analyzer::{
    ANALYSIS_VERSION, AnalyzerRules, CharacterFilter, CustomAnalyzer, GramKind, GramLengths,
    GramOptions, GramTokenizer, NormalForm, Original, PartRules, Pattern, SearchAnalyzer,
    SearchTokenizer, SplitRule, TOKEN_UNITS_MAX, TextWord, TextWords, Token, TokenFilter,
    VisitToken, WordBoundaries,
};
pub use term_key::{TERM_KEY_BYTES_MAX, term_key};
pub use term_places::TermPlaces;
pub use term_table::{TermGeneration, TermTable};

/// Returns the part of a string before its first NUL, or the whole string if it has none.
///
/// MongoDB reads indexed and searched strings as C strings. Without this cut, a string with a NUL
/// would have terms here that it does not have there.
///
/// ```
/// assert_eq!(windrow_text::visible("tea\0cake"), "tea");
/// ```
pub fn visible(text: &str) -> &str {
    text.split_once('\0').map_or(text, |(visible, _)| visible)
}
