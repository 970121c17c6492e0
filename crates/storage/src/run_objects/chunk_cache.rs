//! Parts of run objects on the local disk: `cache/{run}-{chunk}`. A chunk has 1 MB, or less at the
//! end of an object, and a checksum. The least recently used chunks are removed if there are too
//! many.

use std::sync::Arc;

use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter};

use crate::checksum::{checksum, seed_from};
use crate::disk::{Disk, at, read_all};
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
    sizes: Cache<ChunkId, u64, Bytes, DefaultHashBuilder, Evictions>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<ChunkId, u64> for Bytes {
    fn weight(&self, _: &ChunkId, bytes: &u64) -> u64 {
        *bytes
    }
}

/// Removes the files of evicted chunks.
#[derive(Clone)]
struct Evictions(Arc<dyn Disk>);

impl Lifecycle<ChunkId, u64> for Evictions {
    type RequestState = ();

    fn on_evict(&self, (): &mut (), id: ChunkId, _: u64) {
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
        let hash = DefaultHashBuilder::default();
        let cache = Self {
            disk: disk.clone(),
            sizes: Cache::with(count, bytes_max, Bytes, hash, evictions),
        };
        for name in disk.list(FOLDER).map_err(at(disk, FOLDER))? {
            let path = format!("{FOLDER}/{name}");
            match ChunkId::parse(&name) {
                Some(id) => {
                    let file = disk.open(&path).map_err(at(disk, &path))?;
                    let bytes = file.len().map_err(at(disk, &path))?;
                    cache.sizes.insert(id, bytes);
                }
                None => disk.remove(&path).map_err(at(disk, &path))?,
            }
        }
        Ok(cache)
    }

    /// Returns the content of a chunk, or `None` if it is not on the disk or is damaged.
    pub fn get(&self, id: ChunkId) -> Option<Vec<u8>> {
        self.sizes.get(&id)?;
        let read = self
            .disk
            .open(&id.path())
            .and_then(|file| read_all(file.as_ref()));
        let whole = read.ok().and_then(|mut bytes| {
            let end = bytes.len().checked_sub(CHECKSUM_BYTES)?;
            let sum = u64_at(&bytes, end)?;
            bytes.truncate(end);
            (sum == checksum(id.seed(), &bytes)).then_some(bytes)
        });
        if whole.is_none() {
            self.sizes.remove(&id);
        }
        whole
    }

    /// Returns `true` if a chunk is on the disk, without reading it.
    pub fn has(&self, id: ChunkId) -> bool {
        self.sizes.peek(&id).is_some()
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
            Ok(()) => self.sizes.insert(id, bytes.len() as u64),
            Err(_) => drop(self.disk.remove(&path)),
        }
    }

    /// Removes the chunks of a run of `bytes` bytes.
    pub fn forget(&self, run: RunId, bytes: u64) {
        for chunk in 0..bytes.div_ceil(CHUNK_BYTES) {
            let id = ChunkId { run, chunk };
            if self.sizes.remove(&id).is_some() {
                let _ = self.disk.remove(&id.path());
            }
        }
    }

    /// Returns the size of all chunks in bytes.
    pub fn bytes(&self) -> u64 {
        self.sizes.weight()
    }
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
        let again = ChunkCache::open(&disk, 1 << 20).unwrap();
        let found: Vec<u64> = (0..100).filter(|&it| again.get(id(it)).is_some()).collect();
        assert_eq!(found.len() as u64, kept);
        let one = found[0];
        assert_eq!(again.get(id(one)).unwrap(), [one as u8; 1000]);
        let file = disk.open(&id(one).path()).unwrap();
        file.write_at(500, b"damage").unwrap();
        assert_eq!(again.get(id(one)), None);
        again.forget(RunId(7), 100 * CHUNK_BYTES);
        assert_eq!(again.bytes(), 0);
    }
}
