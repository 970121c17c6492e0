//! Making the log durable: one sync at a time, shared by all who wait, and a timer that sees to
//! it that nothing stays unsynced for longer than the interval.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use windrow_invariant::Bug;

use super::segment::{FOLDER, Segment};
use super::{Position, Shared};
use crate::error::StorageError;
use crate::folder::at;

#[derive(Default)]
pub(crate) struct Syncing {
    running: bool,
}

impl Shared {
    pub(crate) fn sync(&self, position: Position) -> Result<(), StorageError> {
        let position = position.0;
        let written = self.written.load(Ordering::Acquire);
        if position > written {
            // Waiting for it could be for ever.
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

    /// 1. Note what is written. 2. Note which files hold it. 3. Sync them, oldest first, and the
    ///    folder. In this order everything up to the noted position is in the noted files.
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
            // Before the first record there is no segment.
            let newest = segments.list.last().map_or(from, |segment| segment.number);
            (
                unsynced,
                newest,
                std::mem::take(&mut segments.names_unsynced),
            )
        };
        let synced = self.sync_files(&unsynced, names);
        if let Err(error) = &synced {
            // After a failed sync the operating system may have forgotten what it could not
            // write: trying again would succeed and mean nothing.
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

    /// Called after `written` has grown; all but the first since the last sync cost one load.
    ///
    /// The order here is: store `written`, look at `dirty`; the timer's is: clear `dirty`, look
    /// at `written`. Sequentially consistent, one of the two sees the other, so that no record
    /// is left unsynced with the timer asleep.
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
            // Waking early, when the log closes, only means syncing early.
            thread::park_timeout(interval);
            self.dirty.store(false, Ordering::SeqCst);
            let written = Position(self.written.load(Ordering::SeqCst));
            // A failure is kept in the log and answers the next write.
            let _ = self.sync(written);
        }
    }
}

/// `None` where the options ask for no timer.
pub(crate) fn start_timer(shared: &Arc<Shared>) -> Result<Option<JoinHandle<()>>, StorageError> {
    let Some(interval) = shared.options.sync_interval else {
        return Ok(None);
    };
    let shared_there = shared.clone();
    let timer = thread::Builder::new()
        .name("log sync".to_owned())
        .spawn(move || shared_there.run_timer(interval))
        .map_err(|error| StorageError::from_io("the thread that syncs the log", error))?;
    let is_first = shared.timer.set(timer.thread().clone()).is_ok();
    debug_assert!(is_first, "a log has one timer");
    Ok(Some(timer))
}
