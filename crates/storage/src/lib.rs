//! Everything that Windrow keeps: a log, runs and a catalog in one data folder.
//!
//! - [`Log`]: append a record, sync, read from a position, drop before a position.
//! - [`Runs`]: write a file of blocks once, read a block through one cache, drop the file.
//! - [`Catalog`]: small rows in memory, changed by compare-and-set through the log.
//!
//! What a record, a block or a row *means* is not this crate's business: it carries bytes. No
//! other crate touches database files, and this one touches them through [`Disk`] only, which is
//! [`RealDisk`] in the product and [`MemoryDisk`] in tests and simulations.
//!
//! ```
//! use std::sync::Arc;
//! use windrow_storage::{MemoryDisk, Storage, StorageOptions};
//!
//! let storage = Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default())?;
//! let position = storage.log.append(&[b"a record"], |_position| {})?;
//! storage.log.sync(position)?;
//! # Ok::<(), windrow_storage::StorageError>(())
//! ```
//!
//! The bytes are drawn in docs/format.md.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod error;

mod disk;

mod checksum;
mod fields;
mod folder;
mod trial;

mod storage;

mod log;

mod runs;

mod catalog;

pub use catalog::{
    Catalog, CatalogError, CatalogOptions, ChangedRow, Expectation, ROW_BYTES_MAX, RowChange,
};
pub use disk::memory::{Crash, MemoryDisk};
pub use disk::real::RealDisk;
pub use disk::{Disk, DiskFile, DiskLock, LockOutcome};
pub use error::StorageError;
pub use log::{
    ClusterTime, Content, Follower, Log, LogOptions, LogReader, LogRecord, PAYLOAD_BYTES_MAX,
    Position, Written,
};
pub use runs::{
    Block, BlockAddress, BlockEncoder, Caching, Compression, EncodedBlock, RunHandle, RunId,
    RunWriter, Runs, RunsOptions, encode_block, encode_parts,
};
pub use storage::{Storage, StorageOptions};
