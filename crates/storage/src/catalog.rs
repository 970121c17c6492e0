//! The catalog: small rows, all in memory, changed several at a time by compare-and-set. A change
//! is one record of the log; now and then a checkpoint file takes all rows, so that the log before
//! it can go.

mod change;
mod checkpoint;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use windrow_invariant::Bug;

use crate::disk::Disk;
use crate::error::StorageError;
use crate::log::{Log, Position};

pub use change::{ChangedRow, Expectation, RowChange};

/// The longest value of a row. The longest key has a quarter of that.
pub const ROW_BYTES_MAX: usize = 4096;
const KEY_BYTES_MAX: usize = ROW_BYTES_MAX / 4;

pub(crate) type Rows = BTreeMap<Vec<u8>, Arc<[u8]>>;

#[derive(Clone, Copy, Debug)]
pub struct CatalogOptions {
    /// A checkpoint is made after so many bytes of changes.
    pub checkpoint_bytes: u64,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        Self {
            checkpoint_bytes: 8 << 20,
        }
    }
}

/// Why a change of the catalog was not made.
#[derive(Clone, Debug)]
pub enum CatalogError {
    /// The row with this key is not what was expected; no row was changed.
    Conflict(Vec<u8>),
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
                write!(
                    f,
                    "the catalog row \"{key}\" was changed by someone else meanwhile"
                )
            }
            Self::Storage(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CatalogError {}

/// See the module. Shared by all threads.
pub struct Catalog {
    disk: Arc<dyn Disk>,
    options: CatalogOptions,
    log: Arc<Log>,
    rows: Arc<RwLock<Rows>>,
    /// One change at a time: between the comparison and the append nothing else may change rows.
    changing: Mutex<()>,
    /// One checkpoint at a time.
    checkpointing: Mutex<()>,
    checkpointed: AtomicU64,
    changed_bytes: AtomicU64,
}

/// Rows as they are read at the start: the newest checkpoint and the log records after it.
pub(crate) struct Loaded {
    rows: Rows,
    checkpointed: Position,
    changed_bytes: u64,
}

impl Loaded {
    pub fn checkpoint(disk: &Arc<dyn Disk>) -> Result<Self, StorageError> {
        let (checkpointed, rows) = checkpoint::load(disk)?;
        Ok(Self {
            rows,
            checkpointed,
            changed_bytes: 0,
        })
    }

    pub fn checkpointed(&self) -> Position {
        self.checkpointed
    }

    /// Applies one catalog record of the log.
    pub fn apply(&mut self, position: Position, payload: &[u8]) -> Result<(), StorageError> {
        if position <= self.checkpointed {
            return Ok(());
        }
        let changes = change::decode(payload).ok_or_else(|| {
            let place = format!("record {position} of the log");
            StorageError::damaged(place, "it is not a change of the catalog")
        })?;
        changes
            .into_iter()
            .for_each(|(key, value)| change::apply(&mut self.rows, key, value));
        self.changed_bytes += payload.len() as u64;
        Ok(())
    }
}

impl Catalog {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        options: CatalogOptions,
        log: Arc<Log>,
        loaded: Loaded,
    ) -> Self {
        Self {
            disk,
            options,
            log,
            rows: Arc::new(RwLock::new(loaded.rows)),
            changing: Mutex::new(()),
            checkpointing: Mutex::new(()),
            checkpointed: AtomicU64::new(loaded.checkpointed.0),
            changed_bytes: AtomicU64::new(loaded.changed_bytes),
        }
    }

    pub fn get(&self, key: &[u8]) -> Option<Arc<[u8]>> {
        self.rows.read().get(key).cloned()
    }

    /// The rows whose keys begin with `prefix`, in the order of their keys.
    pub fn scan(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Arc<[u8]>)> {
        let rows = self.rows.read();
        rows.range(prefix.to_vec()..)
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Makes all of `changes` or none, and returns when they are durable. `publish` runs with the
    /// position of the change, after the rows are changed and before anyone sees a snapshot of
    /// that position; it must be quick, and must not call the catalog or the log.
    ///
    /// # Errors
    /// `Conflict`: some row was not as expected. An error of the sync leaves the change in
    /// memory, and the log refusing writes.
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

    /// Makes a checkpoint when it is time. One that fails does not make the change fail, which is
    /// durable in the log; the next change tries again.
    fn count_changed(&self, bytes: u64) {
        let changed = self.changed_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if changed >= self.options.checkpoint_bytes {
            let _ = self.checkpoint();
        }
    }

    /// Writes all rows to a new checkpoint file and removes the older ones.
    pub fn checkpoint(&self) -> Result<(), StorageError> {
        let _checkpointing = self.checkpointing.lock();
        let (position, rows, changed_bytes) = {
            // Without a change under way, the rows are those of the newest position.
            let _changing = self.changing.lock();
            let changed_bytes = self.changed_bytes.load(Ordering::Relaxed);
            (self.log.written(), self.rows.read().clone(), changed_bytes)
        };
        if position <= self.checkpointed() {
            return Ok(());
        }
        // A checkpoint must not know more than the log will know after a crash.
        self.log.sync(position)?;
        checkpoint::save(&self.disk, position, &rows)?;
        self.checkpointed.store(position.0, Ordering::Release);
        // What was counted since then stays counted.
        let counted = self
            .changed_bytes
            .fetch_sub(changed_bytes, Ordering::Relaxed);
        debug_assert!(counted >= changed_bytes, "{changed_bytes} of {counted}");
        Ok(())
    }

    /// The rows that a catalog record of the log changed; a row without value went. None where it is
    /// no such record.
    pub fn read_change(payload: &[u8]) -> Option<Vec<ChangedRow>> {
        change::decode(payload)
    }

    /// Log records up to here are not needed for the catalog any more.
    pub fn checkpointed(&self) -> Position {
        Position(self.checkpointed.load(Ordering::Acquire))
    }
}
