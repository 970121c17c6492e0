//! The form of postings: what one posting of a term says, and how many postings are packed
//! together.
//!
//! A posting says that a record has a term: how often, how long the field is, at which positions.
//! In memory, and where a term has few postings, each one is written as a [`Posting`]. Where a term
//! has many, 128 postings are packed as a *group*, and up to 16 groups form a [`Piece`]. A piece
//! can be searched for a record id, and each group has an upper bound of its scores, without
//! unpacking.
//!
//! Two parts of a posting are stored beside a piece, since many queries do not read them:
//! - positions, in a stream that each piece refers to: [`PositionsWriter`], [`Positions`];
//! - field lengths, once for each record of a section and not once for each posting:
//!   [`LengthsWriter`], [`LengthsPage`].
//!
//! This crate does not read files, and does not know sections, keys or queries.
//!
//! Reading order: [`payload`], [`impact`], [`piece`], [`positions`], [`lengths`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod bits;
pub mod impact;
pub mod lengths;
pub mod payload;
pub mod piece;
pub mod positions;
mod varint;

pub use impact::{Impact, length_code, length_of_code};
pub use lengths::{LengthsPage, LengthsWriter, PAGE_IDS};
pub use payload::Posting;
pub use piece::{GROUP, GROUPS_MAX, Group, Piece, PieceWriter};
pub use positions::{Positions, PositionsReader, PositionsWriter};
