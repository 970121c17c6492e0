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

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use windrow_converters::SettingsEntry;

use crate::byte_queue::ByteQueue;
use crate::changes::{
    Changes, ReadJob, StoredFile, StoredFiles, find_changes, plan_jobs, stored_below,
};
use crate::document_batch::DocumentBatch;
use crate::markers::mark_divided;
use crate::moves::move_files;
use crate::path_text::path_to_text;
use crate::pipeline::PipelineReport;
use crate::progress::Progress;
use crate::run_record;
use crate::setting_changes::{mark_affected_files, record};
use crate::store::{Store, StoreCollection, StoreError, remove_files};
use crate::stored_document::{FailureDocument, now_ms};
use crate::summary::IngestSummary;
use crate::walk::{WalkFailure, WalkResult, WalkRoot, walk};
use crate::worker_pool::WorkerPool;
use crate::writers::{WriterOptions, WriterQueues, Writers};

/// The options of an ingestion.
#[derive(Debug, Clone)]
pub struct IngestOptions {
    /// The workers.
    pub pool: WorkerPool,
    /// Also read unchanged files that failed or were skipped before.
    pub retry_failures: bool,
    /// The settings that determine how files are read. The files that are affected by a difference
    /// from those of the last run are read again. `None` disables the comparison.
    pub settings: Option<Vec<SettingsEntry>>,
    /// The stage that writes the documents.
    pub writers: WriterOptions,
}

/// The reason why an ingestion failed.
#[derive(Debug)]
pub enum IngestError {
    /// A given folder does not exist, and nothing below it is stored.
    MissingFolder(PathBuf),
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
/// use windrow_ingest::{WriterOptions, ingest};
///
/// fn index(store: &dyn Store) -> Result<(), Box<dyn std::error::Error>> {
///     let options = IngestOptions {
///         pool: WorkerPool::new(WorkerConfig::this_program(&["worker"])?),
///         retry_failures: false,
///         settings: None,
///         writers: WriterOptions::default(),
///     };
///     let folders = WalkOptions::default().roots(&["/usr/share/doc".into()]);
///     let summary = ingest(store, &folders, &options, &Progress::default())?;
///     println!("{} files read", summary.files_read);
///     Ok(())
/// }
/// ```
///
/// # Errors
/// Fails if all folders are missing and nothing below them is stored, if a worker cannot be
/// started, or if the store fails. What was stored before remains, and the next ingestion
/// continues.
pub fn ingest(
    store: &dyn Store,
    folders: &[WalkRoot],
    options: &IngestOptions,
    progress: &Progress,
) -> Result<IngestSummary, IngestError> {
    ingest_folders(store, folders, options, progress).map(|ingested| ingested.summary)
}

/// The result of [`ingest_folders`].
pub(crate) struct IngestedFolders {
    pub summary: IngestSummary,
    /// The stored state after the ingestion.
    pub stored: StoredFiles,
}

/// Like [`ingest()`]. Also returns the new stored state.
pub(crate) fn ingest_folders(
    store: &dyn Store,
    folders: &[WalkRoot],
    options: &IngestOptions,
    progress: &Progress,
) -> Result<IngestedFolders, IngestError> {
    let (started_ms, started) = (now_ms(), Instant::now());
    store.prepare()?;
    if let Some(settings) = &options.settings {
        mark_affected_files(store, settings)?;
    }
    let before = store.background_times();
    let mut stored = read_stored_files(store, options.retry_failures)?;
    let walk_started = Instant::now();
    let walked = walk(folders);
    let times = &progress.pipeline;
    times
        .walk
        .add_items(walked.files.len(), walk_started.elapsed());
    let mut summary = update(store, &mut stored, &walked, options, progress)?;
    if let Some(missing) = summary.folders_missing.first()
        && walked.roots.is_empty()
        && summary.folders_unavailable.is_empty()
    {
        return Err(IngestError::MissingFolder(missing.clone()));
    }
    let report = |finishing| {
        let background = before.zip(store.background_times());
        let background = background.map(|(before, after)| after.since(before));
        PipelineReport::new(times, background, finishing, started.elapsed())
    };
    summary.pipeline = report(Duration::ZERO);
    let mut run = run_record::build(folders, &summary, started_ms, now_ms());
    if let Some(settings) = &options.settings {
        record(&mut run, settings);
    }
    store.record_run(&run)?;
    let finish_started = Instant::now();
    store.finish()?;
    summary.pipeline = report(finish_started.elapsed());
    Ok(IngestedFolders { summary, stored })
}

/// Reads the changed files of a walk into `store`, and updates `stored`.
pub(crate) fn update(
    store: &dyn Store,
    stored: &mut StoredFiles,
    walked: &WalkResult,
    options: &IngestOptions,
    progress: &Progress,
) -> Result<IngestSummary, IngestError> {
    let mut changes = find_changes(stored, walked);
    let too_large = move_files(store, &changes.moved, progress)?;
    changes.read_instead_of_moving(&too_large);
    let jobs = plan_jobs(&changes, options.pool.workers());
    progress.set_totals(&jobs);
    remove_files(store, &changes.remove)?;
    store_walk_failures(store, &walked.failures, progress)?;
    mark_divided(store, &jobs)?;
    read_files(store, &jobs, options, progress)?;
    let summary = summarize(walked, &changes, progress);
    record_changes(stored, changes);
    Ok(summary)
}

/// Removes all documents of the files at or below `folder`. Returns the number of files.
///
/// # Errors
/// Fails if the store fails.
pub fn remove_folder(store: &dyn Store, folder: &Path) -> Result<u64, IngestError> {
    store.prepare()?;
    let stored = read_stored_files(store, false)?;
    let below = stored_below(&stored, &run_record::absolute_path(folder));
    let paths: Vec<String> = below.map(|(path, _)| path.clone()).collect();
    remove_files(store, &paths)?;
    store.finish()?;
    Ok(paths.len() as u64)
}

/// Returns the stored state of all files. A path without documents has no stamp, because an
/// ingestion was killed before it stored the document with the file's name. With `retry_failures`,
/// paths with failures or skipped members have none either.
pub(crate) fn read_stored_files(
    store: &dyn Store,
    retry_failures: bool,
) -> Result<StoredFiles, StoreError> {
    let mut stored = StoredFiles::new();
    for collection in StoreCollection::ALL {
        let is_document = collection == StoreCollection::Documents;
        store.visit_stamps(collection, &mut |path, stamp| {
            let stamp = stamp.filter(|_| is_document || !retry_failures);
            match stored.get_mut(path) {
                Some(known) => {
                    let same = known.stamp.zip(stamp);
                    let is_same = same.is_some_and(|(one, other)| one.is_unchanged(&other));
                    known.stamp = stamp.filter(|_| is_same);
                }
                None => {
                    let stamp = stamp.filter(|_| is_document);
                    stored.insert(path.to_owned(), StoredFile { stamp });
                }
            }
        })?;
    }
    Ok(stored)
}

/// Updates `stored` after changes were written.
fn record_changes(stored: &mut StoredFiles, changes: Changes<'_>) {
    for path in &changes.remove {
        stored.remove(path);
    }
    for file in changes.add.into_iter().chain(changes.replace) {
        let read = StoredFile {
            stamp: Some(file.stamp),
        };
        stored.insert(file.path_text(), read);
    }
    for moved in changes.moved {
        stored.remove(&moved.from);
        let read = StoredFile {
            stamp: Some(moved.file.stamp),
        };
        stored.insert(moved.file.path_text(), read);
    }
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

/// Reads files in the workers and writes their documents, in writer threads with queues or in the
/// thread of each worker.
fn read_files(
    store: &dyn Store,
    jobs: &[ReadJob<'_>],
    options: &IngestOptions,
    progress: &Progress,
) -> Result<(), IngestError> {
    let (pool, times) = (&options.pool, &progress.pipeline);
    let writers = Writers::new(store, progress, pool.workers());
    let read = match options.writers.queue_bytes {
        0 => {
            times.write.set_threads(pool.workers());
            pool.run_timed(jobs, &times.extract, &|worker, job, event| {
                writers.handle(worker, job, event)
            })
        }
        queue_bytes => {
            let threads = options.writers.threads.unwrap_or(pool.workers());
            let queues = (0..threads.clamp(1, pool.workers()))
                .map(|_| ByteQueue::new(queue_bytes))
                .collect();
            WriterQueues { queues }.run(jobs, pool, &writers, times)
        }
    };
    writers.flush();
    match writers.into_error() {
        Some(error) => Err(IngestError::Store(error)),
        None => read.map_err(IngestError::Workers),
    }
}

fn summarize(walked: &WalkResult, changes: &Changes<'_>, progress: &Progress) -> IngestSummary {
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let has_documents = |path: &PathBuf| {
        let path = path_to_text(path);
        changes.unavailable.iter().any(|folder| folder.path == path)
    };
    let missing = walked.missing_roots.iter();
    let missing = missing.filter(|path| !has_documents(path));
    IngestSummary {
        files_found: walked.files.len() as u64,
        files_unchanged: changes.unchanged,
        files_added: changes.add.len() as u64,
        files_replaced: changes.replace.len() as u64,
        files_removed: changes.remove.len() as u64,
        files_moved: changes.moved.len() as u64,
        files_read: count(&progress.files_read),
        bytes_read: count(&progress.bytes_read),
        documents: count(&progress.documents),
        failures: count(&progress.failures),
        files_skipped: count(&progress.files_skipped),
        folders_unavailable: changes.unavailable.clone(),
        folders_missing: missing.cloned().collect(),
        pipeline: PipelineReport::default(),
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
            IngestError::MissingFolder(folder) => {
                write!(
                    formatter,
                    "{}: there is no such file or folder",
                    folder.display()
                )
            }
            IngestError::Workers(error) => {
                write!(formatter, "a worker could not be started: {error}")
            }
            IngestError::Store(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for IngestError {}
