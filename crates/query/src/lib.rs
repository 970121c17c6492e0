//! Queries over collections: which indexes to read, in which order, and what to make of it.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod bounds;
pub mod error;
pub mod row;
pub mod source;

pub use error::Error;
pub use row::{Content, Interrupt, Row, Uninterrupted};
pub use source::{
    Collections, Direction, EntryCursor, NoCollection, RecordCursor, RecordId, Source, SourceIndex,
};
