//! Words and relevance: what a string contributes to a text index and what a search string asks of it.
//!
//! MongoDB's text search as its documentation and its observable behaviour have it: tokens of index
//! versions 1 to 3, stop words, stems, scores, the query syntax, phrases, and highlighted snippets. Pure:
//! no files, no sockets, no BSON. What a document's indexed strings are is for the caller to say; how
//! postings are kept and merged is the index's business.
//!
//! - [`Language`] and [`TextVersion`] choose the rules, an [`Analyzer`] applies them to one string.
//! - [`DocumentTerms`] adds up the score of each term over all strings of a document.
//! - [`Query`] is a parsed search string, [`Matcher`] checks what the index alone cannot know: phrases,
//!   negations, case and diacritics.
//! - [`highlight`] cuts the best piece out of a text.
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
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod analyzer;
mod characters;
mod language;
mod stem;
mod stop_words;

mod score;
mod term_key;

mod matcher;
mod query;

mod highlight;

pub use analyzer::{Analyzer, Sensitivity, Term};
pub use highlight::{HighlightOptions, Snippet, highlight};
pub use language::{Language, TextVersion, UnknownLanguage};
pub use matcher::Matcher;
pub use query::Query;
pub use score::DocumentTerms;
pub use term_key::{TERM_KEY_BYTES_MAX, term_key};

/// The part of a string that text search sees: MongoDB reads indexed and searched strings as C strings,
/// so what follows a NUL is not there.
pub fn visible(text: &str) -> &str {
    text.split_once('\0').map_or(text, |(visible, _)| visible)
}
