//! [`RemoteFile`]: a run object that is read in parts, through the cache on the local disk.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::chunk_cache::{CHUNK_BYTES, ChunkId};
use super::{RunObjects, name};
use crate::bucket::retry;
use crate::disk::DiskFile;
use crate::error::StorageError;
use crate::run_id::RunId;

/// The most chunks that a scan reads with one request.
const CHUNKS_AHEAD_MAX: u64 = 8;

/// The scans of one run that are remembered: several threads can each read a part of it.
const SCANS_MAX: usize = 16;

/// A run object, for reading.
pub(super) struct RemoteFile {
    objects: Arc<RunObjects>,
    run: RunId,
    bytes: u64,
    scans: Scans,
}

/// Recognizes scans: requests that each begin where another one has ended. Each of them reads twice
/// as many chunks as the one before.
#[derive(Default)]
struct Scans(Mutex<VecDeque<Scan>>);

/// The newest request of a scan.
struct Scan {
    /// The chunk after those of the request.
    next: u64,
    /// The number of chunks of the request.
    chunks: u64,
}

impl Scans {
    /// Returns the number of chunks that a request for the missing chunk `first` reads.
    fn begin(&self, first: u64) -> u64 {
        let mut scans = self.0.lock();
        let place = scans.iter().position(|scan| scan.next == first);
        let scan = place.and_then(|place| scans.remove(place));
        scan.map_or(1, |scan| (scan.chunks * 2).min(CHUNKS_AHEAD_MAX))
    }

    fn end(&self, next: u64, chunks: u64) {
        let mut scans = self.0.lock();
        if scans.len() == SCANS_MAX {
            scans.pop_front();
        }
        scans.push_back(Scan { next, chunks });
    }
}

impl RemoteFile {
    pub fn new(objects: Arc<RunObjects>, run: RunId, bytes: u64) -> Self {
        Self {
            objects,
            run,
            bytes,
            scans: Scans::default(),
        }
    }

    fn id(&self, chunk: u64) -> ChunkId {
        ChunkId {
            run: self.run,
            chunk,
        }
    }

    /// Returns the last chunk of a request that begins with the missing chunk `first`, for a caller
    /// that needs those up to `last`.
    fn end_of_request(&self, first: u64, last: u64) -> u64 {
        let last = last.max(first + self.scans.begin(first) - 1);
        let end = last.min((self.bytes - 1) / CHUNK_BYTES);
        let is_missing = |chunk: &u64| !self.objects.cache.has(self.id(*chunk));
        let missing = (first + 1..=end).take_while(is_missing);
        missing.last().unwrap_or(first)
    }

    /// Reads the chunks from `first` to `last` from the object store with one request.
    fn load(&self, first: u64, last: u64) -> io::Result<Bytes> {
        let range = first * CHUNK_BYTES..((last + 1) * CHUNK_BYTES).min(self.bytes);
        let objects = &self.objects;
        let loaded = retry(objects.retry_policy.as_ref(), || {
            objects.bucket.get_range(&name(self.run), range.clone())
        });
        let missing = || {
            let place = objects.bucket.place(&name(self.run));
            io::Error::other(StorageError::RunDeleted { place })
        };
        let bytes = loaded.map_err(io::Error::other)?.ok_or_else(missing)?;
        for (content, chunk) in bytes.chunks(CHUNK_BYTES as usize).zip(first..) {
            objects.cache.put(self.id(chunk), content);
        }
        self.scans.end(last + 1, last + 1 - first);
        Ok(bytes)
    }
}

/// Copies the bytes that `from`, which begins at `from_offset`, has in common with `to`, which
/// begins at `offset`.
fn copy_common(from: &[u8], from_offset: u64, offset: u64, to: &mut [u8]) {
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
        let last = (end - 1) / CHUNK_BYTES;
        let mut at = offset;
        while at < end {
            let chunk = at / CHUNK_BYTES;
            let begin = chunk * CHUNK_BYTES;
            let until = end.min(begin + CHUNK_BYTES);
            let part = bytes.get_mut((at - offset) as usize..(until - offset) as usize);
            let part = part.ok_or(io::ErrorKind::InvalidInput)?;
            if self.objects.cache.read(self.id(chunk), at - begin, part) {
                at = until;
                continue;
            }
            let request_end = self.end_of_request(chunk, last);
            let content = self.load(chunk, request_end)?;
            copy_common(&content, begin, offset, bytes);
            at = end.min((request_end + 1) * CHUNK_BYTES);
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
