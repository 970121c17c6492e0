//! Runs: files of blocks. A run is written once, its blocks are read through one cache, and its
//! file is deleted after it was removed and its last handle was dropped. The callers know what the
//! blocks contain; the catalog says which runs belong to the database.

mod block;
mod cache;
mod local_files;
mod run_file;
mod writer;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use parking_lot::RwLock;

use crate::disk::{Disk, DiskLock, at};
use crate::encryption::DataKeys;
use crate::error::StorageError;
use crate::run_objects::RunObjects;

pub use crate::run_id::RunId;
pub use block::{
    Block, BlockAddress, BlockEncoder, Compression, EncodedBlock, encode_block, encode_parts,
};
pub use writer::RunWriter;

use cache::BlockCache;
use local_files::LocalFiles;
use run_file::RunFile;

pub(crate) const FOLDER: &str = "runs";

/// The options of [`Runs`].
#[derive(Clone, Copy, Debug)]
pub struct RunsOptions {
    /// The largest size of the block cache, in bytes of decompressed blocks. 256 MB by default.
    pub cache_bytes: u64,
}

impl Default for RunsOptions {
    fn default() -> Self {
        Self {
            cache_bytes: 256 << 20,
        }
    }
}

/// The run files of a data folder and their block cache. All threads share it.
///
/// ```
/// use std::sync::Arc;
/// use windrow_storage::{
///     Caching, Compression, MemoryDisk, Storage, StorageOptions, encode_block,
/// };
///
/// let storage = Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default())?;
/// let mut writer = storage.runs.create()?;
/// let address = writer.append(&encode_block(b"a block", Compression::Lz4))?;
/// writer.finish()?;
///
/// let block = storage.runs.open_block(address, Caching::Keep)?;
/// assert_eq!(&*block, b"a block");
/// # Ok::<(), windrow_storage::StorageError>(())
/// ```
pub struct Runs {
    shared: Arc<RunStore>,
    _lock: Arc<DiskLock>,
}

/// The state that [`Runs`] and its open files share.
struct RunStore {
    disk: Arc<dyn Disk>,
    cache: BlockCache,
    /// The keys of an encrypted data folder.
    keys: Option<Arc<DataKeys>>,
    files: RwLock<HashMap<RunId, FileEntry>>,
    /// The id of the next run.
    next: AtomicU64,
    /// The same runs in an object store.
    objects: Option<Arc<RunObjects>>,
    /// The run files of the data folder, if the same runs are in an object store.
    local: LocalFiles,
}

/// The data folder of runs.
pub(crate) struct RunsFolder {
    pub disk: Arc<dyn Disk>,
    /// The keys of an encrypted data folder.
    pub keys: Option<Arc<DataKeys>>,
    pub lock: Arc<DiskLock>,
    /// The same runs in an object store.
    pub objects: Option<Arc<RunObjects>>,
}

/// The use of the cache for a block that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// The block enters the cache. Other blocks may be evicted.
    Keep,
    /// The block enters the cache if no other block has to be evicted. For full scans.
    KeepWhereRoomIs,
    /// The block does not enter the cache. For blocks that are read once, as in merges.
    Past,
}

/// An open file. `pin` keeps it open until the run is removed. After that only handles keep it
/// open, and its drop deletes the file.
struct FileEntry {
    file: Weak<RunFile>,
    pin: Option<Arc<RunFile>>,
}

/// A reference to a run. The file is not deleted while a handle to it exists.
#[derive(Clone)]
pub struct RunHandle(Arc<RunFile>);

impl RunHandle {
    /// Returns the id of the run.
    pub fn run(&self) -> RunId {
        self.0.run
    }

    /// Returns the size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes
    }
}

impl Runs {
    pub(crate) fn open(folder: RunsFolder, options: &RunsOptions) -> Result<Self, StorageError> {
        let RunsFolder {
            disk,
            keys,
            lock,
            objects,
        } = folder;
        let shared = Arc::new(RunStore {
            cache: BlockCache::new(options.cache_bytes),
            keys,
            files: RwLock::default(),
            next: AtomicU64::new(1),
            disk,
            objects,
            local: LocalFiles::default(),
        });
        // Ids start at 1. The default id, 0, means that there is no run.
        let found = list(&shared.disk)?;
        let newest = found.iter().copied().max().unwrap_or_default();
        shared.next.store(newest.0 + 1, Ordering::Relaxed);
        shared.count_local(&found)?;
        Ok(Self {
            shared,
            _lock: lock,
        })
    }

    /// Creates a run with a new id. [`Runs::list`] omits it until [`RunWriter::finish`].
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub fn create(&self) -> Result<RunWriter, StorageError> {
        RunWriter::create(self.shared.clone(), self.reserve())
    }

    /// Returns the id of a run that another server writes for this one.
    pub fn reserve(&self) -> RunId {
        RunId(self.shared.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Creates a run that the primary has reserved for this server. It is uploaded until
    /// [`leave_share`](Runs::leave_share).
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub fn create_reserved(&self, run: RunId) -> Result<RunWriter, StorageError> {
        if let Some(objects) = &self.shared.objects {
            objects.begin_share(run);
        }
        RunWriter::create(self.shared.clone(), run)
    }

    /// Forbids the upload of a run that the primary has reserved for this server.
    pub fn leave_share(&self, run: RunId) {
        if let Some(objects) = &self.shared.objects {
            objects.leave_share(run);
        }
    }

    /// Forbids the upload of all runs that the primary has reserved for this server.
    pub fn leave_shares(&self) {
        if let Some(objects) = &self.shared.objects {
            objects.leave_shares();
        }
    }

    /// Announces the state of a share of a build that this server writes as the run.
    ///
    /// # Errors
    /// Fails if the object store does.
    pub fn report_share(&self, run: RunId, report: &[u8]) -> Result<(), StorageError> {
        let objects = self.shared.objects.as_ref();
        objects.map_or(Ok(()), |objects| objects.report(run, report))
    }

    /// Returns what the server has announced last that writes the run as a share of a build. `None`
    /// if it has announced nothing.
    ///
    /// # Errors
    /// Fails if the object store does, and with `Damaged` if the object is not a report.
    pub fn share_report(&self, run: RunId) -> Result<Option<Bytes>, StorageError> {
        let objects = self.shared.objects.as_ref();
        objects.map_or(Ok(None), |objects| objects.report_of(run))
    }

    /// Records that this primary does not wait for a share any more. `is_garbage`: the catalog does
    /// not name its run, which is deleted then.
    pub fn end_share(&self, run: RunId, is_garbage: bool) {
        if let Some(objects) = &self.shared.objects {
            objects.end_share(run, is_garbage);
        }
    }

    /// Returns the same runs in an object store.
    pub(crate) fn objects(&self) -> Option<&Arc<RunObjects>> {
        self.shared.objects.as_ref()
    }

    /// Returns the keys of an encrypted data folder.
    pub(crate) fn keys(&self) -> Option<&DataKeys> {
        self.shared.keys.as_deref()
    }

    /// Sets the id of the next run.
    pub(crate) fn begin_ids_at(&self, run: RunId) {
        self.shared.next.store(run.0, Ordering::Relaxed);
    }

    /// Returns a handle to a run.
    ///
    /// # Errors
    /// Fails with `Damaged` if the file is missing, or if its header or footer is not that of the
    /// run.
    pub fn handle(&self, run: RunId) -> Result<RunHandle, StorageError> {
        self.shared.file(run).map(RunHandle)
    }

    /// Returns a block from the cache or from the disk. A block from the disk is verified against
    /// its checksum and decompressed.
    ///
    /// # Errors
    /// Fails with `Damaged` if the file is missing or the checksum does not match.
    pub fn open_block(
        &self,
        address: BlockAddress,
        caching: Caching,
    ) -> Result<Block, StorageError> {
        self.cached(address, caching, || self.shared.load(address))
    }

    /// Returns the result of `unpack` for a block. The cache keeps the result, so that a hit needs
    /// no second `unpack`. One address must be read with the same `unpack` always, and not with
    /// [`Runs::open_block`].
    ///
    /// # Errors
    /// Fails as [`Runs::open_block`] does, and with `Damaged` if `unpack` returns `None`.
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

    /// Returns a block, as [`Runs::open_block`] or [`Runs::open_packed`] do, if it is in the cache.
    pub fn cached_block(&self, address: BlockAddress) -> Option<Block> {
        self.shared.cache.get(address)
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
        if keeps {
            cache.get_or_load(address, load)
        } else {
            cache.peek(address).map_or_else(load, Ok)
        }
    }

    /// Removes a run. The file is deleted when its last handle is dropped, or at once if it has
    /// none. The catalog must not refer to the run any more: after a crash, [`Runs::retain`] fails
    /// if a run of the catalog is missing.
    ///
    /// # Errors
    /// Fails with `Damaged` if the file is missing or is not that of the run.
    pub fn remove(&self, run: RunId) -> Result<(), StorageError> {
        let file = self.shared.file(run)?;
        let mut files = self.shared.files.write();
        let was_removed = file.removed.swap(true, Ordering::AcqRel);
        debug_assert!(!was_removed, "run {run} is removed twice");
        if let Some(entry) = files.get_mut(&run) {
            entry.pin = None;
        }
        // `RunFile::drop` takes the lock, so the lock is released first.
        drop(files);
        drop(file);
        Ok(())
    }

    /// Returns the ids of the finished runs that were not removed, in ascending order.
    ///
    /// # Errors
    /// Fails if the folder cannot be read.
    pub fn list(&self) -> Result<Vec<RunId>, StorageError> {
        let mut runs = list(&self.shared.disk)?;
        let files = self.shared.files.read();
        runs.retain(|run| files.get(run).is_none_or(|entry| entry.pin.is_some()));
        Ok(runs)
    }

    /// Deletes all runs that are not in `runs`, and the files of unfinished writers. For the start
    /// of the database: there must be no [`RunWriter`], because its file would be deleted.
    ///
    /// # Errors
    /// Fails with `Damaged` if a run of `runs` is missing, and if a file cannot be deleted.
    pub fn retain(&self, runs: &HashSet<RunId>) -> Result<(), StorageError> {
        let disk = &self.shared.disk;
        for name in disk.list(FOLDER).map_err(at(disk, FOLDER))? {
            let run = run_from_name(&name);
            if !run.is_some_and(|run| runs.contains(&run)) {
                self.shared.forget(run);
                let path = format!("{FOLDER}/{name}");
                disk.remove(&path).map_err(at(disk, &path))?;
            }
        }
        if self.shared.objects.is_some() {
            // Missing files are read from the object store.
            return Ok(());
        }
        let found: HashSet<RunId> = self.list()?.into_iter().collect();
        match runs.iter().filter(|run| !found.contains(run)).min() {
            Some(missing) => {
                let place = disk.place(&path(*missing));
                Err(StorageError::damaged(place, "the file is missing"))
            }
            None => Ok(()),
        }
    }

    /// Returns the generation of the data key that new files use. `None` if the data folder is not
    /// encrypted.
    pub fn key_generation(&self) -> Option<u16> {
        self.shared.keys.as_ref().map(|keys| keys.newest())
    }

    /// Returns the size of the block cache, in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.shared.cache.bytes()
    }

    /// Sets the largest size of the block cache, in bytes.
    pub fn set_cache_bytes_max(&self, bytes: u64) {
        self.shared.cache.set_bytes_max(bytes);
    }
}

impl RunStore {
    fn load(self: &Arc<Self>, address: BlockAddress) -> Result<Block, StorageError> {
        let file = self.file(address.run)?;
        match file.read(self, address) {
            // The object store has the same bytes.
            Err(StorageError::Damaged { .. }) if self.discard_local(&file, address) => {
                file.read(self, address)
            }
            read => read,
        }
    }

    /// Returns the open file of a run, and opens it if necessary.
    fn file(self: &Arc<Self>, run: RunId) -> Result<Arc<RunFile>, StorageError> {
        let known = |files: &HashMap<RunId, FileEntry>| files.get(&run)?.file.upgrade();
        if let Some(file) = known(&self.files.read()) {
            return Ok(file);
        }
        // Not with the lock: a run in the object store takes a request, and other runs are read
        // meanwhile.
        let file = Arc::new(RunFile::open(self, run)?);
        let mut files = self.files.write();
        if let Some(file) = known(&files) {
            return Ok(file);
        }
        self.leave_evicted(&file);
        files.insert(
            run,
            FileEntry {
                file: Arc::downgrade(&file),
                pin: Some(file.clone()),
            },
        );
        Ok(file)
    }

    fn forget(&self, run: Option<RunId>) {
        if let Some(run) = run {
            self.files.write().remove(&run);
            self.cache.forget(run);
            self.forget_local(run);
        }
    }
}

pub(crate) fn path(run: RunId) -> String {
    format!("{FOLDER}/{:012}.run", run.0)
}

/// Returns the path of the file while the run is written.
pub(crate) fn unfinished_path(run: RunId) -> String {
    format!("{FOLDER}/{:012}.unfinished", run.0)
}

/// Returns the id in the name of a run file, or `None` for other names.
fn run_from_name(name: &str) -> Option<RunId> {
    Some(RunId(name.strip_suffix(".run")?.parse().ok()?))
}

fn list(disk: &Arc<dyn Disk>) -> Result<Vec<RunId>, StorageError> {
    let names = disk.list(FOLDER).map_err(at(disk, FOLDER))?;
    let mut runs: Vec<RunId> = names
        .iter()
        .filter_map(|name| run_from_name(name))
        .collect();
    runs.sort_unstable();
    Ok(runs)
}
