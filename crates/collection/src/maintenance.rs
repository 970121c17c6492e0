//! The work on the sections of maps that keeps reads fast and space small. Writers do not wait for
//! it.
//!
//! - `folding` turns the tails into sections, so that the log can be truncated.
//! - `merging` turns several sections of a map into one.
//! - `version_gc` removes versions that no snapshot can read.
//! - `repair` rebuilds the sections of an index from the documents.
//!
//! The threads that do this work are in `background`.

pub(crate) mod folding;
pub(crate) mod merging;
pub(crate) mod repair;
mod version_gc;
