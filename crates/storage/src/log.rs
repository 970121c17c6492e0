//! The log: records of bytes with dense positions, in segment files that are used again.
//!
//! An append is: encode (caller's thread) → queue → one write for the group → publish in order →
//! return. A sync is shared by all who wait. What a crash leaves is judged in `recover`.

mod clock;
mod follower;
mod group;
mod reader;
mod record;
mod recover;
mod segment;
mod sync;
mod writer;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::disk::{Disk, DiskLock};
use crate::error::StorageError;

pub use clock::ClusterTime;
pub use follower::{Content, Follower, Written};
pub use reader::{LogReader, LogRecord};
pub use record::PAYLOAD_BYTES_MAX;

use follower::Arrival;
use group::Queue;
pub(crate) use record::Kind;
use segment::Segments;
use sync::Syncing;
use writer::Writer;

/// The number of a record in the log: 1, 2, 3 and so on. 0 is before every record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

impl Position {
    /// Before every record: the snapshot that sees nothing.
    pub const ZERO: Position = Position(0);

    pub fn next(self) -> Position {
        Position(self.0 + 1)
    }

    /// Before position 0 is nothing: it stays 0.
    pub fn previous(self) -> Position {
        Position(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// A segment file is closed when the next group would take it past this.
    pub segment_bytes: u64,
    /// How many dropped segments are kept to be written again.
    pub recycled_max: usize,
    /// The longest that a record stays unsynced; `None`: only [`Log::sync`] syncs.
    pub sync_interval: Option<Duration>,
    /// The time in milliseconds since 1970.
    pub clock: fn() -> u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            recycled_max: 4,
            sync_interval: Some(Duration::from_millis(100)),
            clock: clock::system,
        }
    }
}

/// See the module. Shared by all threads; closing is dropping it.
pub struct Log {
    shared: Arc<Shared>,
    timer: Option<JoinHandle<()>>,
    _lock: Arc<DiskLock>,
}

/// What appenders, syncs and the timer share. Locks are taken in the order of the fields.
struct Shared {
    disk: Arc<dyn Disk>,
    options: LogOptions,
    queue: Mutex<Queue>,
    /// Held by the leader of a group while it writes, by nobody else for long.
    writer: Mutex<Writer>,
    syncing: Mutex<Syncing>,
    sync_ended: Condvar,
    segments: Mutex<Segments>,
    /// The newest position whose publish has run.
    written: AtomicU64,
    synced: AtomicU64,
    /// When the newest record was written.
    millis: AtomicU64,
    /// There is something that the timer has to sync.
    dirty: AtomicBool,
    timer: OnceLock<Thread>,
    closing: AtomicBool,
    arrival: Arrival,
    /// So many bytes of segments are kept that nothing needs but those who follow the log.
    history_bytes: AtomicU64,
    /// The newest record that does not say when it was written.
    untimed: u64,
    refusing: OnceLock<String>,
    /// The newest position when the log was opened, if it ended with the mark of a close.
    marked: u64,
}

impl Log {
    /// Reads what is there, cuts a torn end, and shows each catalog record from `needed` on to `visit`, in
    /// order, and perhaps older ones.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        options: LogOptions,
        lock: Arc<DiskLock>,
        needed: Position,
        visit: impl FnMut(Position, &[u8]) -> Result<(), StorageError>,
    ) -> Result<Log, StorageError> {
        let recovered = recover::recover(&disk, &options, needed, visit)?;
        let newest = recovered.newest.0;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            writer: Mutex::new(Writer::after(newest, recovered.millis)),
            syncing: Mutex::default(),
            sync_ended: Condvar::new(),
            segments: Mutex::new(recovered.segments),
            written: AtomicU64::new(newest),
            synced: AtomicU64::new(newest),
            millis: AtomicU64::new(recovered.millis),
            dirty: AtomicBool::new(false),
            timer: OnceLock::new(),
            closing: AtomicBool::new(false),
            arrival: Arrival::default(),
            history_bytes: AtomicU64::new(0),
            untimed: recovered.untimed.0,
            refusing: OnceLock::new(),
            marked: if recovered.marked { newest } else { 0 },
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

    /// Appends one record, whose payload is the concatenation of `payload`, at most
    /// [`PAYLOAD_BYTES_MAX`] bytes.
    ///
    /// `publish` of each record runs in the order of positions, after the operating system took
    /// the record's bytes and before `append` returns. It must be quick and must not append: it
    /// may run on another appender's thread while others wait. When the write fails it does not
    /// run.
    ///
    /// # Errors
    /// `Full` and `RefusingWrites`: nothing happened. Everything else: nothing happened and the log
    /// goes on, or it may have happened and this log takes no more writes.
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

    /// Returns when everything up to `position`, which an append returned, is durable. Concurrent
    /// callers share one sync. A position that is not written yet is a [bug](StorageError::Bug).
    pub fn sync(&self, position: Position) -> Result<(), StorageError> {
        self.shared.sync(position)
    }

    /// False once a failure has left open what the log has: then it takes no more writes.
    pub fn takes_writes(&self) -> bool {
        self.shared.refusing.get().is_none()
    }

    /// The newest position whose publish has run: what a reader takes as its snapshot.
    pub fn written(&self) -> Position {
        Position(self.shared.written.load(Ordering::Acquire))
    }

    /// Everything up to here is durable.
    pub fn synced(&self) -> Position {
        Position(self.shared.synced.load(Ordering::Acquire))
    }

    /// The data records from `position` to what is written now. For the start of the database:
    /// it holds a whole segment in memory.
    pub fn read_from(&self, position: Position) -> LogReader {
        LogReader::new(
            self.shared.disk.clone(),
            &self.shared.segments.lock(),
            position,
            self.written(),
        )
    }

    /// Lets go of the segments whose records are all before `position`, as far as they are more than
    /// the history that is kept.
    pub fn drop_before(&self, position: Position) -> Result<(), StorageError> {
        self.shared.drop_before(position)
    }

    /// Whether [`Log::drop_before`] would free something.
    pub fn can_drop_before(&self, position: Position) -> bool {
        let kept_bytes = self.shared.history_bytes.load(Ordering::Relaxed);
        let segments = self.shared.segments.lock();
        segments.count_droppable(position, kept_bytes) > 0
    }

    /// From now on so many bytes are kept of what [`Log::drop_before`] could let go of.
    pub fn keep_history(&self, bytes: u64) {
        self.shared.history_bytes.store(bytes, Ordering::Relaxed);
    }

    /// About how many bytes of the log come after `position`, to 256 KB.
    pub fn bytes_since(&self, position: Position) -> u64 {
        self.shared.segments.lock().bytes_since(position)
    }

    /// The first position that can still be read; one past the newest when there is none.
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
            Some(because) => Err(StorageError::RefusingWrites {
                because: because.clone(),
            }),
            None => Ok(()),
        }
    }

    /// From here on every write fails, and says why.
    fn refuse(&self, because: String) {
        // The first reason is the true one; later failures follow from it.
        let _ = self.refusing.set(because);
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        if let Some(timer) = self.timer.take() {
            timer.thread().unpark();
            // It only ends by returning; a panic there has been printed already.
            let _ = timer.join();
        }
        self.shared.close();
    }
}
