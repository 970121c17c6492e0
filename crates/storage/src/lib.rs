//! The durable storage of Windrow: a log, runs and a catalog in one data folder.
//!
//! - [`Storage`] opens a data folder and locks it against other processes.
//! - [`Log`] appends records, syncs them, and reads them from a [`Position`]. A [`Follower`] reads
//!   the log while it grows. A [`LogReader`] reads it at a start.
//! - [`Runs`] writes files of checksummed blocks once, reads blocks through one cache, and deletes
//!   files that are no longer used. A [`BlockAddress`] names a block.
//! - [`Catalog`] holds small rows in memory. A change is a compare-and-set of several rows, and is
//!   one record of the log.
//! - A [`MasterKey`] opens an encrypted data folder.
//! - [`Disk`] is the interface to the file system: [`RealDisk`] in the product, [`MemoryDisk`] with
//!   simulated crashes and failures in tests. No other crate touches database files, and this crate
//!   touches them through [`Disk`] only.
//!
//! Not here: the meaning of records, blocks and rows. This crate stores bytes.
//!
//! The file format is drawn in docs/format.md.
//!
//! ```
//! use std::sync::Arc;
//! use windrow_storage::{MemoryDisk, Position, Storage, StorageOptions};
//!
//! let storage = Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default())?;
//! let position = storage.log.append(&[b"a record"], |_position| {})?;
//! storage.log.sync(position)?;
//!
//! let record = storage.log.read_from(Position(1)).next().unwrap()?;
//! assert_eq!(record.payload, b"a record");
//! # Ok::<(), windrow_storage::StorageError>(())
//! ```
//!
//! Reading order: `error`, `disk`, `checksum`, `fields`, `compression_trial`, `encryption`,
//! `folder`, `key_rotation`, `log`, `runs`, `catalog`, `storage`.

#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod error;
mod position;

mod compared_log;
mod disk;

mod bucket;

mod checksum;
mod compression_trial;
mod encryption;
mod fields;
mod folder;
mod key_rotation;

mod local_state;
mod run_id;

mod log;

mod run_objects;

mod shared_log;

mod runs;

mod catalog;

mod store_statistics;

mod storage;

mod inspection;
mod replica;

pub use bucket::counted::StoreRequests;
pub use bucket::memory::{MemoryBucket, Outcome, RequestFaults};
#[cfg(feature = "object-store")]
pub use bucket::remote::RemoteBucket;
pub use bucket::{Bucket, Creation, RetryPolicy, retry};
pub use catalog::{
    Catalog, CatalogError, CatalogOptions, ChangedRow, Expectation, ROW_BYTES_MAX, RowChange,
};
pub use disk::memory::{Crash, MemoryDisk};
pub use disk::real::RealDisk;
pub use disk::{Disk, DiskFile, DiskLock, LockOutcome};
pub use encryption::{KEY_BYTES, MasterKey, TemporaryReader, TemporaryWriter};

pub use error::StorageError;
pub use inspection::{StoreReport, collect_garbage, inspect, unlock, unseal};
pub use key_rotation::rotate_keys;
pub use log::{
    ClusterTime, Content, FollowedRecord, Follower, Log, LogOptions, LogReader, LogRecord,
    PAYLOAD_BYTES_MAX,
};
pub use position::Position;
pub use replica::{Applier, FollowOutcome, Primary, Promotion, Publish, Replica, StaleReason};
pub use runs::{
    Block, BlockAddress, BlockEncoder, Caching, Compression, EncodedBlock, RunHandle, RunId,
    RunWriter, Runs, RunsOptions, encode_block, encode_parts,
};
pub use shared_log::members::{Builder, MemberState};
pub use shared_log::uploader::{ClusterOptions, Confirmation, Uploads};
pub use storage::{SharedState, Storage, StorageOptions};
pub use store_statistics::{StoreCache, StoreStatistics};
