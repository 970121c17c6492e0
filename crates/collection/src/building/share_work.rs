//! The shares of a primary's builds that a follower builds. [`sharing`](super::sharing) is the
//! other side.
//!
//! A follower takes a share when its row appears in the catalog, and stops when the row disappears.
//! It takes no share twice: the id in the row is that of the process, and a process remembers the
//! runs that it has taken. So no run is uploaded again that the catalog already names.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_fold::RunSink;
use windrow_mql::interrupt::with_interrupt;

use super::entries::{CollectedEntries, EntryTarget, read_range};
use super::ongoing_scan::interrupt_if_dropped;
use super::share_report::{BuiltShare, ShareReport, ShareState};
use crate::catalog::rows::{self, Share};
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::Error;
use crate::ids::MapId;
use crate::index::Index;
use crate::lock_order::as_another_thread;
use crate::panic_boundary::catch_panic;
use crate::read::Reader;

/// The version of what creates entries. A primary gives shares only to servers of its own version.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The interval in which a builder announces its progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// The interval in which the thread looks for shares if nothing wakes it.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Offers to build shares for the primary.
pub(crate) fn offer(core: &Core) {
    let mut id = [0; 16];
    (core.options.random)(&mut id);
    if core.taken_shares.begin(id) {
        let threads = core.options.threads.max(1);
        core.storage.offer_builds(id, threads, VERSION);
    }
}

/// Ends the thread and the shares in progress.
pub(crate) fn stop(core: &Core) {
    core.taken_shares.end();
    core.storage.runs.leave_shares();
    core.background.shares.raise();
}

/// Builds shares until the server becomes the primary or closes.
pub(crate) fn keep_building(collections: &Arc<Collections>) {
    let core = &collections.core;
    let build_all = || {
        let work = || catch_panic("a share of an index build", || build_next(collections));
        loop {
            match work() {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    (core.options.on_problem)("a share of an index build failed", &error);
                    return;
                }
            }
        }
    };
    while !core.taken_shares.is_over() {
        core.background.shares.wait(POLL_INTERVAL);
        if !rows::has_shares(&core.storage.catalog) {
            continue;
        }
        std::thread::scope(|scope| {
            for _ in 0..core.options.threads.max(1) {
                scope.spawn(build_all);
            }
        });
    }
}

/// Builds the next share. Returns `false` if there is none. A share that fails is announced as
/// failed, and the primary builds it.
pub(crate) fn build_next(collections: &Collections) -> Result<bool, Error> {
    let core = &collections.core;
    let Some(task) = core.taken_shares.take(&core.storage.catalog)? else {
        return Ok(false);
    };
    let built = build(collections, &task);
    if built.is_err() {
        let failed = ShareReport {
            documents: 0,
            state: ShareState::Failed,
        };
        // Without the report, the primary waits until the share counts as stalled.
        let _ = core.storage.runs.report_share(task.run, &failed.encode());
    }
    core.storage.runs.leave_share(task.run);
    // A share that was taken back is no error here: the primary reports what is wrong with a
    // document.
    let was_taken_back = core.storage.catalog.get(&task.key).is_none();
    match built {
        Err(_) if was_taken_back || core.taken_shares.is_over() => Ok(true),
        built => built.map(|()| true),
    }
}

fn build(collections: &Collections, task: &Share) -> Result<(), Error> {
    let core = &collections.core;
    let (collection, indexes) = find(collections, &task.row.maps)?;
    let at_block = core.options.at_block.clone();
    let sink = RunSink::new(core.storage.runs.create_reserved(task.run)?)
        .with_pause(move || as_another_thread(|| at_block.0()));
    let share = ShareBuild {
        core,
        task,
        reader: collection.reader_without_age_limit()?,
        indexes: &indexes,
        documents: AtomicU64::new(0),
        reported: Mutex::new(Instant::now()),
        written: Mutex::new(BuiltShare {
            keys: vec![0; indexes.len()],
            sections: Vec::new(),
        }),
        sink,
    };
    share.report(ShareState::InProgress)?;
    with_interrupt(interrupt_if_dropped(indexes.clone()), || share.read())?;
    share.finish()
}

/// Returns the indexes of a share and their collection.
fn find(
    collections: &Collections,
    maps: &[MapId],
) -> Result<(Arc<Collection>, Vec<Arc<Index>>), Error> {
    for collection in collections.all() {
        let all = collection.all_indexes();
        let of_map = |map: &MapId| all.iter().find(|index| index.map == *map).cloned();
        let found: Option<Vec<Arc<Index>>> = maps.iter().map(of_map).collect();
        if let Some(indexes) = found.filter(|it| !it.is_empty()) {
            return Ok((collection, indexes));
        }
    }
    Err(Error::interrupted("the indexes do not exist"))
}

/// A share in progress.
struct ShareBuild<'s> {
    core: &'s Core,
    task: &'s Share,
    indexes: &'s [Arc<Index>],
    reader: Reader,
    sink: RunSink,
    documents: AtomicU64,
    /// When the state was last announced.
    reported: Mutex<Instant>,
    written: Mutex<BuiltShare>,
}

impl ShareBuild<'_> {
    fn read(&self) -> Result<(), Error> {
        let worker = self.core.builds.join();
        let mut collected = CollectedEntries::new(self.indexes);
        read_range(self, &self.task.row.range, &worker, &mut collected)?;
        self.write(&mut collected)
    }

    fn report(&self, state: ShareState) -> Result<(), Error> {
        let report = ShareReport {
            documents: self.documents.load(Ordering::Relaxed),
            state,
        };
        let runs = &self.core.storage.runs;
        Ok(runs.report_share(self.task.run, &report.encode())?)
    }

    /// Uploads the run and announces its sections.
    fn finish(self) -> Result<(), Error> {
        self.check()?;
        let ShareBuild {
            core,
            task,
            documents,
            written,
            sink,
            ..
        } = self;
        let built = written.into_inner();
        if !built.sections.is_empty() {
            sink.finish()?;
            core.postpone([task.run]);
        }
        let report = ShareReport {
            documents: documents.into_inner(),
            state: ShareState::Built(built),
        };
        let runs = &core.storage.runs;
        runs.report_share(task.run, &report.encode())?;
        core.counters.shares_built.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

impl EntryTarget for ShareBuild<'_> {
    fn indexes(&self) -> &[Arc<Index>] {
        self.indexes
    }

    fn reader(&self) -> &Reader {
        &self.reader
    }

    fn check(&self) -> Result<(), Error> {
        let is_given = self.core.storage.catalog.get(&self.task.key).is_some();
        if !is_given || self.core.taken_shares.is_over() {
            return Err(Error::interrupted("the share was taken back"));
        }
        let mut reported = self.reported.lock();
        if reported.elapsed() >= REPORT_INTERVAL {
            *reported = Instant::now();
            self.report(ShareState::InProgress)?;
        }
        Ok(())
    }

    fn record_documents(&self, count: u64) {
        self.documents.fetch_add(count, Ordering::Relaxed);
    }

    fn write(&self, collected: &mut CollectedEntries) -> Result<(), Error> {
        let check = || self.check();
        let sections = collected.write_sections(self.core, self.indexes, &self.sink, &check)?;
        let mut written = self.written.lock();
        for (total, keys) in written.keys.iter_mut().zip(&mut collected.keys) {
            *total += std::mem::take(keys);
        }
        written.sections.extend(sections);
        collected.ranges.clear();
        Ok(())
    }
}
