//! An open data folder: the log, the runs and the catalog together.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use windrow_invariant::Bug;

use crate::catalog::{Catalog, CatalogError, CatalogOptions, LoadedRows, RowChange};
use crate::compared_log::ComparedLog;
use crate::disk::Disk;
use crate::encryption::MasterKey;
use crate::error::StorageError;
use crate::folder::{OpenFolder, open_folder};
use crate::log::{Log, LogFolder, LogOptions};
use crate::position::Position;
use crate::run_id::RunId;
use crate::run_objects::RunObjects;
use crate::runs::{Runs, RunsFolder, RunsOptions};
use crate::shared_log::members::{Builder, KnownMembers, MemberState};
use crate::shared_log::uploader::{Confirmation, Garbage, Uploader};
use crate::store_statistics::StoreStatistics;

/// The name under which files beside the database are encrypted.
pub(crate) const FILE_NAME: &str = "file";

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

/// The state of a database in an object store, as one server knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedState {
    /// True if this server follows another one.
    pub is_following: bool,
    /// The number of takeovers of the log.
    pub epoch: u64,
    /// The address of the primary, or "" if it is unknown.
    pub primary: String,
    /// The servers that have announced themselves.
    pub members: Vec<MemberState>,
}

/// The primary that a server follows, as far as it is known.
#[derive(Clone, Default)]
pub(crate) struct SeenPrimary {
    /// The number of takeovers of the log.
    pub epoch: u64,
    /// The address of the primary, or "" if it is unknown.
    pub address: String,
}

/// An open data folder. Clones share it. Its lock is released when the last of the three parts is
/// dropped.
#[derive(Clone)]
pub struct Storage {
    /// The write-ahead log.
    pub log: Arc<Log>,
    /// The files of blocks.
    pub runs: Arc<Runs>,
    /// The rows about collections, indexes and sections.
    pub catalog: Arc<Catalog>,
    /// Uploads the log, if this server is the primary of a database in an object store.
    uploader: Arc<OnceLock<Uploader>>,
    /// The part of the local log that the database in an object store needs, if there is one.
    compared: Option<Arc<ComparedLog>>,
    /// The primary that this server follows.
    seen: Arc<Mutex<SeenPrimary>>,
    /// The servers of the database in the object store.
    members: Arc<KnownMembers>,
    /// The age of the newest record when this server applied it, if it follows another one.
    delay: Arc<Mutex<Option<Duration>>>,
    /// The offer of this server to build shares of indexes for the primary.
    builder: Arc<OnceLock<Builder>>,
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
        Storage::open_in(folder, disk, options, None)
    }

    /// Begins the upload of what is written, for all clones of this storage.
    pub(crate) fn set_uploader(&self, uploader: Uploader) -> Result<(), Bug> {
        let set = self.uploader.set(uploader);
        set.map_err(|_| Bug::new("a storage has taken over the log twice"))?;
        self.log.set_following(false);
        Ok(())
    }

    /// Makes this the storage of a copy of the database in an object store.
    pub(crate) fn set_compared(&mut self, compared: Arc<ComparedLog>) {
        self.compared = Some(compared);
    }

    /// Opens the log, the runs and the catalog of a locked folder. `objects` are the runs in an
    /// object store.
    pub(crate) fn open_in(
        folder: OpenFolder,
        disk: Arc<dyn Disk>,
        options: StorageOptions,
        objects: Option<Arc<RunObjects>>,
    ) -> Result<Storage, StorageError> {
        let (lock, keys) = (Arc::new(folder.lock), folder.keys);
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
        log.set_following(objects.is_some());
        let runs = RunsFolder {
            disk: disk.clone(),
            keys: keys.clone(),
            lock,
            objects,
        };
        let runs = Runs::open(runs, &options.runs)?;
        let log = Arc::new(log);
        let catalog = Catalog::new(disk, options.catalog, keys, log.clone(), loaded);
        Ok(Storage {
            log,
            runs: Arc::new(runs),
            catalog: Arc::new(catalog),
            uploader: Arc::default(),
            compared: None,
            seen: Arc::default(),
            members: Arc::default(),
            delay: Arc::default(),
            builder: Arc::default(),
        })
    }

    /// Returns `true` if this server only follows the log of another one.
    pub fn is_following(&self) -> bool {
        self.compared.is_some() && self.uploader.get().is_none()
    }

    /// Returns `true` if the database is in an object store.
    pub fn is_shared(&self) -> bool {
        self.compared.is_some()
    }

    /// Offers to build `threads` shares of the primary's indexes at a time. The next announcement
    /// of this server contains the offer. `id` and `version` are those of [`Builder`]. Later calls
    /// have no effect.
    pub fn offer_builds(&self, id: [u8; 16], threads: usize, version: &str) {
        let _ = self.builder.set(Builder {
            id,
            // The announcement has it.
            address: String::new(),
            threads,
            version: version.to_owned(),
        });
    }

    /// Returns what this server offers to the builds of the primary.
    pub fn builder(&self) -> Option<Builder> {
        self.builder.get().cloned()
    }

    /// Returns the servers that offer to build shares of indexes, if this one is the primary.
    pub fn builders(&self) -> Vec<Builder> {
        self.uploader
            .get()
            .map(Uploader::builders)
            .unwrap_or_default()
    }

    /// Changes what is known of the primary, on a server that follows it.
    pub(crate) fn change_seen_primary(&self, change: impl FnOnce(&mut SeenPrimary)) {
        change(&mut self.seen.lock());
    }

    /// Returns the servers of the database in the object store.
    pub(crate) fn members(&self) -> &Arc<KnownMembers> {
        &self.members
    }

    /// Returns how often this server has noticed that a server was added to the database in the
    /// object store, or removed.
    pub fn member_changes(&self) -> u64 {
        self.members.changes()
    }

    /// Returns what this server knows of the database in the object store. `None` if the database
    /// is not in one.
    pub fn shared_state(&self) -> Option<SharedState> {
        let members = self.members.states();
        let Some(uploader) = self.uploader.get() else {
            let seen = self.seen.lock().clone();
            return self.compared.is_some().then_some(SharedState {
                is_following: true,
                primary: seen.address,
                epoch: seen.epoch,
                members,
            });
        };
        Some(SharedState {
            is_following: false,
            primary: uploader.address().to_owned(),
            epoch: uploader.epoch(),
            members,
        })
    }

    /// Returns what this server has done with the object store. `None` if the database is not in
    /// one.
    pub fn store_statistics(&self) -> Option<StoreStatistics> {
        let objects = self.runs.objects()?;
        let uploader = self.uploader.get();
        Some(StoreStatistics {
            requests: objects.requests(),
            cache: objects.cache_statistics(),
            uploaded: uploader.map(Uploader::uploaded),
            delay: match uploader {
                Some(_) => None,
                None => *self.delay.lock(),
            },
        })
    }

    /// Records how old a record was when this server applied it.
    pub(crate) fn record_delay(&self, delay: Duration) {
        *self.delay.lock() = Some(delay);
    }

    /// Encrypts bytes for a file beside the database that [`unseal`](crate::unseal) reads. `None`
    /// if the database is not encrypted.
    ///
    /// # Errors
    /// Fails if the operating system has no random bytes.
    pub fn seal(&self, bytes: &[u8]) -> Result<Option<Vec<u8>>, StorageError> {
        let keys = self.runs.keys();
        let sealed = keys.map(|keys| keys.seal(FILE_NAME, bytes)).transpose();
        sealed.map_err(|error| StorageError::from_io("an encrypted file", error))
    }

    /// Waits until the records up to `position` are durable: on the disk, or in the object store if
    /// the database is there. Returns `false` if they are not durable after `at_most`.
    ///
    /// # Errors
    /// Fails as [`Log::sync`] does, and with `Fenced` if another server has taken over the log.
    pub fn wait_durable(
        &self,
        position: Position,
        at_most: Duration,
    ) -> Result<bool, StorageError> {
        match self.uploader.get() {
            Some(uploader) => uploader.wait(position, at_most),
            None => self.log.sync(position).map(|()| true),
        }
    }

    /// Requests a proof that this server is still the primary of a database in an object store.
    /// `None` if the database is not in one. See [`wait_confirmed`](Storage::wait_confirmed).
    pub fn request_confirmation(&self) -> Option<Confirmation> {
        self.uploader.get().map(Uploader::request_confirmation)
    }

    /// Waits until the proof that was requested is there: this server was the primary at the time
    /// of the request. Returns `false` if it is not there after `at_most`.
    ///
    /// # Errors
    /// Fails with `Fenced` if another server has taken over the log.
    pub fn wait_confirmed(
        &self,
        confirmation: Confirmation,
        at_most: Duration,
    ) -> Result<bool, StorageError> {
        let uploader = self.uploader.get();
        uploader.map_or(Ok(true), |it| it.wait_confirmed(confirmation, at_most))
    }

    /// Proves that this server is still the primary. Returns `false` if there is no proof after
    /// `at_most`.
    ///
    /// # Errors
    /// Fails with `Fenced` if another server has taken over the log.
    pub fn prove_primary(&self, at_most: Duration) -> Result<bool, StorageError> {
        let Some(confirmation) = self.request_confirmation() else {
            return Ok(true);
        };
        self.upload()?;
        self.wait_confirmed(confirmation, at_most)
    }

    /// Creates the next object of the shared log, if this server is the primary and
    /// [`Uploads::Caller`](crate::Uploads::Caller) is set.
    ///
    /// # Errors
    /// Fails with `Fenced` if another server has taken over the log, and if the object store fails.
    /// The log refuses writes from then on.
    pub fn upload(&self) -> Result<(), StorageError> {
        self.uploader.get().map_or(Ok(()), Uploader::upload)
    }

    /// Collects the garbage that folds have made, if this server is the primary and
    /// [`Uploads::Caller`](crate::Uploads::Caller) is set.
    ///
    /// # Errors
    /// Fails if the object store does. The next collection does the same work.
    pub fn collect_garbage(&self) -> Result<(), StorageError> {
        self.uploader
            .get()
            .map_or(Ok(()), Uploader::collect_garbage)
    }

    /// Deletes all runs that are not in `runs`, in the data folder and in the object store. See
    /// [`Runs::retain`].
    ///
    /// # Errors
    /// Fails as [`Runs::retain`] does.
    pub fn retain_runs(&self, runs: HashSet<RunId>) -> Result<(), StorageError> {
        self.runs.retain(&runs)?;
        if let Some(uploader) = self.uploader.get() {
            uploader.delete_orphans(runs);
        }
        Ok(())
    }

    /// Returns the time since this server has extended the log in the object store. `None` if it is
    /// not the primary of a database there.
    pub fn upload_silence(&self) -> Option<Duration> {
        self.uploader.get().map(Uploader::silence)
    }

    /// Returns `true` if the log in the object store is long: a fold makes the start of other
    /// servers shorter.
    pub fn is_shared_log_long(&self) -> bool {
        self.uploader.get().is_some_and(Uploader::is_log_long)
    }

    /// Ends the upload of the log after the newest record, if the database is in an object store.
    /// Another server can take over at once. Nothing must be written afterwards.
    pub fn close_upload(&self) {
        if let Some(uploader) = self.uploader.get() {
            uploader.close();
        }
    }

    /// Returns the newest position up to which all records are durable, as
    /// [`wait_durable`](Storage::wait_durable) means it.
    pub fn durable(&self) -> Position {
        match self.uploader.get() {
            Some(uploader) => uploader.uploaded(),
            None => self.log.synced(),
        }
    }

    /// Drops the segments of the log whose records are all before `position`. If the catalog still
    /// needs some of them, it makes a checkpoint first. The [history](Log::keep_history) of the log
    /// is kept, and so is what was not compared with the log in an object store.
    ///
    /// # Errors
    /// Fails if the checkpoint, the sync of the log or the change of a file name fails.
    pub fn drop_log_before(&self, mut position: Position) -> Result<(), StorageError> {
        if let Some(uploader) = self.uploader.get() {
            let (checkpointed, checkpoint) = self.catalog.encode_checkpoint();
            uploader.collect(Garbage {
                needed: position,
                checkpoint,
                checkpointed,
            });
        }
        if let Some(compared) = &self.compared {
            position = position.min(compared.needed_from());
        }
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

/// The bytes of the log that are read in about a millisecond.
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
