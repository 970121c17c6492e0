//! Collections: documents, `_id`s and indexes as maps over one log; writing, reading, folding,
//! building indexes.
//!
//! - An [`Engine`] is an open data folder, a [`Collection`] one of its collections.
//! - [`Collection::insert`] and [`Collection::batch`] write; a [`Reader`] is a snapshot.
//! - [`Collection::create_indexes`] builds indexes while others read and write.
//!
//! Not here: queries, plans, and the protocol.
//!
//! Reading order, from the ground: `done`, `record`, `retries`, `event_detail`, `rows`, `told`, `scans`, `names`, `recent`, `sought`, `index`, `generation`, `state`, `read`, `holds`, `kept`, `core`,
//! `collection`, `past`, `collections`, `creating`, `transaction`, `write`, `folding`, `letting_go`, `merging`, `building`, `recovery`,
//! `background`, `repair`, `engine`, `changing`, `doubles`, `views`, `moment`, `events`, `validate`.
#![forbid(unsafe_code)]

mod admission;
mod background;
mod building;
mod cap;
mod caught;
mod changing;
mod claims;
mod collection;
mod collections;
mod compression;
mod core;
mod creating;
mod done;
mod doubles;
mod engine;
mod error;
mod event_detail;
mod events;
mod folding;
mod generation;
mod holds;
mod ids;
mod index;
mod kept;
mod keys;
mod letting_go;
mod lock_order;
mod merging;
mod moment;
mod names;
mod namespace;
mod options;
mod past;
mod read;
mod recent;
mod record;
mod recovery;
mod repair;
mod retries;
mod rows;
mod rules;
mod scans;
mod sought;
mod state;
mod statistics;
mod told;
mod transaction;
mod validate;
mod views;
mod write;

pub use building::pool::BuildPriority;
pub use building::{BuildControl, BuildPhase, CreatedIndexes};
pub use cap::Cap;
pub use changing::{Become, Modification, Renaming};
pub use collection::Collection;
pub use compression::wanted as wanted_compression;
pub use done::{Done, Image};
pub use engine::{Engine, Statistics, Work};
pub use error::{DuplicateKey, Error, FailedValidation};
pub use events::{Event, EventKind, Events, Step};
pub use holds::{Exclusion, Patience};
pub use ids::{CollectionId, MapId};
pub use index::{Index, Progress};
pub use kept::KEPT_MAX;
pub use moment::Moment;
pub use namespace::{Namespace, VIEWS};
pub use options::{AtBlock, Background, EngineOptions};
pub use read::{EntryCursor, Reader, ReaderIndex, RecordCursor};
pub use record::statements::{Kept, Statements};
pub use record::transaction::Origin;
pub use retries::{Last, Remembered};
pub use scans::Scans;
pub use statistics::{CollectionStatistics, IndexStatistics};
pub use told::Deed;
pub use transaction::Transaction;
pub use validate::{Checks, IndexReport, Noted, Validation, WrongEntries, WrongEntry};
pub use views::View;
pub use windrow_fold::postings::PostingBatch;
pub use windrow_fold::{Direction, KeyLists, PostingList, RecordId};
pub use windrow_storage::{ClusterTime, Position, StorageError};
pub use write::{Batch, Change, DocumentValidation, Inserted, Outcome, Terms};

/// The largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
