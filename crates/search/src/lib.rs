//! Search over postings: boolean operators, phrases, scores, the best k records.
//!
//! A list of [`Postings`] is what a term has in an index. Operators combine such lists: all of some
//! terms, any of them, a phrase, without another term. They move forward by record id and skip what
//! cannot match or cannot be among the best.
//!
//! This crate knows record ids, terms and scores. It does not know documents, sections or files.
//!
//! Reading order: [`postings`].
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

pub mod postings;

pub use postings::{Bound, END, Postings};
