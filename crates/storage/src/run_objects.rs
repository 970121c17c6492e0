//! Runs as objects: `runs/{id, 20 digits}`. A run is uploaded before the catalog refers to it.
//! Other servers read parts of it through a cache on their local disk. The ids are unique, because
//! they begin with the epoch of the server that wrote the run.

pub(crate) mod chunk_cache;
mod remote_file;
mod shares;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::bucket::counted::{CountedBucket, StoreRequests};
use crate::bucket::{Bucket, RetryPolicy, retry};
use crate::disk::DiskFile;
use crate::error::StorageError;
use crate::log::Log;
use crate::position::Position;
use crate::run_id::RunId;
use crate::store_statistics::StoreCache;

use chunk_cache::{CHUNK_BYTES, ChunkCache, ChunkId};
use remote_file::RemoteFile;
use shares::Shares;

pub(crate) const FOLDER: &str = "runs";
/// The number of bits of a run id below the epoch.
const COUNTER_BITS: u32 = 36;

pub(crate) fn name(run: RunId) -> String {
    format!("{FOLDER}/{:020}", run.0)
}

/// Returns the id in the name of a run object without its folder.
pub(crate) fn run_from_name(name: &str) -> Option<RunId> {
    Some(RunId(name.parse().ok()?))
}

/// Returns the first id of the runs that the server of an epoch writes.
pub(crate) fn first_run(epoch: u64) -> RunId {
    RunId(epoch << COUNTER_BITS | 1)
}

/// Returns the epoch in which a run was written.
pub(crate) fn epoch_of(run: RunId) -> u64 {
    run.0 >> COUNTER_BITS
}

/// The runs of a data folder in the object store.
pub(crate) struct RunObjects {
    bucket: Arc<dyn Bucket>,
    /// The same object store, below the encryption.
    counted: Arc<CountedBucket>,
    cache: ChunkCache,
    /// The largest size of runs and parts of runs on the local disk, in bytes.
    cache_bytes_max: u64,
    /// The size of the runs that are on the local disk as a whole, in bytes.
    local_bytes: AtomicU64,
    retry_policy: Arc<dyn RetryPolicy + Send + Sync>,
    /// Runs that the catalog does not refer to any more.
    removed: Mutex<Vec<RemovedRun>>,
    /// True if runs can be uploaded and removed: the server has taken over the log.
    writable: AtomicBool,
    /// The log of the catalog. Weak, because the lock of the data folder ends with the log.
    log: OnceLock<Weak<Log>>,
    /// Shares of index builds.
    shares: Shares,
}

/// A run that the catalog does not refer to any more.
struct RemovedRun {
    run: RunId,
    /// The newest position when it was removed.
    position: Position,
    since: Instant,
}

impl RunObjects {
    pub fn new(
        bucket: Arc<dyn Bucket>,
        counted: Arc<CountedBucket>,
        cache: ChunkCache,
        retry_policy: Arc<dyn RetryPolicy + Send + Sync>,
    ) -> Self {
        Self {
            bucket,
            counted,
            cache_bytes_max: cache.bytes_max(),
            local_bytes: AtomicU64::new(0),
            cache,
            retry_policy,
            removed: Mutex::default(),
            writable: AtomicBool::new(false),
            log: OnceLock::new(),
            shares: Shares::default(),
        }
    }

    /// Sets the log whose newest position dates the removal of a run.
    pub fn set_log(&self, log: &Arc<Log>) {
        let is_first = self.log.set(Arc::downgrade(log)).is_ok();
        debug_assert!(is_first, "a data folder has one log");
    }

    /// Allows uploads.
    pub fn make_writable(&self) {
        self.writable.store(true, Ordering::Release);
    }

    /// Uploads a finished run. Returns after other servers can read it.
    pub fn upload(&self, run: RunId, file: &dyn DiskFile) -> Result<(), StorageError> {
        let is_share = self.shares.builds(run);
        if !is_share && !self.writable.load(Ordering::Acquire) {
            let by = String::new();
            return Err(StorageError::Fenced { by, epoch: 0 });
        }
        let retry_policy = shares::WhileBuilt {
            objects: self,
            share: is_share.then_some(run),
        };
        retry(&retry_policy, || self.bucket.put_file(&name(run), file))
    }

    /// Returns the size of a run in bytes, or `None` if there is no such object.
    pub fn size(&self, run: RunId) -> Result<Option<u64>, StorageError> {
        retry(self.retry_policy.as_ref(), || self.bucket.size(&name(run)))
    }

    /// Returns a run of `bytes` bytes, for reading.
    pub fn file(self: &Arc<Self>, run: RunId, bytes: u64) -> Arc<dyn DiskFile> {
        Arc::new(RemoteFile::new(self.clone(), run, bytes))
    }

    /// Returns the largest size of the runs that are on the local disk as a whole, in bytes. The
    /// rest of the cache is for parts of others.
    pub fn local_bytes_max(&self) -> u64 {
        self.cache_bytes_max / 4 * 3
    }

    /// Gives the parts of runs the room that whole runs of `bytes` bytes leave.
    pub fn set_local_bytes(&self, bytes: u64) {
        self.local_bytes.store(bytes, Ordering::Relaxed);
        let rest = self.cache_bytes_max.saturating_sub(bytes);
        self.cache.set_bytes_max(rest.max(self.cache_bytes_max / 4));
    }

    /// Removes the parts of a run with the bytes of a range from the local disk.
    pub fn discard(&self, run: RunId, range: Range<u64>) {
        for chunk in range.start / CHUNK_BYTES..=range.end / CHUNK_BYTES {
            self.cache.remove(ChunkId { run, chunk });
        }
    }

    /// Records that the catalog does not refer to a run any more.
    pub fn remove(&self, run: RunId) {
        self.cache.forget(run);
        if !self.writable.load(Ordering::Acquire) {
            return;
        }
        // Without the log the process ends. The next primary deletes the object.
        if let Some(log) = self.log.get().and_then(Weak::upgrade) {
            self.removed.lock().push(RemovedRun {
                run,
                position: log.written(),
                since: Instant::now(),
            });
        }
    }

    /// Deletes the objects of runs that were removed at or before `unneeded`: the shared log says
    /// so, and the other servers have read it. Those that were removed within `retention` remain.
    pub fn delete_removed(
        &self,
        unneeded: Position,
        retention: Duration,
    ) -> Result<(), StorageError> {
        let due: Vec<RunId> = {
            let mut removed = self.removed.lock();
            let is_due =
                |it: &mut RemovedRun| it.position <= unneeded && it.since.elapsed() >= retention;
            removed.extract_if(.., is_due).map(|it| it.run).collect()
        };
        for run in due {
            retry(self.retry_policy.as_ref(), || {
                self.bucket.delete(&name(run))
            })?;
        }
        Ok(())
    }

    /// Deletes the objects of earlier epochs that are not in `runs`: the server that wrote them was
    /// fenced before the catalog could refer to them.
    pub fn delete_orphans(&self, epoch: u64, runs: &HashSet<RunId>) -> Result<(), StorageError> {
        let names = retry(self.retry_policy.as_ref(), || self.bucket.list(FOLDER, ""))?;
        let found = names.iter().filter_map(|name| run_from_name(name));
        for run in found.filter(|run| epoch_of(*run) < epoch && !runs.contains(run)) {
            retry(self.retry_policy.as_ref(), || {
                self.bucket.delete(&name(run))
            })?;
        }
        self.delete_earlier_reports(epoch)
    }

    /// Returns the requests of this server to the object store.
    pub fn requests(&self) -> StoreRequests {
        self.counted.requests()
    }

    /// Returns what is known of the runs and parts of runs on the local disk.
    pub fn cache_statistics(&self) -> StoreCache {
        let reads = self.cache.reads();
        StoreCache {
            bytes: self.cache.bytes() + self.local_bytes.load(Ordering::Relaxed),
            bytes_max: self.cache_bytes_max,
            hits: reads.hits,
            misses: reads.misses,
        }
    }
}
