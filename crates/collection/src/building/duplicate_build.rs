//! A share that a worker of the primary builds as well as a follower. The first one that is ready
//! ends the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::entries::{CollectedEntries, EntryTarget};
use super::ongoing_scan::Scan;
use super::sharing::{DuplicatedShare, SharedScan};
use crate::catalog::rows::RecordRange;
use crate::error::Error;
use crate::index::Index;
use crate::read::Reader;

/// A share that a worker of the primary builds as well as a follower.
pub(super) struct DuplicateBuild<'d, 's> {
    scan: &'d Scan<'s>,
    sharing: &'d SharedScan<'s>,
    share: DuplicatedShare,
    documents: AtomicU64,
    /// This server has begun to write the share: what the follower has written is garbage.
    is_claimed: AtomicBool,
}

impl<'d, 's> DuplicateBuild<'d, 's> {
    pub fn new(scan: &'d Scan<'s>, sharing: &'d SharedScan<'s>, share: DuplicatedShare) -> Self {
        DuplicateBuild {
            scan,
            sharing,
            share,
            documents: AtomicU64::new(0),
            is_claimed: AtomicBool::new(false),
        }
    }

    pub fn range(&self) -> &RecordRange {
        &self.share.range
    }

    /// Returns `true` if the share of the follower is used.
    pub fn is_superseded(&self) -> bool {
        !self.sharing.is_given(self.share.run) && !self.is_claimed.load(Ordering::Acquire)
    }
}

impl EntryTarget for DuplicateBuild<'_, '_> {
    fn indexes(&self) -> &[Arc<Index>] {
        self.scan.indexes
    }

    fn reader(&self) -> &Reader {
        self.scan.reader()
    }

    fn check(&self) -> Result<(), Error> {
        self.scan.check()?;
        if self.sharing.has_no_thread() {
            self.sharing.poll()?;
        }
        if self.is_superseded() {
            return Err(superseded());
        }
        Ok(())
    }

    fn record_documents(&self, count: u64) {
        self.documents.fetch_add(count, Ordering::Relaxed);
    }

    fn write(&self, collected: &mut CollectedEntries) -> Result<(), Error> {
        if !self.is_claimed.load(Ordering::Acquire) {
            let Some(claimed) = self.sharing.claim(self.share.run) else {
                return Err(superseded());
            };
            self.is_claimed.store(true, Ordering::Release);
            self.sharing.end_claim(claimed)?;
        }
        self.scan
            .record_documents(self.documents.swap(0, Ordering::Relaxed));
        self.scan.write(collected)
    }
}

fn superseded() -> Error {
    Error::interrupted("a follower has built the share")
}
