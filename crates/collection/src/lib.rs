//! Collections: documents, `_id`s and indexes as maps over one log; writing, reading, folding,
//! building indexes.
//!
//! - An [`Engine`] is an open data folder, a [`Collection`] one of its collections.
//! - [`Collection::insert`] and [`Collection::batch`] write; a [`Reader`] is a snapshot.
//! - [`Collection::create_indexes`] builds indexes while others read and write.
//!
//! Not here: queries, plans, and the protocol.
//!
//! Reading order, from the ground: `done`, `record`, `retries`, `event_detail`, `rows`, `told`, `scans`, `names`, `recent`, `probe`, `index`, `generation`, `state`, `read`, `holds`, `kept`, `core`,
//! `collection`, `past`, `collections`, `creating`, `transaction`, `write`, `folding`, `letting_go`, `merging`, `building`, `recovery`,
//! `background`, `repair`, `engine`, `changing`, `doubles`, `views`, `moment`, `events`, `validate`.
#![forbid(unsafe_code)]

mod admission;
mod alter;
mod background;
mod building;
mod cap;
mod claims;
mod cluster_snapshot;
mod collection;
mod collections;
mod compression;
mod core;
mod ddl_event;
mod duplicate_keys;
mod engine;
mod error;
mod event_detail;
mod events;
mod folding;
mod generation;
mod ids;
mod index;
mod key_probe;
mod key_set;
mod lock_order;
mod merging;
mod name_history;
mod namespace;
mod new_collection;
mod options;
mod panic_boundary;
mod pinned_snapshots;
mod read;
mod recent_key_filter;
mod record;
mod recovery;
mod repair;
mod retired_names;
mod retries;
mod rows;
mod rules;
mod scans;
mod state;
mod statement_result;
mod statistics;
mod transaction;
mod transaction_locks;
mod validate;
mod version_gc;
mod views;
mod write;

pub use alter::{DocumentChange, Modification, Renaming};
pub use building::pool::BuildPriority;
pub use building::{BuildControl, BuildPhase, CreatedIndexes};
pub use cap::Cap;
pub use cluster_snapshot::ClusterSnapshot;
pub use collection::Collection;
pub use compression::wanted as wanted_compression;
pub use ddl_event::DdlKind;
pub use engine::{Engine, Statistics, Work};
pub use error::{DuplicateKey, Error, FailedValidation};
pub use events::{Event, EventKind, Events, Step};
pub use ids::{CollectionId, MapId};
pub use index::{Index, Progress};
pub use namespace::{Namespace, VIEWS};
pub use options::{AtBlock, Background, EngineOptions};
pub use pinned_snapshots::PINNED_SNAPSHOTS_MAX;
pub use read::{EntryCursor, Reader, ReaderIndex, RecordCursor};
pub use record::statements::{RetainedImage, Statements};
pub use record::transaction::Origin;
pub use retries::{LastOperation, RecordedResult};
pub use scans::Scans;
pub use statement_result::{Image, StatementResult};
pub use statistics::{CollectionStatistics, IndexStatistics};
pub use transaction::Transaction;
pub use transaction_locks::{DdlGuard, Interrupt};
pub use validate::{Checks, DocumentFindings, IndexReport, Validation, WrongEntries, WrongEntry};
pub use views::View;
pub use windrow_fold::postings::PostingBatch;
pub use windrow_fold::{Direction, KeyLists, PostingList, RecordId};
pub use windrow_storage::{ClusterTime, Position, StorageError};
pub use write::{Batch, Change, DocumentValidation, Inserted, Outcome, WriteOptions};

/// The largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
