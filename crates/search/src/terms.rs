//! The terms of a field.

use crate::ids::IdSet;

/// A cursor over the terms of a field, in the order of their bytes. A term may be without records, if
/// they were deleted.
///
/// It stands on the first term when it is opened. If reading fails, or is to stop, the cursor ends,
/// and whoever opened it asks the reader for the error.
pub trait Terms {
    /// Returns the term that the cursor stands on. Returns `None` at the end.
    fn term(&self) -> Option<&[u8]>;

    /// Moves to the next term.
    fn next(&mut self);

    /// Moves to the first term that is `key` or greater. Does not move if the cursor is there or
    /// beyond.
    fn seek(&mut self, key: &[u8]);

    /// Returns about how many records have the term that the cursor stands on.
    fn records(&mut self) -> u64;

    /// Returns `true` if it is known that few records have the term that the cursor stands on, so that
    /// adding them to a set costs less than opening the list of the term.
    fn has_few_records(&self) -> bool;

    /// Adds the records that have the term that the cursor stands on to a set. Call it once for a
    /// term.
    fn add_records(&mut self, set: &mut IdSet);
}
