//! One run: folders are walked, what changed is read by workers and stored, what is gone is removed.
//!
//! A run that is killed leaves a state from which the next one goes on. A file's documents carry
//! its stamp, so they must become visible all together, or the next run would take a part for the
//! whole. Most files are part of one batch. A file that needs more than one write (it has very
//! much text, or both documents and failures) gets a marker first, a failure of class `unfinished`
//! without a stamp, which goes away with its last write: while it is there, the file has changed.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::changes::{Changes, Job, changes, jobs};
use crate::document::{FailureDocument, now_ms};
use crate::encode::Pending;
use crate::path_text::path_to_text;
use crate::pool::WorkerPool;
use crate::progress::Progress;
use crate::store::{Place, Store, StoreError};
use crate::walk::{Stamp, WalkFailure, WalkOptions, Walked, walk};
use crate::writer::{BatchLimits, Writer};

/// How a run works.
#[derive(Debug, Clone)]
pub struct RunOptions {
    pub walk: WalkOptions,
    pub pool: WorkerPool,
    /// Read files again that failed and have not changed.
    pub retry: bool,
}

/// What a run did. Sizes are bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that were found below the folders.
    pub found: u64,
    /// Files that are stored as they are, and were not read.
    pub unchanged: u64,
    pub added: u64,
    pub replaced: u64,
    /// Files that are gone.
    pub removed: u64,
    /// Files that were read, and their sizes together.
    pub files: u64,
    pub bytes: u64,
    /// What they became.
    pub documents: u64,
    pub failures: u64,
    /// Files of a kind without text.
    pub skipped: u64,
}

/// Why a run ended early.
#[derive(Debug)]
pub enum RunError {
    /// The machine's: no worker could be started.
    Workers(io::Error),
    /// The database's.
    Store(StoreError),
}

/// Makes the documents of `store` follow the files below `folders`.
///
/// Broken files are no errors: they are documents of `files.failures`.
///
/// # Errors
/// If workers cannot be started or the store refuses. What was stored until then stays, and the
/// next run goes on.
pub fn run(
    store: &dyn Store,
    folders: &[PathBuf],
    options: &RunOptions,
    progress: &Progress,
) -> Result<Summary, RunError> {
    store.prepare()?;
    let stored = stored_stamps(store, options.retry)?;
    let walked = walk(folders, &options.walk);
    let changes = changes(&stored, &walked);
    let jobs = jobs(&changes);
    progress.expect(&jobs);
    remove(store, &changes.remove)?;
    note_walk_failures(store, &walked.failures, progress)?;
    read(store, &jobs, &options.pool, progress)?;
    store.finish()?;
    Ok(summary(&walked, &changes, progress))
}

/// A stamp that no file has.
const UNLIKE_ANY: Stamp = Stamp {
    size: 0,
    modified_ns: i64::MIN,
};

pub(crate) fn stored_stamps(
    store: &dyn Store,
    retry: bool,
) -> Result<HashMap<String, Stamp>, StoreError> {
    let mut stored: HashMap<String, Stamp> = HashMap::new();
    let mut note = |path: &str, stamp: Option<Stamp>| {
        let stamp = stamp.unwrap_or(UNLIKE_ANY);
        match stored.get_mut(path) {
            Some(known) if *known != stamp => *known = UNLIKE_ANY,
            Some(_) => {}
            None => {
                stored.insert(path.to_owned(), stamp);
            }
        }
    };
    store.stamps(Place::Documents, &mut note)?;
    store.stamps(Place::Failures, &mut |path, stamp| {
        note(path, stamp.filter(|_| !retry));
    })?;
    Ok(stored)
}

/// Paths whose documents are removed with one call.
const REMOVED_TOGETHER: usize = 1_000;

fn remove(store: &dyn Store, paths: &[String]) -> Result<(), StoreError> {
    for paths in paths.chunks(REMOVED_TOGETHER) {
        for place in Place::ALL {
            store.remove(place, paths)?;
        }
    }
    Ok(())
}

/// What could not be walked is told anew every time.
fn note_walk_failures(
    store: &dyn Store,
    failures: &[WalkFailure],
    progress: &Progress,
) -> Result<(), StoreError> {
    let paths: Vec<String> = failures.iter().map(|it| path_to_text(&it.path)).collect();
    if paths.is_empty() {
        return Ok(());
    }
    store.remove(Place::Failures, &paths)?;
    let mut pending = Pending::default();
    for failure in failures {
        pending.push_failure(&FailureDocument::of_walk(failure, now_ms()));
    }
    progress.add(&progress.failures, pending.count());
    store.insert(Place::Failures, pending.take())?;
    Ok(())
}

fn read(
    store: &dyn Store,
    jobs: &[Job<'_>],
    pool: &WorkerPool,
    progress: &Progress,
) -> Result<(), RunError> {
    let writers: Vec<_> = (0..pool.workers())
        .map(|_| Mutex::new(Writer::new(store, progress, BatchLimits::default())))
        .collect();
    let failed: Mutex<Option<StoreError>> = Mutex::default();
    let note = |result: Result<(), StoreError>| match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            lock(&failed).get_or_insert(error);
            ControlFlow::Break(())
        }
    };
    let read = pool.run(jobs, &|worker, job, event| match writers.get(worker) {
        Some(writer) => note(lock(writer).take(job, event)),
        None => ControlFlow::Break(()),
    });
    for writer in &writers {
        if lock(&failed).is_none() {
            let _ = note(lock(writer).flush());
        }
    }
    match lock(&failed).take() {
        Some(error) => Err(RunError::Store(error)),
        None => read.map_err(RunError::Workers),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn summary(walked: &Walked, changes: &Changes<'_>, progress: &Progress) -> Summary {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Summary {
        found: walked.files.len() as u64,
        unchanged: changes.unchanged,
        added: changes.add.len() as u64,
        replaced: changes.replace.len() as u64,
        removed: changes.remove.len() as u64,
        files: count(&progress.files),
        bytes: count(&progress.bytes),
        documents: count(&progress.documents),
        failures: count(&progress.failures),
        skipped: count(&progress.skipped),
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> RunError {
        RunError::Store(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Workers(error) => write!(formatter, "no worker could be started: {error}"),
            RunError::Store(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for RunError {}
