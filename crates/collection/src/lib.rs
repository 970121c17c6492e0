//! Collections: documents, `_id`s and indexes as maps over one log; writing, reading, folding,
//! building indexes.
//!
//! - An [`Engine`] is an open data folder, a [`Collection`] one of its collections.
//! - [`Collection::insert`] and [`Collection::batch`] write; a [`Reader`] is a snapshot.
//! - [`Collection::create_indexes`] builds indexes while others read and write.
//!
//! Not here: queries, plans, and the protocol.
//!
//! Reading order: [`engine`], `collection`, `record`, `generation`, `claims`, [`write`](mod@write),
//! [`read`], `changing`, `views`, `capped`, `folding`, `building`, `recovery`, `rows`, `rules`, [`validate`](mod@validate).
#![forbid(unsafe_code)]

mod building;
mod capped;
mod changing;
mod claims;
mod collection;
mod core;
mod engine;
mod error;
mod folding;
mod generation;
mod index;
mod merging;
mod namespace;
mod read;
mod record;
mod recovery;
mod rows;
mod rules;
mod statistics;
mod validate;
mod views;
mod write;

pub use building::{BuildControl, BuildPhase, CreatedIndexes};
pub use capped::Cap;
pub use collection::Collection;
pub use engine::{Engine, EngineOptions, Statistics};
pub use error::{DuplicateKey, Error, FailedValidation};
pub use index::{Index, Progress};
pub use namespace::Namespace;
pub use read::{EntryCursor, Reader, ReaderIndex, RecordCursor, RecordId};
pub use statistics::{CollectionStatistics, IndexStatistics};
pub use validate::{IndexReport, Validation};
pub use views::{VIEWS, View};
pub use windrow_fold::Direction;
pub use windrow_storage::StorageError;
pub use write::{Batch, Change, DocumentValidation, Inserted, Outcome};

/// The largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 16 << 20;
