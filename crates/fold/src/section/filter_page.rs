//! Filter pages of a section that is being written.

use crate::entry::{Entry, RecordId};
use crate::filter;

/// Collects the hashes of a filter page: of keys, or of the ids of entries with an empty key.
#[derive(Debug, Default)]
pub(super) struct FilterPageBuilder {
    hashes: Vec<u64>,
    first_id: RecordId,
    /// The last id of the entries with an empty key.
    last_id: Option<RecordId>,
}

/// If at least one in this many ids exists, few lookups are for absent ids, and the filter is left
/// out.
const IDS_DENSE: u64 = 2;

impl FilterPageBuilder {
    /// Returns `true` if there are no hashes.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Adds an entry. `is_first`: it is the first of its key or of its block.
    pub fn add(&mut self, entry: &Entry<'_>, is_first: bool, key_hash: u64) {
        if !entry.key.is_empty() {
            if is_first {
                self.hashes.push(key_hash);
            }
            return;
        }
        if self.hashes.is_empty() {
            self.first_id = entry.id;
        } else if self.last_id == Some(entry.id) {
            return;
        }
        self.last_id = Some(entry.id);
        self.hashes.push(filter::id_hash(entry.id));
    }

    /// Returns the page, or `None` if it would be of no use.
    pub fn page(&mut self, bits: usize) -> Option<Vec<u8>> {
        let count = self.hashes.len() as u64;
        let span = self.last_id.take().map(|last| last.0 - self.first_id.0);
        let is_dense = span.is_some_and(|span| span < count * IDS_DENSE);
        let page = (!is_dense).then(|| filter::build(&self.hashes, bits));
        self.hashes.clear();
        page
    }
}
