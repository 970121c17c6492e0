//! An open data folder: the log, the runs and the catalog together.

use std::sync::Arc;

use crate::catalog::{Catalog, CatalogError, CatalogOptions, LoadedRows, RowChange};
use crate::disk::Disk;
use crate::encryption::MasterKey;
use crate::error::StorageError;
use crate::folder::open_folder;
use crate::log::{Log, LogFolder, LogOptions, Position};
use crate::runs::{Runs, RunsOptions};

/// The options of the three parts of a [`Storage`].
#[derive(Clone, Debug, Default)]
pub struct StorageOptions {
    /// The master key of an encrypted data folder. A new folder is encrypted if there is one.
    pub encryption: Option<Arc<MasterKey>>,
    /// The options of the log.
    pub log: LogOptions,
    /// The options of the runs.
    pub runs: RunsOptions,
    /// The options of the catalog.
    pub catalog: CatalogOptions,
}

/// An open data folder. Its lock is released when the last of the three parts is dropped.
pub struct Storage {
    /// The write-ahead log.
    pub log: Arc<Log>,
    /// The files of blocks.
    pub runs: Arc<Runs>,
    /// The rows about collections, indexes and sections.
    pub catalog: Arc<Catalog>,
}

impl Storage {
    /// Opens the data folder `disk`. An empty folder becomes a data folder. If power loss tore the
    /// end of the log, the torn end is cut off.
    ///
    /// # Errors
    /// Fails with `InUse` if another process has the folder open, with `UnknownFormat` or
    /// `NotADataFolder` if it is no folder of this version, with `Encrypted`, `NotEncrypted` or
    /// `WrongKey` if the master key does not suit the folder, with `Damaged` if durable bytes have
    /// changed, and with `NoPermission`, `Full` or `Io` if the file system fails.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use windrow_storage::{RealDisk, Storage, StorageError, StorageOptions};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path();
    /// let open = || Storage::open(Arc::new(RealDisk::new(path)?), StorageOptions::default());
    /// let storage = open()?;
    /// assert!(matches!(open(), Err(StorageError::InUse { .. })));
    /// drop(storage);
    /// assert!(open().is_ok());
    /// # Ok::<(), StorageError>(())
    /// ```
    pub fn open(disk: Arc<dyn Disk>, options: StorageOptions) -> Result<Storage, StorageError> {
        let folder = open_folder(&disk, options.encryption.as_deref())?;
        let (lock, keys) = (Arc::new(folder.lock), folder.keys.map(Arc::new));
        let mut loaded = LoadedRows::checkpoint(&disk, keys.as_deref())?;
        let needed = loaded.checkpointed();
        let apply = |position, payload: &[u8]| loaded.apply(position, payload);
        let folder = LogFolder {
            disk: disk.clone(),
            keys: keys.clone(),
            lock: lock.clone(),
        };
        let log = Log::open(folder, options.log, needed, apply)?;
        check_together(&disk, &log, loaded.checkpointed())?;
        let runs = Runs::open(disk.clone(), &options.runs, keys.clone(), lock)?;
        let log = Arc::new(log);
        let catalog = Catalog::new(disk, options.catalog, keys, log.clone(), loaded);
        Ok(Storage {
            log,
            runs: Arc::new(runs),
            catalog: Arc::new(catalog),
        })
    }

    /// Drops the segments of the log whose records are all before `position`. If the catalog still
    /// needs some of them, it makes a checkpoint first. The [history](Log::keep_history) of the log
    /// is kept.
    ///
    /// # Errors
    /// Fails if the checkpoint, the sync of the log or the change of a file name fails.
    pub fn drop_log_before(&self, position: Position) -> Result<(), StorageError> {
        if !self.log.can_drop_before(position) {
            return Ok(());
        }
        if self.catalog.checkpointed().next() < position {
            self.catalog.checkpoint()?;
        }
        self.log
            .drop_before(position.min(self.catalog.checkpointed().next()))
    }

    /// Shortens the next start: if it would read more than 1 MB of the log, makes `change`
    /// the first record of a new segment, and then a checkpoint of the catalog. The next start
    /// skips the segments before. Returns `false` if there was no need.
    ///
    /// # Errors
    /// Fails if the change of the catalog or the checkpoint fails.
    pub fn shorten_start(&self, change: RowChange) -> Result<bool, CatalogError> {
        if self.log.bytes_at_start(self.catalog.checkpointed()) <= START_BYTES {
            return Ok(false);
        }
        self.log.end_segment();
        self.catalog.change(vec![change], |_| {})?;
        self.catalog.checkpoint()?;
        Ok(true)
    }
}

/// So many bytes of the log are read in about a millisecond.
const START_BYTES: u64 = 1 << 20;

/// Fails with `Damaged` if the log ends before the catalog's checkpoint, or begins after the record
/// that follows it: segments are missing, and changes of the catalog with them.
fn check_together(
    disk: &Arc<dyn Disk>,
    log: &Log,
    checkpointed: Position,
) -> Result<(), StorageError> {
    let what = if log.written() < checkpointed {
        format!("it ends with record {}", log.written())
    } else if log.first() > checkpointed.next() {
        format!("it begins with record {}", log.first())
    } else {
        return Ok(());
    };
    let what = format!("{what}, but the catalog's checkpoint is of record {checkpointed}");
    Err(StorageError::damaged(disk.place("log"), what))
}
