//! The storage engine's collections: documents, indexes and transactions on one log.
//!
//! A collection consists of maps: its documents by record id, and the entries of each index. Each
//! commit is a log record. It becomes visible in the tails in memory at once; folds turn the tails
//! into sections in run files, see [`windrow_fold`]. This crate creates, writes, reads, folds,
//! merges, recovers, validates and repairs these maps, and keeps unique keys unique.
//!
//! This crate does not know queries, plans, update operators or the wire protocol. Documents arrive
//! here in their final form.
//!
//! # Main types
//!
//! - [`Engine`] is an open database directory. It creates and drops collections.
//! - [`Collection`] writes with [`Collection::insert`] and [`Collection::batch`], and builds
//!   indexes with [`Collection::create_indexes`].
//! - [`Reader`] is a collection at a snapshot. [`ClusterSnapshot`] is all collections at a snapshot
//!   that clients know by its cluster time.
//! - [`Transaction`] groups writes to several collections.
//! - [`Events`] reads the changes of collections from the log, for change streams.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use windrow_collection::{
//!     Change, Direction, Engine, EngineOptions, Error, InsertOrder, Namespace, Outcome,
//! };
//! use windrow_document::{DocumentBuf, ValueRef};
//! use windrow_storage::MemoryDisk;
//!
//! // `RealDisk` opens a directory instead.
//! let disk = Arc::new(MemoryDisk::new());
//! let engine = Engine::open(disk, EngineOptions::with_memory(64 << 20))?;
//! let birds = engine.collection_or_create(&Namespace::new("zoo", "birds")?)?;
//!
//! // Documents are consecutive BSON bytes, with an `_id` each.
//! let mut heron = DocumentBuf::new();
//! heron.push("_id", 1);
//! heron.push("legs", 2);
//! birds.insert(heron.as_bytes().to_vec().into(), InsertOrder::Ordered)?;
//!
//! // A reader sees what was written before.
//! let reader = birds.reader()?;
//! let (id, document) = reader.find(ValueRef::Int32(1))?.expect("it was inserted");
//! assert_eq!(&document[..], heron.as_bytes());
//!
//! // A batch locks the document, and decides on its newest version.
//! let mut batch = birds.batch();
//! let outcome = batch.change(id, |_| Ok::<_, Error>(Change::Delete))?;
//! batch.commit()?;
//! assert!(matches!(outcome, Outcome::Deleted));
//! assert!(!birds.reader()?.records(Direction::Forward).next()?);
//!
//! // The snapshot of the first reader does not change.
//! assert!(reader.records(Direction::Forward).next()?);
//! engine.close()?;
//! # Ok::<(), Error>(())
//! ```
//!
//! # Modules in reading order
//!
//! 1. Formats: `ids`, `record` (the log record of a commit), `statement_result`, `event_detail`,
//!    `catalog` (rows, names and events).
//! 2. In memory: `index`, `generation` (the tails of a collection), `state`, `collection`, `core`,
//!    `collections`, `options`.
//! 3. Reading: `read`, `pinned_snapshots`, `cluster_snapshot`, `name_history`.
//! 4. Writing: `write`, `rules`, `cap`, `admission`, `lock_order`, `unique_keys`, `retries`
//!    (retryable writes).
//! 5. Transactions: `transaction`, `transaction_locks`.
//! 6. Work in the background: `maintenance` (folds, merges and repair), `background` (its threads),
//!    `building` (index builds).
//! 7. Opening and changing: `engine`, `recovery`, `new_collection`, `alter`, `dropped_collection`,
//!    `views`, `compression`.
//! 8. Checking: `validate`, `duplicate_keys`, `rollback`.
//! 9. Observing: `events` (change streams), `statistics`, `engine_statistics`, `scans`.
//! 10. Databases in an object store: `engine_applier` applies the log of another server, `follower`
//!     opens the database and takes it over.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod admission;
mod alter;
mod background;
mod building;
mod cap;
mod catalog;
mod cluster_snapshot;
mod collection;
mod collections;
mod compression;
mod core;
mod dropped_collection;
mod duplicate_keys;
mod engine;
mod engine_applier;
mod engine_statistics;
mod error;
mod event_detail;
mod events;
mod follower;
mod generation;
mod ids;
mod index;
mod lock_order;
mod maintenance;
mod name_history;
mod new_collection;
mod options;
mod panic_boundary;
mod pinned_snapshots;
mod read;
mod record;
mod recovery;
mod retries;
mod rollback;
mod rules;
mod scans;
mod state;
mod statement_result;
mod statistics;
mod transaction;
mod transaction_locks;
mod unique_keys;
mod validate;
mod views;
mod write;

pub use alter::{DocumentChange, IndexModification, Modification, ModificationEvent, Renaming};
pub use building::pool::BuildPriority;
pub use building::{BuildControl, BuildPhase, CreatedIndexes, missing_indexes};
pub use cap::Cap;
pub use catalog::ddl_event::DdlKind;
pub use catalog::namespace::{Namespace, VIEWS};
pub use catalog::rows::run_of as run_of_row;
pub use cluster_snapshot::ClusterSnapshot;
pub use collection::Collection;
pub use compression::from_options as compression_from_options;
pub use engine::{Engine, FollowingEngine, Work};
pub use engine_applier::EngineApplier;
pub use engine_statistics::{ShareCounts, Statistics};
pub use error::{DuplicateKey, Error, FailedValidation};
pub use events::{Event, EventKind, Events, Step};
pub use follower::{Follower, OpenedDatabase, OpeningPolicy, Succession, open_shared};

pub use ids::{CollectionId, CollectionUuid, MapId};
pub use index::{Index, Progress, ShareProgress};
pub use options::{AtBlock, Background, EngineOptions, MergeSizes};
pub use pinned_snapshots::PINNED_SNAPSHOTS_MAX;
pub use read::{EntryCursor, Reader, ReaderIndex, RecordCursor, SearchIndex};
pub use record::statements::{RetainedImage, Statements};
pub use record::transaction::{Origin, SessionKey};
pub use retries::{LastOperation, RecordedResult};
pub use rollback::write_rollback_files;
pub use scans::Scans;
pub use statement_result::{Image, StatementResult};
pub use statistics::{CollectionStatistics, IndexStatistics};
pub use transaction::Transaction;
pub use transaction_locks::{DdlGuard, WaitControl};
// Functions of this crate take an interrupt.
pub use validate::{Checks, DocumentFindings, IndexReport, Validation, WrongEntries, WrongEntry};
pub use views::View;
pub use windrow_fold::postings::PostingBatch;
pub use windrow_fold::{Direction, KeyLists, PostingList, RecordId};
pub use windrow_interrupt::{Interrupt, Interrupted, Uninterrupted};
pub use windrow_storage::{
    ClusterTime, Confirmation, MemberState, Position, SharedState, StorageError, StoreCache,
    StoreRequests, StoreStatistics,
};
pub use write::{
    Batch, Change, DocumentValidation, InsertError, InsertOrder, InsertResult, Outcome,
    WriteOptions,
};

/// The largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
