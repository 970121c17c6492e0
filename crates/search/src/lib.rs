//! Search over postings: boolean operators, phrases, scores, the best k records.
//!
//! An index has a list of [`Postings`] for each term. Operators combine such lists: the records
//! with all of some terms, with any of them, with a phrase, or without another term. They read the
//! lists in increasing order of record ids, and skip records that cannot match or cannot be among
//! the best.
//!
//! This crate knows record ids, terms and scores. It does not know documents, sections or files.
//!
//! Reading order: [`batch`], [`postings`], [`explanation`], [`score`], [`mod@matches`], [`term`],
//! [`ids`], [`operators`], [`top`], `scan`, [`terms`], [`automaton`], [`query`], [`source`],
//! [`mod@compile`], [`mod@suggest`], [`highlight`], [`memory`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod automaton;
pub mod batch;
mod bits;
pub mod compile;
pub mod explanation;
pub mod highlight;
pub mod ids;
pub mod matches;
pub mod memory;
pub mod operators;
pub mod postings;
pub mod query;
mod scan;
pub mod score;
mod similar;
pub mod source;
pub mod suggest;
mod sums;
pub mod term;
pub mod terms;
pub mod top;

pub use batch::Batch;
pub use bits::set_bits;
pub use compile::{CompileError, Compiled, Explainer, Limits, Scores, compile};
pub use explanation::Explanation;
pub use highlight::{Highlighter, Passage, Token, passages};
pub use ids::{IdRange, IdSet, Ids, SetIds};
pub use matches::Matches;
pub use operators::{Nearness, Node};
pub use postings::{Bound, END, Postings};
pub use query::{BooleanQuery, FuzzyQuery, PhraseQuery, PhraseWord, Query};
pub use scan::{all, best_and_count, collect, count};
pub use score::{Bm25, Bm25Similarity, FieldStatistics, Scorer, Similarity};
pub use score::{Gauss, RecordValue, ScoreFunction, ValueNumber};
pub use score::{TextScore, TextSimilarity};
pub use source::Source;
pub use suggest::{SuggestOptions, Suggestion, suggest};
pub use term::Term;
pub use terms::Terms;
pub use top::{Best, BestOptions, Hit, TieOrder, best};
