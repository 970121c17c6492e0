//! Positions in the log.

use std::fmt;

/// The number of a record in the log. Records have the numbers 1, 2, 3 and so on, without gaps. 0
/// is before all records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Position(pub u64);

impl Position {
    /// The position before all records. A snapshot at this position is empty.
    pub const ZERO: Position = Position(0);
    /// The position after all records. A snapshot at this position contains everything.
    pub const MAX: Position = Position(u64::MAX);

    /// Returns the position of the next record.
    pub fn next(self) -> Position {
        Position(self.0 + 1)
    }

    /// Returns the position of the record before. Returns 0 for 0.
    pub fn previous(self) -> Position {
        Position(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
