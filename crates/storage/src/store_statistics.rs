//! [`StoreStatistics`]: what a server does with the object store of its database.

use std::time::Duration;

use crate::bucket::counted::StoreRequests;
use crate::position::Position;

/// The use of the object store by a server since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatistics {
    /// The requests.
    pub requests: StoreRequests,
    /// The runs and parts of runs on the local disk.
    pub cache: StoreCache,
    /// On a primary: all records up to this position are in the object store.
    pub uploaded: Option<Position>,
    /// On a follower: how old the newest record was when this server applied it, by the clocks of
    /// both servers. `None` if it has applied none.
    pub delay: Option<Duration>,
}

/// The runs and parts of runs on the local disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreCache {
    /// Their size in bytes.
    pub bytes: u64,
    /// The largest size in bytes.
    pub bytes_max: u64,
    /// The reads of runs that are not on the local disk as a whole that found their part there.
    pub hits: u64,
    /// The reads that did not.
    pub misses: u64,
}
