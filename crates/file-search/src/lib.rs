//! Searches of indexed files: from the text of a query to results, facets and suggestions.
//!
//! The language of queries is in `windrow-file-query`. A [`DocumentSource`] runs the aggregations:
//! a database in this process or a client of a server.
//!
//! - [`QueryReader`] parses a text into a [`ParsedQuery`], with saved searches and synonyms.
//! - [`Target`] and [`ResultPage`] describe a search and the page of its results; [`find()`] runs
//!   it.
//! - [`CountedField`] counts the values of properties, [`similar_target`] finds similar documents.
//!
//! Modules in reading order:
//!
//! - `error`, `mime_types`, `saved_searches`, `request`, `typed_query`: parse a query
//! - `pipeline`, `source`, `similar`, `facets`: the aggregations
//! - `snippet`, `result`, `stored_text`: the results
//! - `suggestion`, `find`: run a search, with suggestions if there are few results

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod error;
mod facets;
mod find;
mod mime_types;
mod pipeline;
mod request;
mod result;
mod saved_searches;
mod similar;
mod snippet;
mod source;
mod stored_text;
mod suggestion;
mod typed_query;

pub use error::SearchError;
pub use facets::{CountedField, ValueCount, counting_facets, facet_buckets};
pub use find::{ResultVisitor, SearchOutcome, find};
pub use mime_types::known_mime_types;
pub use pipeline::{
    ResultPage, ResultText, SortOrder, Target, counting_pipeline, read_documents, unread_documents,
};
pub use request::{ParsedQuery, QueryReader};
pub use result::SearchResult;
pub use saved_searches::{SavedSearches, append_history, read_history};
pub use similar::similar_target;
pub use snippet::{Snippet, TextLocation};
pub use source::{DocumentSink, DocumentSource};
pub use stored_text::{StoredText, read_stored_text};
pub use typed_query::with_prefix;
