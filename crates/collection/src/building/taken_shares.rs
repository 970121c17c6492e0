//! Which shares of a primary's builds a follower has taken.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use windrow_storage::{Catalog, RunId, StorageError};

use crate::catalog::rows::{self, Share};

/// The shares that this process has taken.
#[derive(Default)]
pub(crate) struct TakenShares {
    /// The id of this process. Unset if it takes no shares.
    id: OnceLock<[u8; 16]>,
    runs: Mutex<HashSet<RunId>>,
    is_over: AtomicBool,
}

impl TakenShares {
    /// Begins to take shares for this id. Returns `false` if it has begun before.
    pub fn begin(&self, id: [u8; 16]) -> bool {
        self.id.set(id).is_ok()
    }

    /// Ends the shares in progress, and takes no further ones.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Returns a share of the catalog that was not taken yet.
    pub(super) fn take(&self, catalog: &Catalog) -> Result<Option<Share>, StorageError> {
        let Some(id) = self.id.get().filter(|_| !self.is_over()) else {
            return Ok(None);
        };
        let mut runs = self.runs.lock();
        let (mut present, mut found) = (HashSet::new(), None);
        for share in rows::shares(catalog)? {
            present.insert(share.run);
            if found.is_none() && share.row.builder == *id && !runs.contains(&share.run) {
                found = Some(share);
            }
        }
        // A row that has disappeared never appears again.
        runs.retain(|run| present.contains(run));
        runs.extend(found.as_ref().map(|it| it.run));
        Ok(found)
    }
}
