//! What an index is, and which entries a document contributes to it. Pure: no storage.
//!
//! Every index is an inverted index: key bytes → record ids, with a payload beside each. A
//! [`Definition`] is parsed from MongoDB's index specification; [`Definition::entries`] is the one
//! function from which insert, update, build and recovery take a document's entries.
//!
//! - ordinary keys: the key bytes of the values (see `windrow_document::key`), the payload is the
//!   shape that gives the exact values back, mostly empty;
//! - hashed keys: the hash of one value, a whole number;
//! - wildcard keys: the path as a string, then the value (see [`wildcard`]);
//! - text keys: prefix values, the term as a string, suffix values; the payload is the score;
//! - keys of places: a cell of the sphere as a whole number, a square of the plane as bytes (see
//!   [`geo`]);
//! - marks, before all keys: which paths met arrays in a document.
//!
//! Reading order: [`definition`], [`parse`], [`partial`], [`conflict`]; which values make entries in
//! [`hashed`], [`wildcard`], [`geo`] and [`text`] indexes, [`score`]; `marks`; [`entries`] for all.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod conflict;
pub mod definition;
pub mod entries;
mod follow;
pub mod geo;
pub mod hashed;
mod marks;
mod output;
pub mod parse;
pub mod partial;
mod paths;
pub mod score;
pub mod text;
pub mod wildcard;

pub use definition::{Definition, GeoDefinition, KeyField, KeyKind, TextDefinition, TextField};
pub use marks::{MARK, Multikey, is_mark};
pub use output::{ENTRIES_PER_DOCUMENT_MAX, Scratch};
pub use parse::{EXPIRE_SECONDS_MAX, check_options_of_ids, check_version, without_unknown_options};
pub use paths::Wildcard;
pub use windrow_mql::Error;
