//! How an engine uses the machine.

use std::sync::Arc;
use std::time::Duration;

use windrow_storage::{Compression, RunsOptions, StorageOptions};

use crate::building::pool::BuildPriority;
use crate::error::Error;

/// How an engine uses the machine.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Bytes of memory that caches, tails and builds share.
    pub memory: u64,
    /// Bytes of memory of tails, at which a fold begins where much is stored: see
    /// `Core::fold_from_bytes`.
    pub tail_bytes: u64,
    /// Bytes of memory for all index builds together.
    pub build_bytes: u64,
    pub build_priority: BuildPriority,
    /// Threads for folds, merges and builds.
    pub threads: usize,
    /// How documents are compressed.
    pub compression: Compression,
    /// The longest that a commit stays in a tail alone.
    pub fold_interval: Duration,
    /// How old a snapshot may become before reading it fails.
    pub snapshot_age_max: Duration,
    /// Bytes of log records that an index may lag behind before its entries are made unasked.
    pub entry_backlog_bytes: u64,
    /// How many bytes of the log are kept for change streams, besides what is not folded yet.
    pub history_bytes: u64,
    /// Called with what goes wrong in the background.
    pub on_problem: fn(&str, &Error),
    pub storage: StorageOptions,
    pub background: Background,
    /// Fills a buffer with random bytes.
    pub random: fn(&mut [u8]),
    pub at_block: AtBlock,
}

/// Who does what is not done by those who read and write: folds, merges, entries of indexes, builds
/// that a crash interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Background {
    /// Threads of the engine's own.
    Threads,
    /// Nobody but the caller, by [`Engine::work`](crate::Engine::work), at a time of his choice.
    Caller,
}

/// Called by folds, merges and builds after each block that they write: what happens meanwhile can
/// happen there.
#[derive(Clone)]
pub struct AtBlock(pub Arc<dyn Fn() + Send + Sync>);

impl std::fmt::Debug for AtBlock {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("AtBlock")
    }
}

impl EngineOptions {
    /// Shares of so many bytes of memory: half for the cache, a sixteenth for tails until they are
    /// folded, 200 MB or a quarter for builds.
    pub fn with_memory(memory: u64) -> EngineOptions {
        EngineOptions {
            memory,
            tail_bytes: (memory / 16).clamp(1 << 20, 256 << 20),
            build_bytes: (memory / 4).clamp(16 << 20, 200 << 20),
            build_priority: BuildPriority::default(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            compression: Compression::Lz4,
            fold_interval: Duration::from_secs(60),
            snapshot_age_max: Duration::from_secs(600),
            // The entries of a text take some twenty times its memory until they are in order.
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
            // Without random bytes a UUID is zero: unhelpful, and harmless.
            random: |bytes| _ = getrandom::fill(bytes),
            at_block: AtBlock(Arc::new(|| ())),
        }
    }
}
