//! The threads that work behind an engine: folds, merges, entries of indexes, builds that a crash
//! interrupted.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::collections::Collections;
use crate::error::Error;
use crate::merging::Effort;
use crate::state::IndexState;
use crate::{building, folding, merging};

/// See the module.
pub(crate) fn start(collections: &Arc<Collections>) -> Result<Vec<JoinHandle<()>>, Error> {
    let mut threads = vec![
        spawn("windrow-fold", collections.clone(), keep_folding)?,
        spawn("windrow-merge", collections.clone(), keep_merging)?,
        spawn("windrow-tails", collections.clone(), keep_settling)?,
    ];
    for build in building::unfinished(collections) {
        let resume = move |collections: &Arc<Collections>| {
            building::resume(&collections.core, &build);
        };
        threads.push(spawn("windrow-build", collections.clone(), resume)?);
    }
    Ok(threads)
}

/// Asks them to end.
pub(crate) fn stop(collections: &Collections) {
    let background = &collections.core.background;
    background.closing.store(true, Ordering::Release);
    background.fold.call();
    background.merge.call();
    background.settle.call();
}

fn spawn(
    name: &str,
    collections: Arc<Collections>,
    work: impl FnOnce(&Arc<Collections>) + Send + 'static,
) -> Result<JoinHandle<()>, Error> {
    let thread = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || work(&collections));
    thread.map_err(|error| Error::Interrupted(format!("no thread can be started: {error}")))
}

/// Folds whenever tails have grown enough or are old.
fn keep_folding(collections: &Arc<Collections>) {
    let core = &collections.core;
    let mut last_fold = Instant::now();
    while !core.is_closing() {
        core.background.fold.wait(Duration::from_millis(500));
        let full = core.tail_bytes() >= core.fold_from_bytes();
        let old = core.tail_bytes() > 0 && last_fold.elapsed() >= core.options.fold_interval;
        if core.is_closing() || !(full || old) {
            continue;
        }
        if let Err(error) = folding::fold(collections) {
            (core.options.on_problem)("folding failed", &error);
            std::thread::sleep(Duration::from_millis(200));
        }
        last_fold = Instant::now();
        core.background.folded.call();
        core.background.merge.call();
    }
}

/// When nothing has been written for so long, space that is of no use comes back.
const QUIET: Duration = Duration::from_secs(5);
/// So long it is left alone after a failure: on a full disk the attempt takes the space that is left.
const REST: Duration = Duration::from_secs(600);

/// Merges after folds, beside the next ones.
fn keep_merging(collections: &Arc<Collections>) {
    let core = &collections.core;
    let (mut written, mut since) = (core.storage.log.written(), Instant::now());
    let mut failed: Option<Instant> = None;
    while !core.is_closing() {
        core.background.merge.wait(Duration::from_millis(500));
        if written != core.storage.log.written() {
            (written, since) = (core.storage.log.written(), Instant::now());
        }
        let rests = failed.is_some_and(|failed| failed.elapsed() < REST);
        let effort = match since.elapsed() >= QUIET && !rests {
            true => Effort::Space,
            false => Effort::Readers,
        };
        let mut merged = true;
        while merged && !core.is_closing() {
            merged = merging::merge_all(collections, effort, &|| true).unwrap_or_else(|error| {
                (core.options.on_problem)("merging failed", &error);
                failed = Some(Instant::now());
                false
            });
            core.background.merged.call();
        }
    }
}

/// Makes the entries of indexes a little after their commits came, so that no reader and no fold has
/// to make many. Ends snapshots that are too old.
fn keep_settling(collections: &Arc<Collections>) {
    let core = &collections.core;
    while !core.is_closing() {
        core.background.settle.wait(Duration::from_millis(500));
        core.snapshots.end_older(core.options.snapshot_age_max);
        settle(collections);
    }
}

/// Lets indexes make the entries of commits where there are many without, and joins parts of tails;
/// whether there was something to do.
pub(crate) fn settle(collections: &Collections) -> bool {
    let core = &collections.core;
    core.let_go_of_kept();
    let mut settled = collections.let_go_of_versions();
    collections.forget_past();
    let position = core.storage.log.written().0;
    for collection in collections.all() {
        let state = collection.state();
        for IndexState { index, .. } in &state.indexes {
            if state.active.bytes_unsettled(index) >= core.options.settle_bytes {
                state.active.index(index, position);
                core.background.settled.call();
                settled = true;
            }
        }
        settled |= state.active.tidy();
    }
    settled
}
