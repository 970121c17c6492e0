//! The catalog: small rows in memory. A change is a compare-and-set of several rows and is one
//! record of the log. A checkpoint file has all rows at one position, so that the log before that
//! position can be dropped.
//!
//! A change:
//!
//! 1. Check sizes and keys, and encode the change.
//! 2. Take `changing`. Compare the rows with what the change expects.
//! 3. Append the record. Its publish step changes the rows and runs the caller's `publish`.
//! 4. Release `changing` and sync the log.
//! 5. If enough bytes were changed, make a checkpoint.
//!
//! A checkpoint:
//!
//! 1. Take `checkpointing`, and `changing` while the rows are copied.
//! 2. Sync the log up to the position of the copy. Without this step, the checkpoint could have
//!    changes that the log does not have after a crash.
//! 3. Write and sync the new file, and remove the older ones (`checkpoint`).

mod change;
mod checkpoint;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use windrow_invariant::Bug;

use crate::disk::Disk;
use crate::encryption::DataKeys;
use crate::error::StorageError;
use crate::log::{Log, StoredPayload};
use crate::position::Position;

pub use change::{ChangedRow, Expectation, RowChange};
pub(crate) use checkpoint::{remove_checkpoints, save_encoded};

/// The largest value of a row, in bytes. The largest key has a quarter of that.
pub const ROW_BYTES_MAX: usize = 4096;
const KEY_BYTES_MAX: usize = ROW_BYTES_MAX / 4;

pub(crate) type Rows = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// The options of a [`Catalog`].
#[derive(Clone, Copy, Debug)]
pub struct CatalogOptions {
    /// The catalog makes a checkpoint after this many bytes of changes. 8 MB by default.
    pub checkpoint_bytes: u64,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self {
            checkpoint_bytes: 8 << 20,
        }
    }
}

/// The error of a change of the catalog.
#[derive(Clone, Debug)]
pub enum CatalogError {
    /// The row with this key is not as the change expects. No row was changed.
    Conflict(Vec<u8>),
    /// The storage failed, or a row is too large.
    Storage(StorageError),
}

impl From<StorageError> for CatalogError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<Bug> for CatalogError {
    fn from(bug: Bug) -> Self {
        Self::Storage(bug.into())
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict(key) => {
                let key = key.escape_ascii();
                write!(f, "the catalog row \"{key}\" was changed by another writer")
            }
            Self::Storage(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CatalogError {}

/// Small rows, ordered by key. All threads share it.
///
/// ```
/// use std::sync::Arc;
/// use windrow_storage::{
///     CatalogError, Expectation, MemoryDisk, RowChange, Storage, StorageOptions,
/// };
///
/// let storage = Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default())?;
/// let create = RowChange::put("key", "value").expecting(Expectation::Absent);
/// storage.catalog.change(vec![create.clone()], |_position| {})?;
/// assert_eq!(storage.catalog.get(b"key").as_deref(), Some(&b"value"[..]));
///
/// let again = storage.catalog.change(vec![create], |_position| {});
/// assert!(matches!(again, Err(CatalogError::Conflict(_))));
/// # Ok::<(), CatalogError>(())
/// ```
pub struct Catalog {
    disk: Arc<dyn Disk>,
    options: CatalogOptions,
    /// The keys of an encrypted data folder.
    keys: Option<Arc<DataKeys>>,
    log: Arc<Log>,
    rows: Arc<RwLock<Rows>>,
    /// Serializes changes: no other change may run between the comparison and the append.
    changing: Mutex<()>,
    /// Serializes checkpoints.
    checkpointing: Mutex<()>,
    /// The position of the newest checkpoint.
    checkpointed: AtomicU64,
    /// The bytes of changes since the newest checkpoint.
    changed_bytes: AtomicU64,
}

/// The rows during a start: those of the newest checkpoint, then changed by the log records after
/// it.
pub(crate) struct LoadedRows {
    rows: Rows,
    checkpointed: Position,
    changed_bytes: u64,
}

impl LoadedRows {
    pub fn checkpoint(disk: &Arc<dyn Disk>, keys: Option<&DataKeys>) -> Result<Self, StorageError> {
        let (checkpointed, rows) = checkpoint::load(disk, keys)?;
        Ok(Self {
            rows,
            checkpointed,
            changed_bytes: 0,
        })
    }

    /// Returns no rows.
    pub fn empty() -> Self {
        Self {
            rows: Rows::new(),
            checkpointed: Position::ZERO,
            changed_bytes: 0,
        }
    }

    /// Reads the checkpoint of another server. The error describes the defect.
    pub fn decode(bytes: &[u8], position: Position) -> Result<Self, &'static str> {
        Ok(Self {
            rows: checkpoint::decode(bytes, None, position)?,
            checkpointed: position,
            changed_bytes: 0,
        })
    }

    pub fn into_rows(self) -> Rows {
        self.rows
    }

    pub fn checkpointed(&self) -> Position {
        self.checkpointed
    }

    /// Applies one catalog record of the log. A record that the checkpoint contains is skipped.
    /// Fails with `Damaged` if the payload is not a change.
    pub fn apply(&mut self, position: Position, payload: &[u8]) -> Result<(), StorageError> {
        if position <= self.checkpointed {
            return Ok(());
        }
        let changes = change::decode(payload).ok_or_else(|| {
            let place = format!("record {position} of the log");
            StorageError::damaged(place, "it is not a change of the catalog")
        })?;
        for ChangedRow { key, value } in changes {
            change::apply(&mut self.rows, key, value);
        }
        self.changed_bytes += payload.len() as u64;
        Ok(())
    }
}

impl Catalog {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: CatalogOptions,
        keys: Option<Arc<DataKeys>>,
        log: Arc<Log>,
        loaded: LoadedRows,
    ) -> Self {
        Self {
            disk,
            options,
            keys,
            log,
            rows: Arc::new(RwLock::new(loaded.rows)),
            changing: Mutex::new(()),
            checkpointing: Mutex::new(()),
            checkpointed: AtomicU64::new(loaded.checkpointed.0),
            changed_bytes: AtomicU64::new(loaded.changed_bytes),
        }
    }

    /// Returns the value of a row.
    pub fn get(&self, key: &[u8]) -> Option<Arc<[u8]>> {
        self.rows.read().get(key).cloned()
    }

    /// Returns the rows whose keys begin with `prefix`, in the order of their keys.
    pub fn scan(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Arc<[u8]>)> {
        let rows = self.rows.read();
        rows.range(prefix.to_vec()..)
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Makes all of `changes` or none of them, and returns after they are durable. Returns the
    /// position of their record.
    ///
    /// `publish` runs after the rows are changed and before a snapshot of the position can be
    /// taken. It must be quick, because other appenders wait for it. It must not call the catalog
    /// or the log: both hold locks.
    ///
    /// # Errors
    /// - `Conflict`: a row is not as expected. Nothing was changed.
    /// - `TooLarge`: a key or a value is too long. Nothing was changed.
    /// - `Bug`: two changes have the same key. Nothing was changed.
    /// - Errors of [`Log::append`].
    /// - Errors of [`Log::sync`]: the rows are changed in memory, and the log refuses writes.
    pub fn change<P>(&self, changes: Vec<RowChange>, publish: P) -> Result<Position, CatalogError>
    where
        P: FnOnce(Position) + Send + 'static,
    {
        change::check_sizes(&changes)?;
        change::check_keys(&changes)?;
        let payload = change::encode(&changes);
        let position = {
            let _changing = self.changing.lock();
            change::check_expectations(&self.rows.read(), &changes)?;
            let rows = self.rows.clone();
            self.log.append_catalog(&payload, move |position| {
                let mut rows = rows.write();
                for change in changes {
                    change::apply(&mut rows, change.key, change.value);
                }
                drop(rows);
                publish(position);
            })?
        };
        self.log.sync(position)?;
        self.count_changed(payload.len() as u64);
        Ok(position)
    }

    /// Makes the changes of a record of another log, and appends a copy of that record. The caller
    /// appends nothing else meanwhile.
    pub(crate) fn append_copy<P>(
        &self,
        record: &StoredPayload,
        changes: Vec<ChangedRow>,
        publish: P,
    ) -> Result<Position, StorageError>
    where
        P: FnOnce(Position) + Send + 'static,
    {
        let _changing = self.changing.lock();
        let rows = self.rows.clone();
        let position = self.log.append_copy(record, move |position| {
            let mut rows = rows.write();
            for ChangedRow { key, value } in changes {
                change::apply(&mut rows, key, value);
            }
            drop(rows);
            publish(position);
        })?;
        self.changed_bytes
            .fetch_add(u64::from(record.raw_bytes), Ordering::Relaxed);
        Ok(position)
    }

    /// Returns all rows as the bytes of a checkpoint, and their position.
    pub(crate) fn encode_checkpoint(&self) -> (Position, Vec<u8>) {
        let (position, rows) = {
            let _changing = self.changing.lock();
            (self.log.written(), self.rows.read().clone())
        };
        (position, checkpoint::encode(position, &rows))
    }

    /// Counts the bytes of a change, and makes a checkpoint if they reach the limit. A failed
    /// checkpoint is ignored: the change is durable in the log, and the next change tries again.
    fn count_changed(&self, bytes: u64) {
        let changed = self.changed_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if changed >= self.options.checkpoint_bytes {
            let _ = self.checkpoint();
        }
    }

    /// Writes all rows to a new checkpoint file and removes the older files. Does nothing if the
    /// log has not grown since the newest checkpoint.
    ///
    /// # Errors
    /// Fails if the sync of the log or the write of the file fails. The older checkpoint is then
    /// still valid.
    pub fn checkpoint(&self) -> Result<(), StorageError> {
        let _checkpointing = self.checkpointing.lock();
        let (position, rows, changed_bytes) = {
            // No change is between its append and its end, so the rows are those of `written`.
            let _changing = self.changing.lock();
            let changed_bytes = self.changed_bytes.load(Ordering::Relaxed);
            (self.log.written(), self.rows.read().clone(), changed_bytes)
        };
        if position <= self.checkpointed() {
            return Ok(());
        }
        // Otherwise the log could end before the checkpoint after a crash, and the next start would
        // fail.
        self.log.sync(position)?;
        checkpoint::save(&self.disk, self.keys.as_deref(), position, &rows)?;
        self.checkpointed.store(position.0, Ordering::Release);
        // Changes since the copy stay counted.
        let counted = self
            .changed_bytes
            .fetch_sub(changed_bytes, Ordering::Relaxed);
        debug_assert!(counted >= changed_bytes, "{changed_bytes} of {counted}");
        Ok(())
    }

    /// Returns the rows that a catalog record of the log changed. Returns `None` if `payload` is not
    /// that of a catalog record.
    ///
    /// ```
    /// use windrow_storage::Catalog;
    ///
    /// let payload = b"\x03\0\x05\0keyvalue";
    /// let rows = Catalog::read_change(payload).unwrap();
    /// assert_eq!(rows[0].key, b"key");
    /// assert_eq!(rows[0].value.as_deref(), Some(&b"value"[..]));
    /// ```
    pub fn read_change(payload: &[u8]) -> Option<Vec<ChangedRow>> {
        change::decode(payload)
    }

    /// Returns the position of the newest checkpoint. The catalog does not need the log up to this
    /// position.
    pub fn checkpointed(&self) -> Position {
        Position(self.checkpointed.load(Ordering::Acquire))
    }
}
