//! Folders to documents.
//!
//! For: finding the files below some folders ([`walk`]), telling which of them changed since the
//! last time ([`changes()`]), turning them into text in processes that may die ([`WorkerPool`]), and
//! the shape of the documents that come of it ([`FileDocument`], [`FailureDocument`]); and all of it
//! together: [`run()`] makes the documents of a [`Store`] follow the files. Not for: reading any
//! format (that is `windrow-extract`), or searching.
//!
//! A binary that uses the pool has a hidden command that calls [`serve`] with its standard input
//! and output, and nothing else:
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use windrow_ingest::{Event, WalkOptions, WorkerConfig, WorkerPool, serve, walk};
//!
//! if std::env::args().nth(1).as_deref() == Some("worker") {
//!     return serve(std::io::stdin().lock(), std::io::stdout().lock());
//! }
//! let walked = walk(&["/usr/share/doc".into()], &WalkOptions::default());
//! let pool = WorkerPool::new(WorkerConfig::this_program(&["worker"])?);
//! pool.run(&walked.files, &|_worker, file, event| {
//!     if let Event::Document(document) = event {
//!         println!("{}: {} bytes", file.path.display(), document.text.len());
//!     }
//!     ControlFlow::Continue(())
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`WorkerPool`] starts as many processes as there are cores. Each has a limit of memory, and each
//! file a limit of time; a file that breaks them, or the library that reads it, is a [`Failure`]
//! with its reason, and a new process takes the next file.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

// In reading order: files, what changed, their text, documents, where they go, the whole run.
mod path_text;
mod walk;

mod changes;

mod failure;
mod pool;
mod protocol;
mod serve;
mod worker;

mod document;
mod encode;

mod engine_store;
mod store;

mod progress;
mod writer;

mod run;

pub use changes::{Changes, changes};
pub use document::{FailureDocument, FileDocument};
pub use engine_store::EngineStore;
pub use failure::{Failure, FailureClass};
pub use path_text::{path_to_text, text_to_path};
pub use pool::{Sink, WorkerPool};
pub use progress::Progress;
pub use run::{RunError, RunOptions, Summary, run};
pub use serve::{Convert, ReadError, serve, serve_with};
pub use store::{DATABASE, Place, Refusal, STAMP_INDEX, Store, StoreError, Visit};
pub use walk::{Candidate, Identity, Stamp, WalkFailure, WalkOptions, Walked, walk};
pub use worker::{End, Event, Worker, WorkerConfig};
