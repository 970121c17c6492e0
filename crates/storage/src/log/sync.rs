//! Syncs of the log. One sync runs at a time, and all callers that wait for it share it. A timer
//! syncs records that no caller syncs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use windrow_invariant::Bug;

use super::segment::{FOLDER, Segment};
use super::{Position, Shared};
use crate::disk::at;
use crate::error::StorageError;

/// True while a thread syncs. Other callers wait for its end.
#[derive(Default)]
pub(crate) struct SyncState {
    running: bool,
}

impl Shared {
    pub(crate) fn sync(&self, position: Position) -> Result<(), StorageError> {
        let position = position.0;
        let written = self.written.load(Ordering::Acquire);
        if position > written {
            // The record may never be written, so a wait for it could be endless.
            let what = format!("record {position} is to be synced, but {written} is the newest");
            return Err(Bug::new(what).into());
        }
        loop {
            if self.synced.load(Ordering::Acquire) >= position {
                return Ok(());
            }
            self.check_not_refusing()?;
            let mut syncing = self.syncing.lock();
            if syncing.running {
                self.sync_ended.wait(&mut syncing);
                continue;
            }
            if self.synced.load(Ordering::Acquire) >= position {
                return Ok(());
            }
            syncing.running = true;
            drop(syncing);
            let result = self.sync_written();
            self.syncing.lock().running = false;
            self.sync_ended.notify_all();
            result?;
        }
    }

    /// Syncs all written records:
    ///
    /// 1. Read the newest written position.
    /// 2. List the files with unsynced bytes. All records up to that position are in them, because
    ///    the position was read first.
    /// 3. Sync the files, oldest first, and then the folder if names changed.
    fn sync_written(&self) -> Result<(), StorageError> {
        let target = self.written.load(Ordering::Acquire);
        let (unsynced, newest, names) = {
            let mut segments = self.segments.lock();
            let from = segments.unsynced_from;
            let unsynced: Vec<Segment> = segments
                .list
                .iter()
                .filter(|segment| segment.number >= from)
                .cloned()
                .collect();
            // An empty log has no segment.
            let newest = segments.list.last().map_or(from, |segment| segment.number);
            (
                unsynced,
                newest,
                std::mem::take(&mut segments.names_unsynced),
            )
        };
        let synced = self.sync_files(&unsynced, names);
        if let Err(error) = &synced {
            // After a failed sync the operating system may have discarded the pages that it could
            // not write. A second sync would then succeed although the bytes are lost.
            self.refuse(format!("a sync failed: {error}"));
        } else {
            self.segments.lock().unsynced_from = newest;
            let before = self.synced.fetch_max(target, Ordering::AcqRel);
            debug_assert!(before <= target, "synced up to {before}, then to {target}");
        }
        synced
    }

    fn sync_files(&self, unsynced: &[Segment], names: bool) -> Result<(), StorageError> {
        for segment in unsynced {
            let path = super::segment::path(segment.number);
            segment.file.sync_data().map_err(at(&self.disk, &path))?;
        }
        if names {
            self.disk.sync_dir(FOLDER).map_err(at(&self.disk, FOLDER))?;
        }
        Ok(())
    }

    /// Wakes the timer after `written` has grown. If the timer is already awake, this costs one
    /// load.
    ///
    /// A record must not remain unsynced while the timer sleeps. The two sides are sequentially
    /// consistent, so at least one of them sees the store of the other:
    ///
    /// 1. The leader stores `written`, then reads `dirty`.
    /// 2. The timer clears `dirty`, then reads `written`.
    pub(crate) fn wake_timer(&self) {
        if !self.dirty.load(Ordering::SeqCst)
            && !self.dirty.swap(true, Ordering::SeqCst)
            && let Some(timer) = self.timer.get()
        {
            timer.unpark();
        }
    }

    fn run_timer(&self, interval: Duration) {
        while !self.closing.load(Ordering::Acquire) {
            if !self.dirty.load(Ordering::SeqCst) {
                thread::park();
                continue;
            }
            // The close of the log ends this wait early. An early sync does no harm.
            thread::park_timeout(interval);
            self.dirty.store(false, Ordering::SeqCst);
            let written = Position(self.written.load(Ordering::SeqCst));
            // After a failure the log refuses writes, which reports it to the next caller.
            let _ = self.sync(written);
        }
    }
}

/// Starts the timer. Returns `None` if the options have no interval.
pub(crate) fn start_timer(shared: &Arc<Shared>) -> Result<Option<JoinHandle<()>>, StorageError> {
    let Some(interval) = shared.options.sync_interval else {
        return Ok(None);
    };
    let timer_shared = shared.clone();
    let timer = thread::Builder::new()
        .name("log sync".to_owned())
        .spawn(move || timer_shared.run_timer(interval))
        .map_err(|error| StorageError::from_io("the thread that syncs the log", error))?;
    let is_first = shared.timer.set(timer.thread().clone()).is_ok();
    debug_assert!(is_first, "a log has one timer");
    Ok(Some(timer))
}
