//! The background threads of an engine: folds, merges, the creation of index entries, and index
//! builds that a crash interrupted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use windrow_interrupt::Uninterrupted;

use crate::building;
use crate::building::share_work;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::Error;
use crate::maintenance::merging::MergeEffort;
use crate::maintenance::{folding, merging};
use crate::panic_boundary::catch_panic;
use crate::state::IndexState;

/// Starts the background threads.
pub(crate) fn start(collections: &Arc<Collections>) -> Result<Vec<JoinHandle<()>>, Error> {
    let mut threads = vec![
        spawn("windrow-fold", collections.clone(), keep_folding)?,
        spawn("windrow-merge", collections.clone(), keep_merging)?,
        spawn("windrow-tails", collections.clone(), keep_creating_entries)?,
    ];
    for build in building::unfinished_builds(collections) {
        let resume = move |collections: &Arc<Collections>| {
            building::resume(&collections.core, &build);
        };
        threads.push(spawn("windrow-build", collections.clone(), resume)?);
    }
    Ok(threads)
}

/// Starts the thread of a follower that builds shares of the primary's indexes.
pub(crate) fn start_shares(collections: &Arc<Collections>) -> Result<JoinHandle<()>, Error> {
    let work = |collections: &Arc<Collections>| share_work::keep_building(collections);
    spawn("windrow-shares", collections.clone(), work)
}

/// Requests the threads to stop.
pub(crate) fn stop(collections: &Collections) {
    let background = &collections.core.background;
    background.closing.store(true, Ordering::Release);
    background.fold.raise();
    background.merge.raise();
    background.create_entries.raise();
}

fn spawn(
    name: &str,
    collections: Arc<Collections>,
    work: impl FnOnce(&Arc<Collections>) + Send + 'static,
) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&collections));
    thread.map_err(|error| Error::interrupted(format!("no thread can be started: {error}")))
}

/// The delay of a kind of work after it has failed. A bug usually recurs, so the delay doubles with
/// each failure in a row.
struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(200);
    const MAX: Duration = Duration::from_secs(60);
    /// The interval at which a delayed thread checks whether to end.
    const CHECK_INTERVAL: Duration = Duration::from_millis(200);

    fn new() -> Backoff {
        Backoff {
            next: Backoff::FIRST,
        }
    }

    /// Resets the delay after work that succeeded.
    fn reset(&mut self) {
        self.next = Backoff::FIRST;
    }

    /// Returns the delay after an error.
    fn after(&mut self, error: &Error) -> Duration {
        match error {
            Error::Bug(_) => {
                let delay = self.next;
                self.next = (2 * delay).min(Backoff::MAX);
                delay
            }
            _ => Backoff::FIRST,
        }
    }

    /// Reports an error, and waits.
    fn wait_after(&mut self, core: &Core, what: &str, error: &Error) {
        (core.options.on_problem)(what, error);
        let until = Instant::now() + self.after(error);
        while !core.is_closing() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(Backoff::CHECK_INTERVAL));
        }
    }
}

/// Folds when tails are large or old, or the log in an object store is long.
fn keep_folding(collections: &Arc<Collections>) {
    let core = &collections.core;
    let (mut last_fold, mut backoff) = (Instant::now(), Backoff::new());
    while !core.is_closing() {
        core.background.fold.wait(Duration::from_millis(500));
        let full = core.tail_bytes() >= core.fold_from_bytes();
        let old = core.tail_bytes() > 0 && last_fold.elapsed() >= core.options.fold_interval;
        let is_long = core.storage.is_shared_log_long();
        if core.is_closing() || !(full || old || is_long) {
            continue;
        }
        match catch_panic("a fold", || folding::fold_or_record(collections)) {
            Ok(_) => backoff.reset(),
            Err(error) => backoff.wait_after(core, "folding failed", &error),
        }
        last_fold = Instant::now();
        core.background.folded.raise();
        core.background.merge.raise();
    }
}

/// Unused space is returned after this time without writes.
const QUIET_TIME: Duration = Duration::from_secs(5);
/// The delay of that work after it has failed. On a full disk each attempt takes the space that is
/// left.
const SPACE_MERGE_DELAY: Duration = Duration::from_secs(600);

/// Merges after each fold, concurrently with the next folds.
fn keep_merging(collections: &Arc<Collections>) {
    let core = &collections.core;
    let (mut written, mut since) = (core.storage.log.written(), Instant::now());
    let (mut failed, mut backoff) = (None::<Instant>, Backoff::new());
    while !core.is_closing() {
        core.background.merge.wait(Duration::from_millis(500));
        if written != core.storage.log.written() {
            (written, since) = (core.storage.log.written(), Instant::now());
        }
        let is_delayed = failed.is_some_and(|failed| failed.elapsed() < SPACE_MERGE_DELAY);
        let effort = if since.elapsed() >= QUIET_TIME && !is_delayed {
            MergeEffort::Space
        } else {
            MergeEffort::Readers
        };
        let mut merged = true;
        while merged && !core.is_closing() {
            let work = || merging::merge_all(collections, effort, &Uninterrupted);
            merged = match catch_panic("a merge", work) {
                Ok(merged) => {
                    backoff.reset();
                    merged
                }
                Err(error) => {
                    failed = Some(Instant::now());
                    backoff.wait_after(core, "merging failed", &error);
                    false
                }
            };
            core.background.merged.raise();
        }
    }
}

/// Creates the entries of indexes soon after commits, so that no reader and no fold has to create
/// many. Also ends snapshots that are too old.
fn keep_creating_entries(collections: &Arc<Collections>) {
    let (core, mut backoff) = (&collections.core, Backoff::new());
    while !core.is_closing() {
        core.background
            .create_entries
            .wait(Duration::from_millis(500));
        core.snapshots.end_older(core.options.snapshot_age_max);
        match catch_panic("creating entries", || Ok(create_entries(collections))) {
            Ok(_) => backoff.reset(),
            Err(error) => backoff.wait_after(core, "creating entries failed", &error),
        }
    }
}

/// Creates entries of commits where many lack them, and joins parts of tails. Returns `true` if
/// there was anything to do.
pub(crate) fn create_entries(collections: &Collections) -> bool {
    let core = &collections.core;
    let _busy = core.counters.entry_time.begin();
    core.release_expired_snapshots();
    let mut has_worked = collections.collect_obsolete_versions();
    collections.forget_name_history();
    let position = core.storage.log.written();
    for collection in collections.all() {
        let state = collection.state();
        for IndexState { index, .. } in &state.indexes {
            if state.active.entry_backlog(index) >= core.options.entry_backlog_bytes {
                state.active.create_entries(index, position);
                core.background.entries_created.raise();
                has_worked = true;
            }
        }
        has_worked |= state.active.join_parts();
    }
    has_worked
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_invariant::{Bug, tolerate_bugs};

    /// Work that failed with a bug used to restart every half second, and wrote its files again
    /// each time.
    #[test]
    fn the_delay_after_a_bug_doubles() {
        let bug = Error::Bug(tolerate_bugs(|| Bug::new("a test")));
        let full = Error::interrupted("a test");
        let mut backoff = Backoff::new();
        let first = backoff.after(&bug);
        assert_eq!(backoff.after(&bug), 2 * first);
        assert_eq!(backoff.after(&bug), 4 * first);
        assert_eq!(backoff.after(&full), first);
        for _ in 0..20 {
            backoff.after(&bug);
        }
        assert_eq!(backoff.after(&bug), Backoff::MAX);
        backoff.reset();
        assert_eq!(backoff.after(&bug), first);
    }
}
