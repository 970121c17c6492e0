//! Runs as objects: `runs/{id, 20 digits}`. A run is uploaded before the catalog refers to it. Other
//! servers read parts of it through a cache on their local disk. The ids are unique, because they
//! begin with the epoch of the server that wrote the run.

pub(crate) mod chunk_cache;
mod shares;

use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::bucket::{Bucket, Patience, retry};
use crate::disk::DiskFile;
use crate::error::StorageError;
use crate::log::{Log, Position};
use crate::run_id::RunId;

use chunk_cache::{CHUNK_BYTES, ChunkCache, ChunkId};
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
    cache: ChunkCache,
    patience: Arc<dyn Patience + Send + Sync>,
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
        cache: ChunkCache,
        patience: Arc<dyn Patience + Send + Sync>,
    ) -> Self {
        Self {
            bucket,
            cache,
            patience,
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
        let patience = shares::WhileBuilt {
            objects: self,
            share: is_share.then_some(run),
        };
        retry(&patience, || self.bucket.put_file(&name(run), file))
    }

    /// Opens a run. Returns `None` if there is no such object.
    pub fn open(self: &Arc<Self>, run: RunId) -> Result<Option<Arc<dyn DiskFile>>, StorageError> {
        let size = retry(self.patience.as_ref(), || self.bucket.size(&name(run)))?;
        let open = |bytes| {
            Arc::new(RemoteFile {
                objects: self.clone(),
                run,
                bytes,
            }) as Arc<dyn DiskFile>
        };
        Ok(size.map(open))
    }

    /// Records that the catalog does not refer to a run any more.
    pub fn remove(&self, run: RunId, bytes: u64) {
        self.cache.forget(run, bytes);
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

    /// Deletes the objects of runs that were removed at or before `unneeded`: the shared log says so,
    /// and the other servers have read it. Those that were removed within `retention` remain.
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
            retry(self.patience.as_ref(), || self.bucket.delete(&name(run)))?;
        }
        Ok(())
    }

    /// Deletes the objects of earlier epochs that are not in `runs`: the server that wrote them was
    /// fenced before the catalog could refer to them.
    pub fn delete_orphans(&self, epoch: u64, runs: &HashSet<RunId>) -> Result<(), StorageError> {
        let names = retry(self.patience.as_ref(), || self.bucket.list(FOLDER, ""))?;
        let found = names.iter().filter_map(|name| run_from_name(name));
        for run in found.filter(|run| epoch_of(*run) < epoch && !runs.contains(run)) {
            retry(self.patience.as_ref(), || self.bucket.delete(&name(run)))?;
        }
        self.delete_earlier_reports(epoch)
    }

    /// Returns the size of the cache on the local disk in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.cache.bytes()
    }
}

/// A run object, for reading.
struct RemoteFile {
    objects: Arc<RunObjects>,
    run: RunId,
    bytes: u64,
}

impl RemoteFile {
    /// Reads the chunks from `first` to `last` from the object store in one request.
    fn load(&self, first: u64, last: u64) -> io::Result<Bytes> {
        let range = first * CHUNK_BYTES..((last + 1) * CHUNK_BYTES).min(self.bytes);
        let objects = &self.objects;
        let loaded = retry(objects.patience.as_ref(), || {
            objects.bucket.get_range(&name(self.run), range.clone())
        });
        let missing = || {
            let place = objects.bucket.place(&name(self.run));
            io::Error::other(StorageError::RunDeleted { place })
        };
        let bytes = loaded.map_err(io::Error::other)?.ok_or_else(missing)?;
        for (index, content) in bytes.chunks(CHUNK_BYTES as usize).enumerate() {
            let id = ChunkId {
                run: self.run,
                chunk: first + index as u64,
            };
            objects.cache.put(id, content);
        }
        Ok(bytes)
    }
}

fn copy_part(from: &[u8], from_offset: u64, offset: u64, to: &mut [u8]) {
    // The part of `to`, which begins at `offset`, that `from` covers.
    let start = from_offset.max(offset);
    let end = (from_offset + from.len() as u64).min(offset + to.len() as u64);
    if start >= end {
        return;
    }
    let source = from.get((start - from_offset) as usize..(end - from_offset) as usize);
    let target = to.get_mut((start - offset) as usize..(end - offset) as usize);
    if let (Some(source), Some(target)) = (source, target) {
        target.copy_from_slice(source);
    }
}

impl DiskFile for RemoteFile {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let end = self.bytes.min(offset.saturating_add(bytes.len() as u64));
        if offset >= end {
            return Ok(0);
        }
        let (first, last) = (offset / CHUNK_BYTES, (end - 1) / CHUNK_BYTES);
        let mut chunk = first;
        while chunk <= last {
            let id = |chunk| ChunkId {
                run: self.run,
                chunk,
            };
            if let Some(content) = self.objects.cache.get(id(chunk)) {
                copy_part(&content, chunk * CHUNK_BYTES, offset, bytes);
                chunk += 1;
                continue;
            }
            let is_missing = |at: &u64| !self.objects.cache.has(id(*at));
            let until = (chunk + 1..=last).take_while(is_missing).last();
            let until = until.unwrap_or(chunk);
            let content = self.load(chunk, until)?;
            copy_part(&content, chunk * CHUNK_BYTES, offset, bytes);
            chunk = until + 1;
        }
        Ok((end - offset) as usize)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(read_only())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(read_only())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(read_only())
    }
}

fn read_only() -> io::Error {
    io::Error::new(
        io::ErrorKind::ReadOnlyFilesystem,
        "objects of runs are never changed",
    )
}
