//! Lookups of unique keys by writes, without reading all sections of the index.
//!
//! - `claims` reserves the keys of commits that are not in the log yet.
//! - `key_set` is the set of the keys that a generation of tails adds to an index.
//! - `recent_key_filter` covers the keys of the sections that were folded recently.
//! - `key_probe` searches the bytes of commits that have no index entries yet.
//!
//! `write` uses them together: it claims the keys, looks them up, and appends to the log.

pub(crate) mod claims;
pub(crate) mod key_probe;
pub(crate) mod key_set;
pub(crate) mod recent_key_filter;
