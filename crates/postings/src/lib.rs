//! The encodings of postings.
//!
//! A posting states that a record has a term: the frequency of the term in a field, the length of
//! the field, and the positions of the term. In memory, and for terms with few postings in files,
//! each posting is encoded separately as a [`Posting`]. For terms with many postings, 128 postings
//! are packed into a *group*, and up to 16 groups form a [`Piece`]. A reader finds a record id in a
//! piece, and an upper bound of the scores of each group, without unpacking.
//!
//! Two parts of a posting are stored outside of its piece, because many queries do not read them:
//! - positions, in a stream to which each piece refers: [`PositionsWriter`], [`Positions`];
//! - field lengths, once for each record of a section instead of once for each posting:
//!   [`LengthsTable`], [`LengthsPage`].
//!
//! This crate does not read files. It does not know sections, keys or queries.
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
pub use lengths::{LengthTotals, LengthsPage, LengthsTable, LengthsWriter, PAGE_IDS};
pub use payload::Posting;
pub use piece::{GROUP, GROUPS_MAX, Group, Piece, PieceWriter};
pub use positions::{Positions, PositionsReader, PositionsWriter};
