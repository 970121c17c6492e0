//! Index definitions, and the index entries of documents.
//!
//! Every index maps key bytes to record ids, with a payload beside each id. A [`Definition`] is
//! parsed from MongoDB's index specification (<https://www.mongodb.com/docs/manual/indexes/>).
//! [`Definition::entries`] is the only function that computes the entries of a document. Inserts,
//! updates, index builds and recovery call it, so they cannot disagree.
//!
//! Not for: the storage of entries, uniqueness checks, or the choice of an index for a query.
//!
//! - [`Definition`] is a parsed index specification. [`KeyField`] is one part of its key.
//! - [`Scratch`] holds the buffers that are reused between documents.
//! - [`Multikey`] tells which paths of an index met arrays.
//! - [`conflict::missing`] compares requested indexes with existing ones.
//!
//! The keys of an index by its kind:
//!
//! - ordinary: the key bytes of the values (see [`windrow_document::key`]). The payload is the
//!   shape, which restores the exact values. It is mostly empty.
//! - hashed: the hash of one value as a whole number (see [`hashed`]).
//! - wildcard: the path as a string, then the value (see [`wildcard`]).
//! - text: the prefix values, the term as a string, the suffix values. The payload is the score
//!   (see [`text`] and [`score_of`]).
//! - geospatial: a cell of the sphere as a whole number, or a square of the plane as bytes (see
//!   [`geo`]).
//! - search: the path, then a term, a value, or nothing (see [`search`]). The payload is a posting.
//! - marks: which paths met arrays in a document. They sort before all other keys.
//!
//! ```
//! use windrow_document::{ValueRef, doc, key};
//! use windrow_index::{Definition, Scratch};
//!
//! let specification = doc! { "key": { "a": 1 }, "name": "a_1" };
//! let definition = Definition::parse(specification.as_document()).unwrap();
//! let document = doc! { "_id": 1, "a": 5 };
//! let mut keys = Vec::new();
//! definition
//!     .entries(document.as_document(), &mut Scratch::default(), &mut |key, _payload| {
//!         keys.push(key.to_vec());
//!     })
//!     .unwrap();
//! let mut expected = Vec::new();
//! key::append(&mut expected, ValueRef::Int32(5));
//! assert_eq!(keys, [expected]);
//! ```
//!
//! Modules in reading order:
//!
//! - [`definition`]: index definitions
//! - [`parse`]: from a specification to a definition
//! - [`partial`]: the filters of partial indexes
//! - [`conflict`]: conflicts between requested and existing indexes
//! - `paths`: the paths that a wildcard index covers
//! - `sink`: where entries go
//! - `output`: the buffers for entries
//! - `marks`: the entries that tell which paths met arrays
//! - `follow`: follows a path through a document
//! - [`entries`]: the entries of a document; ordinary indexes
//! - [`hashed`], [`wildcard`], [`geo`], [`text`], [`search`]: the entries of the other kinds of
//!   index
#![deny(missing_docs)]
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
pub mod search;
mod sink;
pub mod text;
pub mod wildcard;

pub use definition::{Definition, GeoDefinition, KeyField, KeyKind, TextDefinition, TextField};
pub use marks::{MARK, Multikey, is_mark};
pub use output::{ENTRIES_PER_DOCUMENT_MAX, Scratch};
pub use parse::{EXPIRE_SECONDS_MAX, check_options_of_ids, check_version, without_unknown_options};
pub use paths::Wildcard;
pub use sink::{EntrySink, KeyNumber};
pub use text::score_of;
pub use windrow_mql::Error;
