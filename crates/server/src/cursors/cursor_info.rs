//! Statistics and descriptions of open cursors.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Instant, SystemTime};

use windrow_document::{DocumentBuf, doc};

use super::{Cursor, CursorOwner, CursorState, Cursors};
use crate::clock;
use crate::sync::lock;

/// Counters for `serverStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorCounts {
    pub open: usize,
    pub in_use: usize,
    pub no_timeout: usize,
    pub opened: u64,
    pub timed_out: u64,
}

/// The numbers of documents and batches that a cursor has returned so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReturnedCounts {
    pub documents: usize,
    pub batches: usize,
}

impl ReturnedCounts {
    pub(super) fn add(&mut self, documents: usize) {
        self.documents += documents;
        self.batches += 1;
    }
}

/// A cursor in `currentOp`.
#[derive(Clone, Debug)]
pub struct CursorInfo {
    pub id: i64,
    pub owner: Arc<CursorOwner>,
    pub created: SystemTime,
    pub used: Instant,
    pub returned: ReturnedCounts,
}

impl CursorInfo {
    pub fn describe(&self) -> DocumentBuf {
        let options = self.owner.options;
        doc! {
            "cursorId": (self.id),
            "createdDate": (clock::date(self.created)),
            "lastAccessDate": (clock::date(clock::at(self.used))),
            "nDocsReturned": (self.returned.documents as i64),
            "nBatchesReturned": (self.returned.batches as i64),
            "noCursorTimeout": (options.no_timeout),
            "tailable": (options.tailable),
            "awaitData": (options.await_data),
            "originatingCommand": (self.owner.command.clone()),
        }
    }
}

impl Cursor {
    pub(super) fn shown(&self, id: i64) -> CursorInfo {
        CursorInfo {
            id,
            owner: Arc::clone(&self.owner),
            created: self.created,
            used: self.used,
            returned: self.returned,
        }
    }
}

impl Cursors {
    pub fn counts(&self) -> CursorCounts {
        let open = lock(&self.open);
        let in_use = |cursor: &&Cursor| matches!(cursor.state, CursorState::InUse { .. });
        CursorCounts {
            open: open.len(),
            in_use: open.values().filter(in_use).count(),
            no_timeout: open
                .values()
                .filter(|one| one.owner.options.no_timeout)
                .count(),
            opened: self.opened.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
        }
    }

    /// Returns the cursors that no command uses, the oldest first.
    pub fn idle(&self) -> Vec<CursorInfo> {
        let open = lock(&self.open);
        let waiting = open
            .iter()
            .filter(|(_, cursor)| matches!(cursor.state, CursorState::Waiting(_)));
        let idle = waiting.map(|(id, cursor)| cursor.shown(*id));
        let mut idle: Vec<CursorInfo> = idle.collect();
        drop(open);
        idle.sort_by_key(|one| (one.created, one.id));
        idle
    }
}
