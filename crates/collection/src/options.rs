//! The options of an engine: memory, threads and limits.

use std::sync::Arc;
use std::time::Duration;

pub use windrow_fold::merge::MergeSizes;
use windrow_storage::{Compression, RunsOptions, StorageOptions};

use crate::building::pool::BuildPriority;
use crate::error::Error;

/// The options of an engine: how it uses the machine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Memory in bytes that caches, tails and index builds share.
    pub memory: u64,
    /// Tail memory in bytes at which a fold starts if the engine stores much data. With less data a
    /// fold starts earlier, see `Core::fold_from_bytes`.
    pub tail_bytes: u64,
    /// Memory in bytes for all index builds together.
    pub build_bytes: u64,
    /// The share of the machine that index builds take.
    pub build_priority: BuildPriority,
    /// The number of threads of each fold, merge and build.
    pub threads: usize,
    /// The sizes of sections by which merges are chosen.
    pub merge_sizes: MergeSizes,
    /// The compression of documents in sections.
    pub compression: Compression,
    /// The maximal time that a commit stays in a tail before it is folded.
    pub fold_interval: Duration,
    /// The maximal age of a snapshot. Reads from an older one fail.
    pub snapshot_age_max: Duration,
    /// Log bytes that an index may lag behind before a background thread creates its entries.
    pub entry_backlog_bytes: u64,
    /// Log bytes to keep for change streams, besides those that are not folded yet.
    pub history_bytes: u64,
    /// Called with each error of background work, and the name of the work.
    pub on_problem: fn(&str, &Error),
    /// The options of the storage.
    pub storage: StorageOptions,
    /// The threads that do background work.
    pub background: Background,
    /// Fills a buffer with random bytes.
    pub random: fn(&mut [u8]),
    /// A hook for simulations, called at each block that background work writes.
    pub at_block: AtBlock,
}

/// The threads of background work: of folds, merges, the creation of index entries, and index
/// builds that a crash interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of the engine.
    Threads,
    /// Only the caller, with [`Engine::work`](crate::Engine::work). Simulations use this.
    Caller,
}

/// A hook that folds, merges and builds call after each block they write. Simulations run
/// concurrent work in it.
#[derive(Clone)]
pub struct AtBlock(pub Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for AtBlock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AtBlock")
    }
}

impl EngineOptions {
    /// Divides this much memory, in bytes: half for the cache, a sixteenth for tails (at
    /// most 256 MB), and a quarter for index builds (at most 200 MB).
    pub fn with_memory(memory: u64) -> EngineOptions {
        EngineOptions {
            memory,
            tail_bytes: (memory / 16).clamp(1 << 20, 256 << 20),
            build_bytes: (memory / 4).clamp(16 << 20, 200 << 20),
            build_priority: BuildPriority::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            merge_sizes: MergeSizes::default(),
            compression: Compression::Lz4,
            fold_interval: Duration::from_secs(60),
            snapshot_age_max: Duration::from_secs(600),
            // The entries of a text need about twenty times the text's memory until they are
            // sorted.
            entry_backlog_bytes: (memory / 1024).clamp(64 << 10, 1 << 20),
            history_bytes: 256 << 20,
            on_problem: |what, error| eprintln!("{what}: {error}"),
            storage: StorageOptions {
                runs: RunsOptions {
                    cache_bytes: memory / 2,
                },
                ..StorageOptions::default()
            },
            background: Background::Threads,
            // If the system has no random bytes, UUIDs are zero, which is harmless.
            random: |bytes| _ = getrandom::fill(bytes),
            at_block: AtBlock(Arc::new(|| ())),
        }
    }
}
