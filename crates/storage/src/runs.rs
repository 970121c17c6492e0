//! Runs: files of blocks, written once, read through one cache, deleted when nobody reads them.
//! What the blocks hold, and which blocks of a run belong together, is for the catalog to say.

mod block;
mod cache;
mod writer;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;

use crate::disk::{Disk, DiskFile, DiskLock};
use crate::error::StorageError;
use crate::folder::at;

pub use block::{
    Block, BlockAddress, BlockEncoder, Compression, EncodedBlock, encode_block, encode_parts,
};
pub use writer::RunWriter;

use cache::BlockCache;

pub(crate) const FOLDER: &str = "runs";

/// The number of a run file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct RunsOptions {
    /// How many bytes of decompressed blocks the cache may hold.
    pub cache_bytes: u64,
}

impl Default for RunsOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
        }
    }
}

/// See the module. Shared by all threads.
pub struct Runs {
    shared: Arc<Shared>,
    _lock: Arc<DiskLock>,
}

struct Shared {
    disk: Arc<dyn Disk>,
    cache: BlockCache,
    files: RwLock<HashMap<RunId, Entry>>,
    next: AtomicU64,
}

/// What the cache is to do with a block that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Keep it, others have to go.
    Keep,
    /// Keep it as long as none has to go: for scans of everything.
    KeepWhereRoomIs,
    /// Not keep it: for what is read once, as by merges.
    Past,
}

/// A run is `kept` until it is removed; after that its handles alone keep it alive.
struct Entry {
    file: Weak<RunFile>,
    kept: Option<Arc<RunFile>>,
}

struct RunFile {
    run: RunId,
    file: Arc<dyn DiskFile>,
    bytes: u64,
    removed: AtomicBool,
    shared: Weak<Shared>,
}

/// Keeps a run readable: while one exists, the file is not deleted.
#[derive(Clone)]
pub struct RunHandle(Arc<RunFile>);

impl RunHandle {
    pub fn run(&self) -> RunId {
        self.0.run
    }

    /// The size of the file.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }
}

impl Runs {
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        options: &RunsOptions,
        lock: Arc<DiskLock>,
    ) -> Result<Self, StorageError> {
        let shared = Arc::new(Shared {
            cache: BlockCache::new(options.cache_bytes),
            files: RwLock::default(),
            next: AtomicU64::new(1),
            disk,
        });
        // Numbers begin with 1: 0 where there is no run.
        let newest = list(&shared.disk)?.into_iter().max().unwrap_or_default();
        shared.next.store(newest.0 + 1, Ordering::Relaxed);
        Ok(Self {
            shared,
            _lock: lock,
        })
    }

    /// A new run with a number of its own, invisible to [`Runs::list`] until it is finished.
    pub fn create(&self) -> Result<RunWriter, StorageError> {
        let run = RunId(self.shared.next.fetch_add(1, Ordering::Relaxed));
        RunWriter::create(self.shared.disk.clone(), run)
    }

    /// Holds a run open. An error where there is no such run or its ends are damaged.
    pub fn handle(&self, run: RunId) -> Result<RunHandle, StorageError> {
        self.shared.file(run).map(RunHandle)
    }

    /// A block from the cache, or from the disk. Its checksum is verified when it comes from the disk.
    pub fn open_block(
        &self,
        address: BlockAddress,
        caching: Caching,
    ) -> Result<Block, StorageError> {
        self.cached(address, caching, || self.shared.load(address))
    }

    /// The same, of a block that is packed: the cache keeps what `unpack` makes of it, which is None
    /// where it makes no sense.
    pub fn open_packed(
        &self,
        address: BlockAddress,
        caching: Caching,
        unpack: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<Block, StorageError> {
        self.cached(address, caching, || {
            let packed = self.shared.load(address)?;
            unpack(&packed)
                .map(Block::from)
                .ok_or_else(|| StorageError::Damaged {
                    place: format!("run {} at byte {}", address.run.0, address.offset),
                    what: "a packed block that cannot be unpacked".to_owned(),
                })
        })
    }

    fn cached(
        &self,
        address: BlockAddress,
        caching: Caching,
        load: impl FnOnce() -> Result<Block, StorageError>,
    ) -> Result<Block, StorageError> {
        let cache = &self.shared.cache;
        let keeps = match caching {
            Caching::Keep => true,
            Caching::KeepWhereRoomIs => cache.has_room(),
            Caching::Past => false,
        };
        match keeps {
            true => cache.get_or_load(address, load),
            false => cache.peek(address).map_or_else(load, Ok),
        }
    }

    /// Deletes a run: at once, or when its last handle goes. The catalog must have forgotten it.
    pub fn remove(&self, run: RunId) -> Result<(), StorageError> {
        let file = self.shared.file(run)?;
        let mut files = self.shared.files.write();
        let was_removed = file.removed.swap(true, Ordering::AcqRel);
        debug_assert!(!was_removed, "run {run} is removed twice");
        if let Some(entry) = files.get_mut(&run) {
            entry.kept = None;
        }
        drop(files);
        // Deletes the file here where this is the last use of it, outside of the lock.
        drop(file);
        Ok(())
    }

    /// The finished runs that are on the disk and not removed, ascending.
    pub fn list(&self) -> Result<Vec<RunId>, StorageError> {
        let mut runs = list(&self.shared.disk)?;
        let files = self.shared.files.read();
        runs.retain(|run| files.get(run).is_none_or(|entry| entry.kept.is_some()));
        Ok(runs)
    }

    /// Deletes every run that is not in `wanted`, and what unfinished writers left. For the start
    /// of the database: no writer may be at work.
    pub fn retain(&self, wanted: &HashSet<RunId>) -> Result<(), StorageError> {
        let disk = &self.shared.disk;
        for name in disk.list(FOLDER).map_err(at(disk, FOLDER))? {
            let run = run_of(&name);
            if !run.is_some_and(|run| wanted.contains(&run)) {
                self.shared.forget(run);
                let path = format!("{FOLDER}/{name}");
                disk.remove(&path).map_err(at(disk, &path))?;
            }
        }
        let found: HashSet<RunId> = self.list()?.into_iter().collect();
        match wanted.iter().filter(|run| !found.contains(run)).min() {
            Some(missing) => {
                let place = disk.place(&path(*missing));
                Err(StorageError::damaged(place, "the file is missing"))
            }
            None => Ok(()),
        }
    }

    /// How many bytes of blocks the cache holds now.
    pub fn cache_bytes(&self) -> u64 {
        self.shared.cache.bytes()
    }

    /// How many it may hold from now on.
    pub fn set_cache_bytes_max(&self, bytes: u64) {
        self.shared.cache.set_bytes_max(bytes);
    }
}

impl Shared {
    fn load(self: &Arc<Self>, address: BlockAddress) -> Result<Block, StorageError> {
        let file = self.file(address.run)?;
        block::read(file.file.as_ref(), file.bytes, address, || {
            self.disk.place(&path(address.run))
        })
    }

    fn file(self: &Arc<Self>, run: RunId) -> Result<Arc<RunFile>, StorageError> {
        let known = |files: &HashMap<RunId, Entry>| files.get(&run)?.file.upgrade();
        if let Some(file) = known(&self.files.read()) {
            return Ok(file);
        }
        let mut files = self.files.write();
        if let Some(file) = known(&files) {
            return Ok(file);
        }
        let file = Arc::new(RunFile::open(self, run)?);
        files.insert(
            run,
            Entry {
                file: Arc::downgrade(&file),
                kept: Some(file.clone()),
            },
        );
        Ok(file)
    }

    fn forget(&self, run: Option<RunId>) {
        if let Some(run) = run {
            self.files.write().remove(&run);
            self.cache.forget(run);
        }
    }
}

impl RunFile {
    fn open(shared: &Arc<Shared>, run: RunId) -> Result<Self, StorageError> {
        let path = path(run);
        let file = match shared.disk.open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let place = shared.disk.place(&path);
                return Err(StorageError::damaged(place, "the file is missing"));
            }
            opened => opened.map_err(at(&shared.disk, &path))?,
        };
        let bytes = file.len().map_err(at(&shared.disk, &path))?;
        writer::check_ends(file.as_ref(), run, bytes)
            .map_err(at(&shared.disk, &path))?
            .map_err(|what| StorageError::damaged(shared.disk.place(&path), what))?;
        let removed = AtomicBool::new(false);
        Ok(Self {
            run,
            file,
            bytes,
            removed,
            shared: Arc::downgrade(shared),
        })
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if !self.removed.load(Ordering::Acquire) {
            return;
        }
        if let Some(shared) = self.shared.upgrade() {
            // A file that stays is found by `retain` at the next start.
            let _ = shared.disk.remove(&path(self.run));
            shared.forget(Some(self.run));
        }
    }
}

pub(crate) fn path(run: RunId) -> String {
    format!("{FOLDER}/{:012}.run", run.0)
}

/// The name until the run is finished.
pub(crate) fn unfinished_path(run: RunId) -> String {
    format!("{FOLDER}/{:012}.unfinished", run.0)
}

fn run_of(name: &str) -> Option<RunId> {
    Some(RunId(name.strip_suffix(".run")?.parse().ok()?))
}

fn list(disk: &Arc<dyn Disk>) -> Result<Vec<RunId>, StorageError> {
    let names = disk.list(FOLDER).map_err(at(disk, FOLDER))?;
    let mut runs: Vec<RunId> = names.iter().filter_map(|name| run_of(name)).collect();
    runs.sort_unstable();
    Ok(runs)
}
