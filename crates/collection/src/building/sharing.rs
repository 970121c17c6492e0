//! Gives parts of a build to the followers that have offered to build
//! ([`share_work`](super::share_work) is their side):
//!
//! 1. Take ranges from the back of the queue, reserve the id of a run, and put a row into the
//!    catalog that gives both to a follower. The row is in the log, so the follower finds it there.
//! 2. The follower reads the range at a snapshot of its own, which is not older than the row. It
//!    writes the entries to the run, uploads it, and announces its sections.
//! 3. Replace the row by those of the sections, in one change of the catalog. After a crash before
//!    this step, the range is built again.
//!
//! The build does not wait for a follower. A share without progress is put back into the queue. A
//! worker that finds the queue empty also builds a share that a follower has begun. The first of
//! the two that is ready stops the other: a share is only in one of the lists below.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use windrow_storage::{Builder, RowChange, RunId, StorageError};

use super::entries::EntryTarget;
use super::ongoing_scan::{Scan, dropped};
use super::share_report::{BuiltShare, ShareReport, ShareState};
use super::share_work::VERSION;
use crate::catalog::rows::{self, MapSection, RecordRange, ShareRow};
use crate::error::Error;
use crate::ids::MapId;
use crate::index::ShareProgress;
use crate::options::Background;

/// The interval in which the primary polls the reports of followers.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// A share without progress for this time is taken back.
const STALL_TIME: Duration = Duration::from_secs(10);
/// After this many polls without other work, a worker builds the shares of followers.
const IDLE_POLLS: u32 = 4;
/// The same without threads: other servers make steps during each poll.
const IDLE_POLLS_OF_CALLER: u32 = 24;
/// The time after which the speed of a scan is estimated. Earlier estimates would be wrong.
const FIRST_ESTIMATE: Duration = Duration::from_millis(200);
/// The first shares are given if the rest of the scan takes at least this time, because a share
/// costs a few requests.
const FIRST_SHARE_MIN: Duration = Duration::from_secs(1);
/// Later shares are given if the rest takes at least this time.
const SHARE_MIN: Duration = Duration::from_millis(300);

/// The shares of a scan.
pub(super) struct SharedScan<'s> {
    scan: &'s Scan<'s>,
    began: Instant,
    state: Mutex<SharingState>,
    /// Notified after each poll.
    changed: Condvar,
}

#[derive(Default)]
struct SharingState {
    /// The shares that followers build.
    assigned: Vec<AssignedShare>,
    /// The number of ranges that are neither in the queue nor given: a thread is about to put them
    /// into one of these or into the catalog.
    moving: usize,
    /// Builders that have failed.
    excluded: HashSet<[u8; 16]>,
    has_assigned: bool,
    /// The number of polls since a worker found the queue empty.
    idle_polls: u32,
    is_over: bool,
}

/// A share that a follower builds.
pub(super) struct AssignedShare {
    run: RunId,
    builder: Builder,
    range: RecordRange,
    /// The documents that the follower has read. `None`: it has not begun.
    documents: Option<u64>,
    /// When it was given, or last made progress.
    progressed: Instant,
    /// A worker of this server builds it as well.
    is_duplicated: bool,
}

/// The next step of a worker.
pub(super) enum NextWork {
    /// Read a range.
    Range(RecordRange),
    /// Build a share that a follower builds.
    Share(DuplicatedShare),
    /// Try again after [`SharedScan::wait`].
    Wait,
    /// Everything is done, or done by others.
    None,
}

/// A share that a worker builds as well.
pub(super) struct DuplicatedShare {
    pub run: RunId,
    pub range: RecordRange,
}

impl<'s> SharedScan<'s> {
    /// Begins a scan. Takes back shares that an earlier primary has given.
    pub fn begin(scan: &'s Scan<'s>) -> Result<SharedScan<'s>, Error> {
        let (core, mut changes) = (scan.core, Vec::new());
        for index in scan.indexes {
            let shares = rows::share_keys(index.map, &core.storage.catalog);
            changes.extend(shares.into_iter().map(RowChange::delete));
        }
        if !changes.is_empty() {
            let _changing = core.catalog_change.lock();
            core.storage.catalog.change(changes, |_| {})?;
        }
        Ok(SharedScan {
            scan,
            began: Instant::now(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Returns `true` if there can be followers.
    pub fn is_possible(&self) -> bool {
        self.scan.core.storage.is_shared()
    }

    /// Returns what a worker does next.
    pub fn next_work(&self) -> Result<NextWork, Error> {
        if self.has_no_thread() && self.is_possible() {
            self.poll()?;
        }
        loop {
            if let Some(range) = self.scan.queue.pop() {
                return Ok(NextWork::Range(range));
            }
            let mut state = self.state.lock();
            if self.scan.queue.len() > 0 {
                continue;
            }
            let is_waiting = state.moving > 0 || state.idle_polls < self.idle_polls_max();
            if state.assigned.is_empty() && state.moving == 0 {
                return Ok(NextWork::None);
            }
            if is_waiting {
                return Ok(NextWork::Wait);
            }
            let has_not_begun = |it: &&AssignedShare| it.documents.is_none();
            let late: Vec<RunId> = state
                .assigned
                .iter()
                .filter(has_not_begun)
                .map(|it| it.run)
                .collect();
            if late.is_empty() {
                return Ok(state.duplicate());
            }
            drop(state);
            late.into_iter().try_for_each(|run| self.take_back(run))?;
        }
    }

    fn idle_polls_max(&self) -> u32 {
        if self.has_no_thread() {
            IDLE_POLLS_OF_CALLER
        } else {
            IDLE_POLLS
        }
    }

    /// Waits for the next poll.
    pub fn wait(&self) {
        if !self.has_no_thread() {
            self.changed.wait_for(&mut self.state.lock(), POLL_INTERVAL);
        }
    }

    /// Returns `true` if the workers poll, because there is no thread for it.
    pub fn has_no_thread(&self) -> bool {
        self.scan.core.options.background == Background::Caller
    }

    /// Polls the shares until the scan is over.
    pub fn poll_until_over(&self) -> Result<(), Error> {
        while !self.state.lock().is_over {
            self.poll()?;
            let mut state = self.state.lock();
            if !state.is_over {
                self.changed.wait_for(&mut state, POLL_INTERVAL);
            }
        }
        Ok(())
    }

    /// Ends [`poll_until_over`](Self::poll_until_over).
    pub fn set_over(&self) {
        self.state.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Ends the scan. After a failed scan, shares can be left. Their rows are deleted with the
    /// index, or when its build is resumed.
    pub fn end(&self) {
        for share in std::mem::take(&mut self.state.lock().assigned) {
            self.scan.core.storage.runs.end_share(share.run, true);
        }
        self.publish_progress();
    }

    /// Reads the reports of followers, and gives them further shares.
    pub fn poll(&self) -> Result<(), Error> {
        let runs: Vec<RunId> = self.state.lock().assigned.iter().map(|it| it.run).collect();
        for run in runs {
            self.poll_share(run)?;
        }
        self.give()?;
        self.publish_progress();
        let mut state = self.state.lock();
        state.idle_polls = match self.scan.queue.len() {
            0 => state.idle_polls + 1,
            _ => 0,
        };
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    fn poll_share(&self, run: RunId) -> Result<(), Error> {
        let report = match self.scan.core.storage.runs.share_report(run) {
            // The next poll checks again.
            Err(StorageError::Unavailable { .. }) => return Ok(()),
            Err(_) => return self.fail(run),
            Ok(None) => None,
            Ok(Some(bytes)) => match ShareReport::decode(&bytes) {
                None => return self.fail(run),
                known => known,
            },
        };
        match report {
            Some(ShareReport {
                documents,
                state: ShareState::Built(built),
            }) => self.adopt(run, documents, built),
            Some(ShareReport {
                state: ShareState::Failed,
                ..
            }) => self.fail(run),
            begun => self.record_progress(run, begun.map(|it| it.documents)),
        }
    }

    fn record_progress(&self, run: RunId, documents: Option<u64>) -> Result<(), Error> {
        let mut state = self.state.lock();
        let Some(share) = state.assigned.iter_mut().find(|it| it.run == run) else {
            return Ok(());
        };
        if share.documents != documents {
            share.documents = documents;
            share.progressed = Instant::now();
        }
        let is_stalled = share.progressed.elapsed() >= STALL_TIME && !share.is_duplicated;
        drop(state);
        if is_stalled { self.fail(run) } else { Ok(()) }
    }

    /// Takes back a share whose builder has failed. The builder gets no further shares of this
    /// scan.
    fn fail(&self, run: RunId) -> Result<(), Error> {
        let mut state = self.state.lock();
        let builder = state.assigned.iter().find(|it| it.run == run);
        if let Some(id) = builder.map(|it| it.builder.id) {
            state.excluded.insert(id);
        }
        drop(state);
        self.take_back(run)
    }

    /// Puts the range of a share back into the queue.
    fn take_back(&self, run: RunId) -> Result<(), Error> {
        match self.remove(run) {
            Some(share) => self.put_back(share),
            None => Ok(()),
        }
    }

    /// Puts the range of a share that [`remove`](Self::remove) has returned back into the queue.
    fn put_back(&self, share: AssignedShare) -> Result<(), Error> {
        self.delete_row(&share)?;
        self.scan.queue.push(share.range);
        self.state.lock().moving -= 1;
        Ok(())
    }

    /// Returns `true` if a follower builds the share with this run.
    pub fn is_given(&self, run: RunId) -> bool {
        self.state.lock().assigned.iter().any(|it| it.run == run)
    }

    /// Removes a share, which the caller builds. Returns `None` if it is not given any more.
    pub fn claim(&self, run: RunId) -> Option<AssignedShare> {
        let share = self.remove(run)?;
        self.state.lock().moving -= 1;
        Some(share)
    }

    /// Ends the work of the follower on a share that [`claim`](Self::claim) has returned.
    pub fn end_claim(&self, share: AssignedShare) -> Result<(), Error> {
        self.delete_row(&share)
    }

    /// Removes a share from those that are given. Its range counts as moving then.
    fn remove(&self, run: RunId) -> Option<AssignedShare> {
        let mut state = self.state.lock();
        let number = state.assigned.iter().position(|it| it.run == run)?;
        state.moving += 1;
        Some(state.assigned.swap_remove(number))
    }

    /// Requests the builder of a share to stop.
    fn delete_row(&self, share: &AssignedShare) -> Result<(), Error> {
        let core = self.scan.core;
        core.storage.runs.end_share(share.run, true);
        core.counters
            .shares_taken_back
            .fetch_add(1, Ordering::Relaxed);
        let change = self.row_deletion(share.run);
        let _changing = core.catalog_change.lock();
        // Dropping the index or the collection has deleted the row.
        if !self.scan.is_dropped() {
            core.storage.catalog.change(vec![change], |_| {})?;
        }
        Ok(())
    }

    fn row_deletion(&self, run: RunId) -> RowChange {
        let first = self.scan.indexes.iter().map(|index| index.map).next();
        RowChange::delete(ShareRow::key(first.unwrap_or(MapId(0)), run))
    }

    /// Adds the sections of a share to the indexes.
    fn adopt(&self, run: RunId, documents: u64, built: BuiltShare) -> Result<(), Error> {
        let Some(share) = self.remove(run) else {
            return Ok(());
        };
        let core = self.scan.core;
        if !self.fits(run, &built) {
            return self.put_back(share);
        }
        let BuiltShare { keys, sections } = built;
        let ranges = std::slice::from_ref(&share.range);
        let deletion = vec![self.row_deletion(run)];
        match self.scan.adopt(sections.clone(), ranges, deletion) {
            Ok(()) => {}
            // The object is missing, cannot be read or is not the run.
            Err(Error::Storage(
                StorageError::RunDeleted { .. }
                | StorageError::Damaged { .. }
                | StorageError::Unavailable { .. },
            )) => return self.put_back(share),
            Err(error) => return Err(error),
        }
        self.state.lock().moving -= 1;
        core.storage.runs.end_share(run, false);
        core.counters.shares_adopted.fetch_add(1, Ordering::Relaxed);
        self.scan.record_written(&keys, &sections);
        self.scan.record_documents(documents);
        Ok(())
    }

    /// Returns `true` if these are sections of the indexes in this run.
    fn fits(&self, run: RunId, built: &BuiltShare) -> bool {
        let indexes = self.scan.indexes;
        let mut sections = built.sections.iter();
        let is_of_index = |section: &MapSection| {
            let mut indexes = indexes.iter();
            indexes.any(|it| it.map == section.map && it.since == section.descriptor.position)
        };
        built.keys.len() == indexes.len()
            && sections.all(|it| it.descriptor.run == run && is_of_index(it))
    }

    /// Gives shares to builders that have too few to be busy.
    fn give(&self) -> Result<(), Error> {
        if !self.is_worthwhile() {
            return Ok(());
        }
        let core = self.scan.core;
        let mut builders = core.storage.builders();
        {
            let state = self.state.lock();
            builders.retain(|it| it.version == VERSION && !state.excluded.contains(&it.id));
        }
        let theirs: usize = builders.iter().map(|it| it.threads).sum();
        let threads = core.options.threads.max(1) + theirs;
        // One more than it builds at a time, so it need not wait for the next one.
        while let Some(builder) = builders.iter().find(|it| self.count(it) <= it.threads) {
            if !self.give_to(builder, threads)? {
                break;
            }
        }
        Ok(())
    }

    fn count(&self, builder: &Builder) -> usize {
        let state = self.state.lock();
        let own = state
            .assigned
            .iter()
            .filter(|it| it.builder.id == builder.id);
        own.count()
    }

    /// Returns `true` if the scan will take so long that shares are faster.
    fn is_worthwhile(&self) -> bool {
        let (left, total) = (self.scan.queue.len(), self.scan.queue.total());
        if self.has_no_thread() {
            return left > 1;
        }
        let elapsed = self.began.elapsed();
        let done = total.saturating_sub(left);
        if left == 0 || done == 0 || elapsed < FIRST_ESTIMATE {
            return false;
        }
        let rest = elapsed.mul_f64(left as f64 / done as f64);
        let has_assigned = self.state.lock().has_assigned;
        rest >= if has_assigned {
            SHARE_MIN
        } else {
            FIRST_SHARE_MIN
        }
    }

    /// Gives a share. Returns `false` if there is none.
    fn give_to(&self, builder: &Builder, threads: usize) -> Result<bool, Error> {
        let (core, indexes) = (self.scan.core, self.scan.indexes);
        self.state.lock().moving += 1;
        let Some(range) = self.scan.queue.pop_share(threads) else {
            self.state.lock().moving -= 1;
            return Ok(false);
        };
        let run = core.storage.runs.reserve();
        let row = ShareRow {
            builder: builder.id,
            maps: indexes.iter().map(|index| index.map).collect(),
            range: range.clone(),
        };
        {
            let _changing = core.catalog_change.lock();
            if self.scan.is_dropped() {
                return Err(dropped());
            }
            core.storage.catalog.change(vec![row.put(run)], |_| {})?;
        }
        core.counters.shares_given.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.moving -= 1;
        state.has_assigned = true;
        state.assigned.push(AssignedShare {
            run,
            builder: builder.clone(),
            range,
            documents: None,
            progressed: Instant::now(),
            is_duplicated: false,
        });
        Ok(true)
    }

    /// Sets the shares in the progress of the indexes.
    fn publish_progress(&self) {
        let state = self.state.lock();
        let shown = |it: &AssignedShare| ShareProgress {
            builder: it.builder.address.clone(),
            documents: it.documents.unwrap_or(0),
        };
        let shares: Vec<ShareProgress> = state.assigned.iter().map(shown).collect();
        drop(state);
        for index in self.scan.indexes {
            index.progress().shares.lock().clone_from(&shares);
        }
    }
}

impl SharingState {
    /// Returns a share for a worker that has nothing else to do.
    fn duplicate(&mut self) -> NextWork {
        match self.assigned.iter_mut().find(|it| !it.is_duplicated) {
            None => NextWork::None,
            Some(share) => {
                share.is_duplicated = true;
                NextWork::Share(DuplicatedShare {
                    run: share.run,
                    range: share.range.clone(),
                })
            }
        }
    }
}
