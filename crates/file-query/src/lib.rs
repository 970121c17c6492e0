//! The query language for indexed files, which `windrow search` uses.
//!
//! [`Query::parse`] parses a query, and [`Query::to_operator`] translates it to an operator of
//! MongoDB's stage `$search` on the collection `files.documents`. [`search_index_definition`] is
//! the index that such an operator needs. The crate neither searches nor reads files.
//!
//! ```text
//! query   = { alternatives [AND] }                          all must match
//! alternatives = clause { OR clause }                       OR binds closer than AND
//! clause  = ["-" | NOT] (word | phrase | field | "(" query ")")
//! word    = letters           also its other forms; a capital first letter asks for this form only
//!         | ~letters          also words that are spelled like it
//!         | let*rs | let?rs   any letters, any one letter; with punctuation also a whole file name
//! phrase  = '"' words '"' [p [N]]                           p: near each other, N words between (10);
//!                                                           one word in quotes: this form only
//! field   = name (":" | "=" | "<" | "<=" | ">" | ">=") (value { "," value } | phrase | "(" query ")")
//! ```
//!
//! `@name` stands for a saved query, see [`expand_saved_queries`]. The table of names is in
//! [`Field`]. Sources: the manual of Recoll (query language), whose habits the language keeps.
//!
//! ```
//! use windrow_file_query::{Query, QueryContext};
//!
//! let query = Query::parse("annual report -draft ext:pdf", &QueryContext::default())?;
//! let operator = query.to_operator();
//! assert!(operator.to_string().starts_with("{\"compound\":{\"must\":["));
//! # Ok::<(), windrow_file_query::QueryError>(())
//! ```

#![deny(missing_docs)]

mod context;
mod date;
mod error;
mod field;
mod index;
mod lexer;
mod mime_type;
mod notes;
mod operator;
mod parser;
mod query;
mod saved_query;
mod size;
mod synonyms;

pub use context::QueryContext;
pub use date::{DateRange, TimeContext};
pub use error::QueryError;
pub use field::{Field, TextField, TokenField};
pub use index::{INDEX_NAME, search_index_definition};
pub use mime_type::{MimeType, MimeTypes};
pub use notes::notes_on_query;
pub use query::{Query, SizeRange, TextMatch, TextMatchKind};
pub use saved_query::{SavedQueryError, expand_saved_queries, is_saved_query_name};
pub use synonyms::{SynonymError, Synonyms};
