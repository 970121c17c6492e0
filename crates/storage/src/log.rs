//! The write-ahead log: records of bytes, with positions without gaps, in segment files. Files of
//! dropped segments are used again.
//!
//! An append (`group`, `writer`):
//!
//! 1. Compress the payload and compute its checksum, on the caller's thread (`record`).
//! 2. If another thread writes a group, queue the record and wait. Otherwise lead the next group.
//! 3. The leader writes all records of the group with one write.
//! 4. The leader runs the publish steps in the order of positions, and wakes the group.
//!
//! A sync (`sync`) makes all written records durable. Concurrent callers share it. A timer syncs
//! records that no caller syncs. A start (`recover`) reads the segments and separates a torn end
//! from damage.

mod clock;
mod copy;
mod follower;
mod group;
mod reader;
mod record;
mod recover;
mod segment;
mod sync;
mod writer;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::disk::{Disk, DiskLock};
use crate::encryption::DataKeys;
use crate::error::StorageError;
use crate::position::Position;

pub use clock::ClusterTime;
pub use follower::{Content, FollowedRecord, Follower};
pub use reader::{LogReader, LogRecord};
pub use record::PAYLOAD_BYTES_MAX;

pub(crate) use copy::{LogCopy, remove_log};
use follower::Arrival;
use group::Queue;
use record::EncodedRecord;
pub(crate) use record::{Kind, StoredPayload};
use segment::Segments;
use sync::SyncState;
use writer::Writer;

/// The options of a [`Log`].
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// A new segment begins if the next group would make the current one larger than this. 64 MB by
    /// default.
    pub segment_bytes: u64,
    /// The largest number of dropped segment files that are kept for reuse. 4 by default.
    pub recycled_max: usize,
    /// The interval after which the timer syncs a written record. `None`: only [`Log::sync`] syncs.
    /// 100 ms by default.
    pub sync_interval: Option<Duration>,
    /// Returns the time in milliseconds since 1970. The system's clock by default.
    pub clock: fn() -> u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            recycled_max: 4,
            sync_interval: Some(Duration::from_millis(100)),
            clock: clock::system_millis,
        }
    }
}

/// The write-ahead log of a data folder. All threads share it. Its drop syncs and closes it.
///
/// ```
/// use std::sync::Arc;
/// use windrow_storage::{MemoryDisk, Position, Storage, StorageOptions};
///
/// let storage = Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default())?;
/// let log = &storage.log;
/// // The payload is the concatenation of the pieces.
/// let first = log.append(&[b"one ", b"record"], |_position| {})?;
/// let second = log.append(&[b"another"], |_position| {})?;
/// assert_eq!((first, second), (Position(1), Position(2)));
/// log.sync(second)?;
/// assert_eq!(log.synced(), second);
/// # Ok::<(), windrow_storage::StorageError>(())
/// ```
pub struct Log {
    shared: Arc<Shared>,
    timer: Option<JoinHandle<()>>,
    _lock: Arc<DiskLock>,
}

/// The state that appenders, syncs, followers and the timer share. Locks are taken in the order of
/// the fields.
struct Shared {
    disk: Arc<dyn Disk>,
    options: LogOptions,
    /// The keys of an encrypted data folder.
    keys: Option<Arc<DataKeys>>,
    queue: Mutex<Queue>,
    /// Held by the leader of a group while it writes.
    writer: Mutex<Writer>,
    syncing: Mutex<SyncState>,
    sync_ended: Condvar,
    segments: Mutex<Segments>,
    /// The newest position whose publish step has run.
    written: AtomicU64,
    /// All records up to this position are durable.
    synced: AtomicU64,
    /// The time of the newest record, in milliseconds since 1970.
    millis: AtomicU64,
    /// True if the timer has records to sync.
    dirty: AtomicBool,
    timer: OnceLock<Thread>,
    closing: AtomicBool,
    arrival: Arrival,
    /// The bytes of segments that are kept for followers only.
    history_bytes: AtomicU64,
    /// The newest record without a time. Earlier versions wrote such records.
    untimed: Position,
    /// True while only copies of records of another server are appended.
    following: AtomicBool,
    /// The first failure after which the content of the log is unknown.
    refusing: OnceLock<StorageError>,
    /// If the log ended with an end marker when it was opened: its newest position then.
    /// Otherwise 0.
    ended_at: Position,
}

/// The data folder of a log.
pub(crate) struct LogFolder {
    pub disk: Arc<dyn Disk>,
    /// The keys of an encrypted data folder.
    pub keys: Option<Arc<DataKeys>>,
    pub lock: Arc<DiskLock>,
}

impl Log {
    /// Recovers the log and starts the timer. Calls `visit` with each catalog record from `needed`
    /// on, in order. It may also call it with older ones.
    ///
    /// Fails with `Damaged` if durable bytes have changed, and with errors of the disk and of
    /// `visit`.
    pub(crate) fn open(
        folder: LogFolder,
        options: LogOptions,
        needed: Position,
        visit: impl FnMut(Position, &[u8]) -> Result<(), StorageError>,
    ) -> Result<Log, StorageError> {
        let LogFolder { disk, keys, lock } = folder;
        let recovered = recover::recover(&disk, keys.as_deref(), &options, needed, visit)?;
        let newest = recovered.newest;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            writer: Mutex::new(Writer::after(newest, recovered.millis)),
            syncing: Mutex::default(),
            sync_ended: Condvar::new(),
            segments: Mutex::new(recovered.segments),
            written: AtomicU64::new(newest.0),
            synced: AtomicU64::new(newest.0),
            millis: AtomicU64::new(recovered.millis),
            dirty: AtomicBool::new(false),
            timer: OnceLock::new(),
            closing: AtomicBool::new(false),
            arrival: Arrival::default(),
            history_bytes: AtomicU64::new(0),
            untimed: recovered.untimed,
            following: AtomicBool::new(false),
            refusing: OnceLock::new(),
            ended_at: if recovered.has_end_marker {
                newest
            } else {
                Position::ZERO
            },
            keys,
            disk,
            options,
        });
        let timer = sync::start_timer(&shared)?;
        Ok(Log {
            shared,
            timer,
            _lock: lock,
        })
    }

    /// Appends one record and returns its position. The payload is the concatenation of `payload`,
    /// at most [`PAYLOAD_BYTES_MAX`] bytes. The record is durable after [`Log::sync`].
    ///
    /// `publish` runs after the operating system has the bytes of the record and before `append`
    /// returns. It runs in the order of positions. It may run on the thread of another appender,
    /// and other appenders wait for it, so it must be quick and must not append. It does not run if
    /// the write fails.
    ///
    /// # Errors
    /// - `TooLarge`: the payload is too long. Nothing was written.
    /// - `RefusingWrites`: an earlier failure left the content of the log unknown. Nothing was
    ///   written, except if `publish` or the thread that wrote the group panicked: then the record
    ///   may be in the log.
    /// - All others, such as `Full`: if [`takes_writes`](Log::takes_writes) still returns `true`,
    ///   nothing was written. Otherwise the record may be in the log.
    pub fn append<P>(&self, payload: &[&[u8]], publish: P) -> Result<Position, StorageError>
    where
        P: FnOnce(Position) + Send + 'static,
    {
        self.shared.append(Kind::Data, payload, publish)
    }

    pub(crate) fn append_catalog<P>(
        &self,
        payload: &[u8],
        publish: P,
    ) -> Result<Position, StorageError>
    where
        P: FnOnce(Position) + Send + 'static,
    {
        self.shared.append(Kind::Catalog, &[payload], publish)
    }

    /// Appends a copy of a record of another log. The caller appends nothing else meanwhile, and
    /// the record is the next one. See [`append`](Log::append) for `publish` and the errors.
    pub(crate) fn append_copy<P>(
        &self,
        payload: &StoredPayload,
        publish: P,
    ) -> Result<Position, StorageError>
    where
        P: FnOnce(Position) + Send + 'static,
    {
        let record = EncodedRecord::copy_of(payload, self.shared.keys.is_some());
        self.shared.append_encoded(record, publish)
    }

    /// Sets whether only copies of records of another server can be appended. Other appends then
    /// fail with `NotPrimary`.
    pub(crate) fn set_following(&self, following: bool) {
        self.shared.following.store(following, Ordering::Release);
    }

    /// Makes all later writes fail with `error`.
    pub(crate) fn refuse_with(&self, error: StorageError) {
        self.shared.refuse_with(error);
    }

    /// Makes all records up to `position` durable. Concurrent callers share one sync.
    ///
    /// # Errors
    /// Fails with `Bug` if the record is not written yet, and with `RefusingWrites` or the error of
    /// the disk if a sync fails. After a failed sync the log accepts no writes.
    pub fn sync(&self, position: Position) -> Result<(), StorageError> {
        self.shared.sync(position)
    }

    /// Returns `false` after a failure that leaves the content of the log unknown. The log then
    /// refuses writes until the folder is opened again.
    pub fn takes_writes(&self) -> bool {
        self.shared.refusing.get().is_none()
    }

    /// Returns the newest position whose publish step has run. Readers take it as their snapshot.
    pub fn written(&self) -> Position {
        Position(self.shared.written.load(Ordering::Acquire))
    }

    /// Returns the newest position up to which all records are durable.
    pub fn synced(&self) -> Position {
        Position(self.shared.synced.load(Ordering::Acquire))
    }

    /// Returns a reader of the data records from `position` to the newest one at the time of the
    /// call. For the start of the database: the reader has a whole segment in memory.
    pub fn read_from(&self, position: Position) -> LogReader {
        LogReader::new(
            self.shared.disk.clone(),
            &self.shared.segments.lock(),
            position,
            self.written(),
        )
    }

    /// Drops the segments whose records are all before `position`. The newest of them are kept, up
    /// to the size of the [history](Log::keep_history).
    ///
    /// # Errors
    /// Fails if the sync of the log or the change of a file name fails.
    pub fn drop_before(&self, position: Position) -> Result<(), StorageError> {
        self.shared.drop_before(position)
    }

    /// Returns `true` if [`Log::drop_before`] would drop a segment.
    pub fn can_drop_before(&self, position: Position) -> bool {
        let kept_bytes = self.shared.history_bytes.load(Ordering::Relaxed);
        let segments = self.shared.segments.lock();
        segments.count_droppable(position, kept_bytes) > 0
    }

    /// Sets the size of the history, in bytes: [`Log::drop_before`] keeps segments up to this size
    /// for [followers](Log::follow). 0 at the start.
    pub fn keep_history(&self, bytes: u64) {
        self.shared.history_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the number of bytes of the log after `position`. The result may be about 256 KB too
    /// large.
    pub fn bytes_since(&self, position: Position) -> u64 {
        self.shared.segments.lock().bytes_since(position)
    }

    /// Makes the next record the first of a new segment.
    pub(crate) fn end_segment(&self) {
        self.shared.writer.lock().end_segment();
    }

    /// Returns the number of bytes that a start reads if the catalog's checkpoint is at
    /// `checkpointed`.
    pub(crate) fn bytes_at_start(&self, checkpointed: Position) -> u64 {
        self.shared.segments.lock().bytes_at_start(checkpointed)
    }

    /// Returns the first position that was not dropped. If the log has no record, returns the
    /// position of the next one.
    pub fn first(&self) -> Position {
        self.shared
            .segments
            .lock()
            .first()
            .unwrap_or(self.written().next())
    }
}

impl Shared {
    fn check_not_refusing(&self) -> Result<(), StorageError> {
        match self.refusing.get() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Makes all later writes fail with `because`.
    fn refuse(&self, because: String) {
        self.refuse_with(StorageError::RefusingWrites { because });
    }

    /// Makes all later writes fail with `error`.
    fn refuse_with(&self, error: StorageError) {
        // Keeps the first reason: later failures are its consequences.
        let _ = self.refusing.set(error);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        if let Some(timer) = self.timer.take() {
            timer.thread().unpark();
            // A panic of the timer was already printed.
            let _ = timer.join();
        }
        self.shared.close();
    }
}
