//! Rows with their sort keys.

use crate::row::Row;

/// A row with its sort key. Of equal keys, the row that came first is less.
pub(crate) struct Keyed {
    pub key: Box<[u8]>,
    pub number: u64,
    pub row: Row,
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Keyed) -> bool {
        self.number == other.number
    }
}

impl Eq for Keyed {}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Keyed) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Keyed {
    fn cmp(&self, other: &Keyed) -> std::cmp::Ordering {
        self.key
            .cmp(&other.key)
            .then(self.number.cmp(&other.number))
    }
}
