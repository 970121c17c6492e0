//! Statistics of an engine.

use std::time::Duration;

use windrow_storage::{Position, StoreStatistics};

/// Statistics of an engine. Sizes are in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    /// The memory limit.
    pub memory: u64,
    /// The memory of all tails.
    pub tail_bytes: u64,
    /// The memory of cached blocks.
    pub cache_bytes: u64,
    /// The number of open snapshots.
    pub open_snapshots: u64,
    /// The number of folds since the start.
    pub folds: u64,
    /// The number of merges since the start.
    pub merges: u64,
    /// The number of writes that were delayed because background work was behind.
    pub delayed_writes: u64,
    /// The shares of index builds.
    pub shares: ShareCounts,
    /// The requests to the object store. `None` if the database is not in one.
    pub store: Option<StoreStatistics>,
    /// The total time of creating index entries in the background.
    pub entry_time: Duration,
    /// The total time of folds.
    pub fold_time: Duration,
    /// The total time of merges.
    pub merge_time: Duration,
    /// The total delay of writers.
    pub delay_time: Duration,
    /// The newest position of the log.
    pub written: Position,
    /// The newest durable position of the log.
    pub synced: Position,
}

/// The shares of index builds since the start, of a database in an object store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShareCounts {
    /// The followers that offer to build shares now.
    pub builders: u64,
    /// Those that this server has given to followers.
    pub given: u64,
    /// Those whose sections were added to the indexes.
    pub adopted: u64,
    /// Those that this server has taken back.
    pub taken_back: u64,
    /// Those that this server has built for the primary.
    pub built: u64,
}
