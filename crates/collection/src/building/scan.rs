//! The scan of a build: all threads read, sort and write concurrently.
//!
//! The documents are divided into ranges in natural order, by record id, or in a clustered
//! collection by key. A worker takes range after range. When its share of the memory is full, it
//! sorts the entries and writes a section for each index, with rows for the ranges that they cover.
//! Workers do not wait for each other. If the database is in an object store, followers take a part
//! of the ranges ([`sharing`](super::sharing)).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use windrow_invariant::Bug;
use windrow_mql::interrupt::with_interrupt;

use super::control::BuildControl;
use super::duplicate_build::DuplicateBuild;
use super::entries::{CollectedEntries, EntryTarget, read_range};
use super::ongoing_scan::{Scan, interrupt_if_dropped};
use super::pool::Worker;
use super::ranges::{RangeQueue, unbuilt_ranges};
use super::sharing::{NextWork, SharedScan};
use crate::catalog::rows;
use crate::collection::Collection;
use crate::core::Core;
use crate::error::Error;
use crate::index::Index;
use crate::options::Background;
use crate::panic_boundary::catch_panic;

/// The number of ranges per worker: enough for all workers to end at about the same time.
const RANGES_PER_WORKER: u64 = 32;
/// Each additional worker needs this many bytes of documents. It writes sections of its own, and
/// entries in overlapping sections can only be counted by reading them.
const BYTES_PER_WORKER: u64 = 1 << 20;

/// Scans the collection for indexes whose builds have covered the same records.
pub(super) fn scan(
    collection: &Collection,
    core: &Core,
    indexes: &[Arc<Index>],
    control: &BuildControl<'_>,
) -> Result<(), Error> {
    // Indexes of a resumed build may have covered different records; then each is scanned
    // separately.
    let built = |index: &Index| rows::built_ranges(index.map, &core.storage.catalog);
    let done: Vec<_> = indexes.iter().map(|index| built(index)).collect();
    if done.windows(2).any(|pair| pair[0] != pair[1]) {
        return indexes
            .iter()
            .try_for_each(|index| scan(collection, core, std::slice::from_ref(index), control));
    }
    let reader = collection.reader_without_age_limit()?;
    let threads = core.options.threads.max(1);
    let builders = core.storage.builders();
    let all_threads = threads + builders.iter().map(|it| it.threads).sum::<usize>();
    // All have covered the same. Without indexes there is nothing to scan for.
    let done = done.into_iter().next().unwrap_or_default();
    let split_keys = reader.split_keys(all_threads as u64 * RANGES_PER_WORKER)?;
    for index in indexes {
        index
            .progress()
            .documents_total
            .store(collection.count(), Ordering::Relaxed);
    }
    let scan = Scan {
        collection,
        core,
        indexes,
        control,
        reader,
        queue: RangeQueue::new(unbuilt_ranges(&done, split_keys)),
        failed: Mutex::default(),
    };
    let sharing = SharedScan::begin(&scan)?;
    let useful = usize::try_from(collection.bytes() / BYTES_PER_WORKER).unwrap_or(usize::MAX);
    let workers = threads.min(scan.queue.total()).min(useful.max(1));
    let all = Workers {
        scan: &scan,
        sharing: &sharing,
    };
    match core.options.background {
        Background::Threads => all.run(workers),
        Background::Caller => all.work(),
    }
    sharing.end();
    if let Some(error) = scan.failed.into_inner() {
        return Err(error);
    }
    let is_built = |index: &Index| unbuilt_ranges(&built(index), Vec::new()).is_empty();
    if !indexes.iter().all(|it| it.is_dropped() || is_built(it)) {
        return Err(Bug::new("a scan has ended, and ranges are left").into());
    }
    Ok(())
}

/// The workers of a scan.
struct Workers<'w, 's> {
    scan: &'w Scan<'s>,
    sharing: &'w SharedScan<'s>,
}

impl Workers<'_, '_> {
    /// Runs this many threads, and another one that manages the shares of followers.
    fn run(&self, threads: usize) {
        std::thread::scope(|scope| {
            if self.sharing.is_possible() {
                scope.spawn(|| self.manage_shares());
            }
            let spawn = |_| scope.spawn(|| self.work());
            let workers: Vec<_> = (0..threads).map(spawn).collect();
            let ended: Vec<_> = workers.into_iter().map(|it| it.join()).collect();
            self.sharing.set_over();
            if let Some(panic) = ended.into_iter().find_map(Result::err) {
                std::panic::resume_unwind(panic);
            }
        });
    }

    fn manage_shares(&self) {
        let poll = || self.sharing.poll_until_over();
        self.record(catch_panic("the shares of an index build", poll));
    }

    fn record(&self, result: Result<(), Error>) {
        if let Err(error) = result {
            self.scan.failed.lock().get_or_insert(error);
        }
    }

    fn work(&self) {
        let interrupt = interrupt_if_dropped(self.scan.indexes.to_vec());
        self.record(with_interrupt(interrupt, || self.try_work()));
    }

    fn try_work(&self) -> Result<(), Error> {
        let Workers { scan, sharing } = *self;
        let worker = scan.core.builds.join();
        let mut collected = CollectedEntries::new(scan.indexes);
        loop {
            match sharing.next_work()? {
                NextWork::Range(range) => read_range(scan, &range, &worker, &mut collected)?,
                NextWork::Wait => {
                    // A follower may take longer than writing the entries so far.
                    scan.write(&mut collected)?;
                    scan.check()?;
                    sharing.wait();
                }
                NextWork::Share(share) => {
                    scan.write(&mut collected)?;
                    let share = DuplicateBuild::new(scan, sharing, share);
                    self.build_share(&share, &worker, &mut collected)?;
                }
                NextWork::None => break,
            }
        }
        scan.write(&mut collected)
    }

    /// Builds the share of a follower, unless the follower is ready before.
    fn build_share(
        &self,
        share: &DuplicateBuild<'_, '_>,
        worker: &Worker<'_>,
        collected: &mut CollectedEntries,
    ) -> Result<(), Error> {
        let built = read_range(share, share.range(), worker, collected)
            .and_then(|()| share.write(collected));
        if built.is_err() && share.is_superseded() {
            *collected = CollectedEntries::new(self.scan.indexes);
            return self.scan.check();
        }
        built
    }
}
