//! Ingests folders: walks them, reads changed files in workers, stores their documents, and removes
//! the documents of deleted files.
//!
//! An ingestion can be killed at any time, and the next one continues. Each document contains the
//! stamp of its file, so all documents of a file must become visible together. Otherwise the next
//! ingestion would take an incomplete file as unchanged. Most files are part of a single batch. A
//! file that needs several writes (because of much text, or of both documents and failures) is
//! marked as unfinished:
//!
//! 1. The first write stores a failure of class `unfinished` without a stamp. While it exists, the
//!    file counts as changed.
//! 2. Further writes store documents and failures.
//! 3. The last write removes the failure of step 1.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use windrow_invariant::Bug;

use crate::changes::{Changes, ReadJob, find_changes, plan_jobs};
use crate::document_batch::DocumentBatch;
use crate::path_text::path_to_text;
use crate::progress::Progress;
use crate::store::{Store, StoreCollection, StoreError};
use crate::store_writer::{BatchLimits, StoreWriter};
use crate::stored_document::{FailureDocument, now_ms};
use crate::walk::{FileStamp, WalkFailure, WalkOptions, WalkResult, walk};
use crate::worker_pool::WorkerPool;

/// The options of an ingestion.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// Which files are read.
    pub walk: WalkOptions,
    /// The workers.
    pub pool: WorkerPool,
    /// Also read files that failed and have not changed.
    pub retry_failures: bool,
}

/// What an ingestion did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IngestSummary {
    /// Files below the folders.
    pub files_found: u64,
    /// Files that are stored with their current stamp and were not read.
    pub files_unchanged: u64,
    /// New files.
    pub files_added: u64,
    /// Changed files.
    pub files_replaced: u64,
    /// Deleted files.
    pub files_removed: u64,
    /// Files that were read.
    pub files_read: u64,
    /// The size of the files that were read, in bytes.
    pub bytes_read: u64,
    /// Documents that were stored.
    pub documents: u64,
    /// Failures of files and members.
    pub failures: u64,
    /// Files whose format has no extractor.
    pub files_skipped: u64,
}

/// Why an ingestion failed.
#[derive(Debug)]
pub enum IngestError {
    /// A worker could not be started.
    Workers(io::Error),
    /// The database failed.
    Store(StoreError),
}

/// Updates the documents of `store` to the files below `folders`.
///
/// Files that cannot be read are not errors: they are stored in `files.failures`.
///
/// ```no_run
/// use windrow_ingest::{IngestOptions, Progress, Store, WalkOptions, WorkerConfig, WorkerPool};
/// use windrow_ingest::ingest;
///
/// fn index(store: &dyn Store) -> Result<(), Box<dyn std::error::Error>> {
///     let options = IngestOptions {
///         walk: WalkOptions::default(),
///         pool: WorkerPool::new(WorkerConfig::this_program(&["worker"])?),
///         retry_failures: false,
///     };
///     let folders = ["/usr/share/doc".into()];
///     let summary = ingest(store, &folders, &options, &Progress::default())?;
///     println!("{} files read", summary.files_read);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// Fails if a worker cannot be started or the store fails. What was stored before remains, and the
/// next ingestion continues.
pub fn ingest(
    store: &dyn Store,
    folders: &[PathBuf],
    options: &IngestOptions,
    progress: &Progress,
) -> Result<IngestSummary, IngestError> {
    store.prepare()?;
    let stored = read_stored_stamps(store, options.retry_failures)?;
    let walked = walk(folders, &options.walk);
    let changes = find_changes(&stored, &walked);
    let jobs = plan_jobs(&changes);
    progress.set_totals(&jobs);
    remove_files(store, &changes.remove)?;
    store_walk_failures(store, &walked.failures, progress)?;
    read_files(store, &jobs, &options.pool, progress)?;
    store.finish()?;
    Ok(summarize(&walked, &changes, progress))
}

/// A stamp that differs from that of every file.
const STALE_STAMP: FileStamp = FileStamp {
    size: 0,
    modified_ns: i64::MIN,
};

/// Returns the stamps of all stored paths. A path with different stamps, or with a failure that has
/// none, gets a stale one, so its file counts as changed. With `retry_failures`, every path with a
/// failure gets a stale one.
pub(crate) fn read_stored_stamps(
    store: &dyn Store,
    retry_failures: bool,
) -> Result<HashMap<String, FileStamp>, StoreError> {
    let mut stored: HashMap<String, FileStamp> = HashMap::new();
    let mut record = |path: &str, stamp: Option<FileStamp>| {
        let stamp = stamp.unwrap_or(STALE_STAMP);
        match stored.get_mut(path) {
            Some(known) if *known != stamp => *known = STALE_STAMP,
            Some(_) => {}
            None => {
                stored.insert(path.to_owned(), stamp);
            }
        }
    };
    store.visit_stamps(StoreCollection::Documents, &mut record)?;
    store.visit_stamps(StoreCollection::Failures, &mut |path, stamp| {
        record(path, stamp.filter(|_| !retry_failures));
    })?;
    Ok(stored)
}

/// Paths that are removed with one call.
const REMOVE_PATHS_MAX: usize = 1_000;

fn remove_files(store: &dyn Store, paths: &[String]) -> Result<(), StoreError> {
    for paths in paths.chunks(REMOVE_PATHS_MAX) {
        for collection in StoreCollection::ALL {
            store.remove(collection, paths)?;
        }
    }
    Ok(())
}

/// Replaces the stored failures of paths that could not be walked.
fn store_walk_failures(
    store: &dyn Store,
    failures: &[WalkFailure],
    progress: &Progress,
) -> Result<(), StoreError> {
    let paths: Vec<String> = failures.iter().map(|it| path_to_text(&it.path)).collect();
    if paths.is_empty() {
        return Ok(());
    }
    store.remove(StoreCollection::Failures, &paths)?;
    let mut batch = DocumentBatch::default();
    for failure in failures {
        batch.push_failure(&FailureDocument::from_walk_failure(failure, now_ms()));
    }
    progress.add(&progress.failures, batch.count());
    store.insert(StoreCollection::Failures, batch.take())?;
    Ok(())
}

fn read_files(
    store: &dyn Store,
    jobs: &[ReadJob<'_>],
    pool: &WorkerPool,
    progress: &Progress,
) -> Result<(), IngestError> {
    let writers: Vec<_> = (0..pool.workers())
        .map(|_| Mutex::new(StoreWriter::new(store, progress, BatchLimits::default())))
        .collect();
    let failed: Mutex<Option<StoreError>> = Mutex::default();
    let record = |result: Result<(), StoreError>| match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            lock(&failed).get_or_insert(error);
            ControlFlow::Break(())
        }
    };
    let read = pool.run(jobs, &|worker, job, event| match writers.get(worker) {
        Some(writer) => record(lock(writer).handle(job, event)),
        None => {
            let bug = Bug::new(format!("worker {worker} has no writer"));
            record(Err(bug.into()))
        }
    });
    for writer in &writers {
        if lock(&failed).is_none() {
            // The loop ends by itself: the next writer is flushed only without an error.
            let _ = record(lock(writer).flush());
        }
    }
    match lock(&failed).take() {
        Some(error) => Err(IngestError::Store(error)),
        None => read.map_err(IngestError::Workers),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn summarize(walked: &WalkResult, changes: &Changes<'_>, progress: &Progress) -> IngestSummary {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    IngestSummary {
        files_found: walked.files.len() as u64,
        files_unchanged: changes.unchanged,
        files_added: changes.add.len() as u64,
        files_replaced: changes.replace.len() as u64,
        files_removed: changes.remove.len() as u64,
        files_read: count(&progress.files_read),
        bytes_read: count(&progress.bytes_read),
        documents: count(&progress.documents),
        failures: count(&progress.failures),
        files_skipped: count(&progress.files_skipped),
    }
}

impl From<StoreError> for IngestError {
    fn from(error: StoreError) -> IngestError {
        IngestError::Store(error)
    }
}

impl fmt::Display for IngestError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IngestError::Workers(error) => {
                write!(formatter, "a worker could not be started: {error}")
            }
            IngestError::Store(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for IngestError {}
