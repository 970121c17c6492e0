//! A range of an index's keys.

/// From one key to another, both included.
pub type KeyRange = (u64, u64);
