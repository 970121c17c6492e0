//! Parts of run objects on the local disk: `cache/{run}-{chunk}`. A chunk has 1 MB, or less at the
//! end of an object, and a checksum. The least recently used chunks are removed if there are too
//! many.
//!
//! The checksum of a chunk of an earlier process is verified at its first read. Later reads read
//! only the bytes that they need: blocks have checksums of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use foldhash::fast::FixedState;
use quick_cache::sync::Cache;
use quick_cache::{Lifecycle, Weighter};

use crate::checksum::{checksum, seed_from};
use crate::disk::{Disk, DiskFile, at, read_all};
use crate::error::StorageError;
use crate::fields::u64_at;
use crate::run_id::RunId;

const FOLDER: &str = "cache";
/// The size of a chunk in bytes. One request to the object store reads one or more chunks.
pub(crate) const CHUNK_BYTES: u64 = 1 << 20;
const CHECKSUM_BYTES: usize = 8;

/// A chunk of a run object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChunkId {
    pub run: RunId,
    pub chunk: u64,
}

impl ChunkId {
    fn path(self) -> String {
        format!("{FOLDER}/{:020}-{:08}", self.run.0, self.chunk)
    }

    fn parse(name: &str) -> Option<Self> {
        let (run, chunk) = name.split_once('-')?;
        Some(Self {
            run: RunId(run.parse().ok()?),
            chunk: chunk.parse().ok()?,
        })
    }

    fn seed(self) -> u64 {
        seed_from(self.run.0, self.chunk)
    }
}

/// The chunks on the local disk. The cache itself only knows their sizes.
pub(crate) struct ChunkCache {
    disk: Arc<dyn Disk>,
    chunks: Cache<ChunkId, Chunk, Bytes, FixedState, Evictions>,
    /// The number of reads that found their chunk.
    hits: AtomicU64,
    /// The number of reads that did not.
    misses: AtomicU64,
}

/// A chunk on the local disk.
#[derive(Clone)]
struct Chunk {
    /// The size of the file in bytes.
    bytes: u64,
    /// True if this process has written it or has verified its checksum.
    is_verified: Arc<AtomicBool>,
}

impl Chunk {
    fn new(bytes: u64, is_verified: bool) -> Self {
        let is_verified = Arc::new(AtomicBool::new(is_verified));
        Self { bytes, is_verified }
    }
}

#[derive(Clone)]
struct Bytes;

impl Weighter<ChunkId, Chunk> for Bytes {
    fn weight(&self, _: &ChunkId, chunk: &Chunk) -> u64 {
        chunk.bytes
    }
}

/// Removes the files of evicted chunks.
#[derive(Clone)]
struct Evictions(Arc<dyn Disk>);

impl Lifecycle<ChunkId, Chunk> for Evictions {
    type RequestState = ();

    fn on_evict(&self, (): &mut (), id: ChunkId, _: Chunk) {
        // What cannot be removed is removed at the next start.
        let _ = self.0.remove(&id.path());
    }
}

impl ChunkCache {
    /// Opens the chunks of an earlier process. Those beyond `bytes_max` are removed.
    pub fn open(disk: &Arc<dyn Disk>, bytes_max: u64) -> Result<Self, StorageError> {
        disk.create_dir_all(FOLDER).map_err(at(disk, FOLDER))?;
        let count = (bytes_max / CHUNK_BYTES).max(16) as usize;
        let evictions = Evictions(disk.clone());
        let hash = FixedState::default();
        let cache = Self {
            disk: disk.clone(),
            chunks: Cache::with(count, bytes_max, Bytes, hash, evictions),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        };
        for name in disk.list(FOLDER).map_err(at(disk, FOLDER))? {
            let path = format!("{FOLDER}/{name}");
            match ChunkId::parse(&name) {
                Some(id) => {
                    let file = disk.open(&path).map_err(at(disk, &path))?;
                    let bytes = file.len().map_err(at(disk, &path))?;
                    cache.chunks.insert(id, Chunk::new(bytes, false));
                }
                None => disk.remove(&path).map_err(at(disk, &path))?,
            }
        }
        Ok(cache)
    }

    /// Reads the bytes of a chunk from `offset` on until `to` is full. Returns `false` if the chunk
    /// is not on the disk or is damaged.
    pub fn read(&self, id: ChunkId, offset: u64, to: &mut [u8]) -> bool {
        let is_found = self
            .chunks
            .get(&id)
            .is_some_and(|chunk| self.read_file(id, &chunk, offset, to));
        if is_found {
            self.hits.fetch_add(1, Ordering::Relaxed);
        } else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            self.remove(id);
        }
        is_found
    }

    fn read_file(&self, id: ChunkId, chunk: &Chunk, offset: u64, to: &mut [u8]) -> bool {
        let Ok(file) = self.disk.open(&id.path()) else {
            return false;
        };
        if !chunk.is_verified.load(Ordering::Acquire) {
            let Some(content) = read_verified(id, file.as_ref()) else {
                return false;
            };
            chunk.is_verified.store(true, Ordering::Release);
            let end = (offset as usize).saturating_add(to.len());
            let part = content.get(offset as usize..end);
            return part.is_some_and(|part| {
                to.copy_from_slice(part);
                true
            });
        }
        // Without the checksum at the end.
        let end = offset + to.len() as u64 + CHECKSUM_BYTES as u64;
        end <= chunk.bytes
            && file
                .read_at(offset, to)
                .is_ok_and(|count| count == to.len())
    }

    /// Returns `true` if a chunk is on the disk, without reading it.
    pub fn has(&self, id: ChunkId) -> bool {
        self.chunks.peek(&id).is_some()
    }

    /// Writes a chunk to the disk. If that fails, the chunk is read from the object store again.
    pub fn put(&self, id: ChunkId, content: &[u8]) {
        let mut bytes = Vec::with_capacity(content.len() + CHECKSUM_BYTES);
        bytes.extend_from_slice(content);
        bytes.extend_from_slice(&checksum(id.seed(), content).to_le_bytes());
        let path = id.path();
        let written = self
            .disk
            .create(&path)
            .and_then(|file| file.write_at(0, &bytes));
        match written {
            Ok(()) => self.chunks.insert(id, Chunk::new(bytes.len() as u64, true)),
            Err(_) => drop(self.disk.remove(&path)),
        }
    }

    /// Removes a chunk.
    pub fn remove(&self, id: ChunkId) {
        if self.chunks.remove(&id).is_some() {
            let _ = self.disk.remove(&id.path());
        }
    }

    /// Removes the chunks of a run.
    pub fn forget(&self, run: RunId) {
        let chunks: Vec<ChunkId> = self.chunks.iter().map(|(id, _)| id).collect();
        let of_run = chunks.into_iter().filter(|id| id.run == run);
        of_run.for_each(|id| self.remove(id));
    }

    /// Returns the size of all chunks in bytes.
    pub fn bytes(&self) -> u64 {
        self.chunks.weight()
    }

    /// Returns the numbers of reads since the start.
    pub fn reads(&self) -> ChunkReads {
        ChunkReads {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// Returns the largest size of all chunks in bytes.
    pub fn bytes_max(&self) -> u64 {
        self.chunks.capacity()
    }

    /// Sets the largest size of all chunks in bytes.
    pub fn set_bytes_max(&self, bytes: u64) {
        if bytes != self.bytes_max() {
            self.chunks.set_capacity(bytes);
        }
    }
}

/// The numbers of reads of chunks.
pub(crate) struct ChunkReads {
    /// Reads that found their chunk in the cache.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
}

/// Returns the content of a chunk, or `None` if its checksum does not match.
fn read_verified(id: ChunkId, file: &dyn DiskFile) -> Option<Vec<u8>> {
    let mut bytes = read_all(file).ok()?;
    let end = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let sum = u64_at(&bytes, end)?;
    bytes.truncate(end);
    (sum == checksum(id.seed(), &bytes)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDisk;

    #[test]
    fn chunks_are_kept_up_to_the_limit_and_damage_is_noticed() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let id = |chunk| ChunkId {
            run: RunId(7),
            chunk,
        };
        let cache = ChunkCache::open(&disk, 40 * 1008).unwrap();
        for chunk in 0..100 {
            cache.put(id(chunk), &[chunk as u8; 1000]);
        }
        assert!(cache.bytes() <= 40 * 1008, "{}", cache.bytes());
        let kept = disk.list(FOLDER).unwrap().len() as u64;
        assert_eq!(
            kept * 1008,
            cache.bytes(),
            "files of evicted chunks are removed"
        );
        let content = |cache: &ChunkCache, chunk| {
            let mut bytes = [0; 1000];
            cache.read(id(chunk), 0, &mut bytes).then_some(bytes)
        };
        let open = || ChunkCache::open(&disk, 1 << 20).unwrap();
        let again = open();
        let found: Vec<u64> = (0..100)
            .filter(|&it| content(&again, it).is_some())
            .collect();
        assert_eq!(found.len() as u64, kept);
        let one = found[0];
        assert_eq!(content(&again, one), Some([one as u8; 1000]));
        let mut part = [0; 10];
        assert!(again.read(id(one), 990, &mut part));
        assert_eq!(part, [one as u8; 10]);
        assert!(
            !again.read(id(one), 991, &mut part),
            "the checksum is no content"
        );
        let two = found[1];
        let file = disk.open(&id(two).path()).unwrap();
        file.write_at(500, b"damage").unwrap();
        let damaged = open();
        assert_eq!(content(&damaged, two), None);
        assert!(!damaged.has(id(two)));
        damaged.forget(RunId(7));
        assert_eq!(damaged.bytes(), 0);
        assert!(disk.list(FOLDER).unwrap().is_empty());
    }
}
