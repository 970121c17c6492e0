//! The direction of a sort.

use std::cmp::Ordering;

use windrow_document::ValueRef;

/// The direction in which values are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SortDirection {
    Ascending,
    Descending,
}

impl SortDirection {
    /// Parses 1 or -1. Returns `None` for other values.
    pub fn from_value(value: ValueRef<'_>) -> Option<SortDirection> {
        match value.as_whole() {
            Some(1) => Some(SortDirection::Ascending),
            Some(-1) => Some(SortDirection::Descending),
            _ => None,
        }
    }

    /// Reverses the ascending order of two values if the direction is descending.
    pub fn apply(self, ascending: Ordering) -> Ordering {
        match self {
            SortDirection::Ascending => ascending,
            SortDirection::Descending => ascending.reverse(),
        }
    }
}
