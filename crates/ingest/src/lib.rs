//! Stores the text of files below folders as documents, and updates the documents when files
//! change.
//!
//! File formats are read by `windrow-extract`, and searches are done by `windrow-file-search`.
//!
//! - [`ingest()`] updates the documents of a [`Store`] to the files.
//! - [`walk()`] finds files, [`find_changes`] compares them with what is stored.
//! - [`WorkerPool`] extracts text in worker processes, one per core. Each process has a memory
//!   limit and each file a time limit. A file that exceeds them, or crashes a parser, is a
//!   [`Failure`] with its reason, and a new process reads the next file.
//! - [`FileDocument`], [`FailureDocument`] and [`SkippedDocument`] are the stored documents.
//!
//! A binary that uses the pool needs a hidden command that calls [`run_worker`] with its standard
//! input and output, and does nothing else:
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use windrow_ingest::{FileEvent, WalkOptions, WorkerConfig, WorkerPool, run_worker, walk};
//!
//! if std::env::args().nth(1).as_deref() == Some("worker") {
//!     return run_worker(std::io::stdin().lock(), std::io::stdout().lock());
//! }
//! let found = walk(&WalkOptions::default().roots(&["/usr/share/doc".into()]));
//! let pool = WorkerPool::new(WorkerConfig::this_program(&["worker"])?);
//! pool.run(&found.files, &|_worker, file, event| {
//!     if let FileEvent::Document(document) = event {
//!         println!("{}: {} bytes", file.path.display(), document.text.len());
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Modules in reading order:
//!
//! - `path_text`, `walk`: files
//! - `changes`: the files to read and to remove
//! - `failure`, `file_event`, `protocol`, `watchdog`, `worker_loop`, `worker`, `worker_pool`:
//!   extraction in worker processes
//! - `stored_document`, `document_batch`: the stored documents
//! - `store`, `engine_store`: the database
//! - `pipeline`, `byte_queue`, `markers`, `store_writer`, `writers`: the stages and the queues
//!   between them
//! - `summary`, `progress`, `moves`, `run_record`, `setting_changes`, `ingestion`, `watch`: whole
//!   runs
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod byte_queue;
mod changes;
mod document_batch;
mod engine_store;
mod failure;
mod file_event;
mod file_signature;
mod ingestion;
mod markers;
mod moves;
mod path_text;
mod pipeline;
mod progress;
mod protocol;
mod run_record;
mod setting_changes;
mod store;
mod store_writer;
mod stored_document;
mod summary;
mod walk;
mod watch;
mod watchdog;
mod worker;
mod worker_loop;
mod worker_pool;
mod writers;

pub use changes::{Changes, MovedFile, StoredFile, StoredFiles, UnavailableFolder, find_changes};
pub use engine_store::EngineStore;
pub use failure::{Failure, FailureClass};
pub use file_event::{FileEvent, FileOutcome};
pub use file_signature::FileSigner;
pub use ingestion::{IngestError, IngestOptions, ingest, remove_folder};
pub use path_text::{path_to_text, text_to_path};
pub use pipeline::{
    BackgroundTimes, PipelineReport, PipelineTimes, QueueDepth, StageReport, StageTimes,
};
pub use progress::Progress;
pub use setting_changes::LANGUAGES;
pub use store::{
    DATABASE_NAME, DocumentVisitor, INDEX_NAME, InsertError, RUNS_NAME, STAMP_INDEX_NAME,
    StampVisitor, Store, StoreCollection, StoreError,
};
pub use stored_document::{FailureDocument, FileDocument, SkippedDocument};
pub use summary::IngestSummary;
pub use walk::{FileEntry, FileStamp, WalkFailure, WalkOptions, WalkResult, WalkRoot, walk};
pub use watch::{WatchControl, WatchOptions, watch};
pub use worker::{Worker, WorkerConfig};
pub use worker_loop::{FileReader, FileRequest, ReadError, run_worker, run_worker_with};
pub use worker_pool::{EventSink, ReadTask, WorkerPool};
pub use writers::WriterOptions;
