//! Rows with their sort keys.

use crate::row::Row;

/// A row with its sort key. Of equal keys, the row that came first is less.
pub(crate) struct KeyedRow {
    pub key: Box<[u8]>,
    pub number: u64,
    pub row: Row,
}

impl PartialEq for KeyedRow {
    fn eq(&self, other: &KeyedRow) -> bool {
        self.number == other.number
    }
}

impl Eq for KeyedRow {}

impl PartialOrd for KeyedRow {
    fn partial_cmp(&self, other: &KeyedRow) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyedRow {
    fn cmp(&self, other: &KeyedRow) -> std::cmp::Ordering {
        self.key
            .cmp(&other.key)
            .then(self.number.cmp(&other.number))
    }
}
