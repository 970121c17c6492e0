//! A cursor over the terms of a field.

use crate::ids::IdSet;

/// A cursor over the terms of a field, in the order of their bytes. If all records with a term were
/// deleted, the term may still be listed.
///
/// A new cursor is on the first term. The cursor ends early if reading fails or is interrupted. The
/// reader that opened it then has the error: check it after the last term.
pub trait Terms {
    /// Returns the current term, or `None` at the end.
    fn term(&self) -> Option<&[u8]>;

    /// Moves to the next term.
    fn next(&mut self);

    /// Moves to the first term that is `key` or greater. Does not move backwards.
    fn seek(&mut self, key: &[u8]);

    /// Returns an estimate of the number of records with the current term.
    fn records(&mut self) -> u64;

    /// Returns `true` if the current term is known to have so few records that adding them to a set
    /// costs less than opening the postings of the term.
    fn has_few_records(&self) -> bool;

    /// Adds the records with the current term to a set. It may be called once for each term.
    fn add_records(&mut self, set: &mut IdSet);
}
