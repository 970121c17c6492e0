//! The work of a primary in the object store: it uploads the log ([`upload`]) and collects garbage
//! ([`garbage`]). Each has its own thread, or the caller runs it step by step.

mod garbage;
mod upload;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::LogWriter;
use super::members::{Builder, KnownMembers, Liveness};
use crate::bucket::{Bucket, RetryPolicy};
use crate::compared_log::ComparedLog;
use crate::error::StorageError;
use crate::local_state::Id;
use crate::log::Log;
use crate::position::Position;
use crate::run_id::RunId;
use crate::run_objects::RunObjects;

use upload::Upload;

use garbage::KnownRuns;

pub(crate) use garbage::Garbage;

/// Uploads the log and collects garbage while this server is the primary. Its drop ends both.
pub(crate) struct Uploader {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// The time at which this server became the primary.
    began: Instant,
    /// The upload, if the caller runs it. `None` if it has a thread.
    upload: Option<Mutex<Upload>>,
}

/// The parts with which an uploader is created.
pub(crate) struct UploadParts {
    pub log: Arc<Log>,
    pub compared: Arc<ComparedLog>,
    pub options: ClusterOptions,
    pub objects: Arc<RunObjects>,
    pub writer: LogWriter,
    pub members: Arc<KnownMembers>,
}

/// The options of a server of a database in an object store.
#[derive(Clone)]
pub struct ClusterOptions {
    /// The object store.
    pub bucket: Arc<dyn Bucket>,
    /// The address that clients connect to, for the other servers.
    pub address: String,
    /// The id of the server if its data folder is new. `None`: a random one.
    pub new_server: Option<[u8; 16]>,
    /// The largest size of the parts of runs that are kept on the local disk, in bytes.
    pub cache_bytes: u64,
    /// The interval in which a primary without writes extends the log.
    pub heartbeat: Duration,
    /// Objects that are not needed any more are deleted after this time, because other servers may
    /// be reading them. A server that is further behind starts again from a checkpoint.
    pub retention: Duration,
    /// A server that has announced nothing for this time is removed: no objects are kept for it.
    pub member_lifetime: Duration,
    /// The log is shortened when a server without local data has to read more objects than this.
    pub log_objects_max: u64,
    /// Decides if failed requests are tried again.
    pub retry_policy: Arc<dyn RetryPolicy + Send + Sync>,
    /// The thread that runs the uploads.
    pub uploads: Uploads,
}

/// The thread that runs the work of a primary in the object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uploads {
    /// Separate threads.
    Threads,
    /// The thread of the caller, with [`Storage::upload`](crate::Storage::upload) and
    /// [`Storage::collect_garbage`](crate::Storage::collect_garbage). For deterministic tests.
    Caller,
}

struct Shared {
    log: Arc<Log>,
    options: ClusterOptions,
    objects: Arc<RunObjects>,
    /// The servers that live.
    members: Arc<KnownMembers>,
    server: Id,
    epoch: u64,
    state: Mutex<State>,
    /// Notified when `uploaded` or `state` changes.
    changed: Condvar,
    /// Notified when the next object has to be created without delay.
    urgent: Condvar,
    /// All records up to this position are in the shared log.
    uploaded: AtomicU64,
    closing: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Log objects, oldest first, since this server is the primary.
    written: VecDeque<WrittenObject>,
    /// The newest object when garbage was last to be collected. A server without local data reads
    /// the objects since then, if that collection succeeds.
    shortened_at: u64,
    /// The number of objects whose creation has begun, and of those that exist.
    begun: u64,
    created: u64,
    /// An object must be created, even if there are no records: the objects that must exist.
    requested: u64,
    /// The newest position for which a caller waits or has waited.
    awaited: Position,
    /// The reason why the log cannot be extended any more.
    ended: Option<StorageError>,
    /// The garbage to collect.
    garbage: Option<Garbage>,
    known_runs: Option<KnownRuns>,
    /// The servers that build shares of indexes.
    builders: Vec<Builder>,
    liveness: Liveness,
    /// The number of the newest announcement of this server.
    heartbeat_number: u64,
}

impl State {
    /// Returns the number of the newest log object that this server has created. 0 if there is
    /// none.
    fn newest(&self) -> u64 {
        self.written.back().map_or(0, |it| it.number)
    }
}

/// A log object that this server has created.
#[derive(Clone, Copy)]
struct WrittenObject {
    number: u64,
    first: Position,
    created: Instant,
}

/// Waits between attempts, and ends when the uploader closes.
struct UntilClosed<'s> {
    shared: &'s Shared,
    /// The end of the attempts after the close.
    deadline: Option<Instant>,
}

impl RetryPolicy for UntilClosed<'_> {
    fn should_retry(&self, attempt: u32, error: &StorageError) -> bool {
        if self.shared.closing.load(Ordering::Acquire) {
            let is_over = |deadline: Instant| Instant::now() >= deadline;
            if self.deadline.is_none_or(is_over) {
                return false;
            }
        }
        self.shared
            .options
            .retry_policy
            .should_retry(attempt, error)
    }
}

impl Uploader {
    /// Starts the work of a primary.
    pub fn start(parts: UploadParts) -> Result<Uploader, StorageError> {
        let UploadParts {
            log,
            compared,
            options,
            objects,
            writer,
            members,
        } = parts;
        let end = writer.end();
        let uploads = options.uploads;
        let shared = Arc::new(Shared {
            log,
            options,
            objects,
            members,
            server: end.writer,
            epoch: end.epoch,
            state: Mutex::new(State {
                shortened_at: end.number,
                ..State::default()
            }),
            changed: Condvar::new(),
            urgent: Condvar::new(),
            uploaded: AtomicU64::new(end.position.previous().0),
            closing: AtomicBool::new(false),
        });
        let local = shared.log.follow(end.position);
        let mut upload = Upload::new(shared.clone(), writer, local, compared);
        if uploads == Uploads::Caller {
            return Ok(Uploader {
                shared,
                threads: Mutex::default(),
                began: Instant::now(),
                upload: Some(Mutex::new(upload)),
            });
        }
        let collecting = shared.clone();
        let threads = vec![
            spawn("log upload", Box::new(move || upload.run()))?,
            spawn("collection", Box::new(move || collecting.run_collection()))?,
        ];
        Ok(Uploader {
            shared,
            threads: Mutex::new(threads),
            began: Instant::now(),
            upload: None,
        })
    }

    /// Creates the next log object, if the caller continues the upload. Does nothing while it is
    /// in progress.
    ///
    /// # Errors
    /// Fails with `Fenced` if another server has taken over the log, and as [`Uploader::wait`]
    /// does.
    pub fn upload(&self) -> Result<(), StorageError> {
        match self.upload.as_ref().and_then(Mutex::try_lock) {
            Some(mut upload) => upload.step(),
            None => Ok(()),
        }
    }

    /// Reads the announcements of the other servers and collects garbage that is due, if the upload
    /// has no threads.
    ///
    /// # Errors
    /// Fails if the object store does. The next collection does the same work.
    pub fn collect_garbage(&self) -> Result<(), StorageError> {
        match self.upload {
            Some(_) => self.shared.update_members_and_collect(),
            None => Ok(()),
        }
    }

    /// Returns `true` if many log objects were created since garbage was last to be collected.
    pub fn is_log_long(&self) -> bool {
        let state = self.shared.state.lock();
        state.newest().saturating_sub(state.shortened_at) > self.shared.options.log_objects_max
    }

    /// Returns the time since the newest log object was created.
    pub fn silence(&self) -> Duration {
        let newest = self.shared.state.lock().written.back().map(|it| it.created);
        newest.unwrap_or(self.began).elapsed()
    }

    /// Returns the newest position up to which all records are in the object store.
    pub fn uploaded(&self) -> Position {
        self.shared.uploaded()
    }

    /// Waits until the records up to `position` are in the object store, at most `at_most`. Returns
    /// `false` if they are not yet.
    ///
    /// # Errors
    /// Fails with `Fenced` if another server has taken over the log: the records are not in it.
    pub fn wait(&self, position: Position, at_most: Duration) -> Result<bool, StorageError> {
        let is_uploaded = || self.uploaded() >= position;
        if is_uploaded() {
            return Ok(true);
        }
        self.shared.hurry(position);
        self.shared
            .wait(Instant::now() + at_most, |_| is_uploaded())
    }

    /// Requests a log object that is created after this call has begun. See
    /// [`wait_confirmed`](Uploader::wait_confirmed).
    pub fn request_confirmation(&self) -> Confirmation {
        let mut state = self.shared.state.lock();
        let object = state.begun + 1;
        state.requested = state.requested.max(object);
        drop(state);
        self.shared.urgent.notify_all();
        self.shared.log.wake_followers();
        Confirmation { object }
    }

    /// Waits until the requested log object exists, at most `at_most`. It proves that no other
    /// server had taken over when it was requested. Returns `false` if it does not exist yet.
    ///
    /// # Errors
    /// Fails with `Fenced` if another server has taken over the log.
    pub fn wait_confirmed(
        &self,
        confirmation: Confirmation,
        at_most: Duration,
    ) -> Result<bool, StorageError> {
        let deadline = Instant::now() + at_most;
        self.shared
            .wait(deadline, |state| state.created >= confirmation.object)
    }

    /// Passes on what a fold has made collectable. Replaces what was not begun yet.
    pub fn collect(&self, garbage: Garbage) {
        let mut state = self.shared.state.lock();
        state.shortened_at = state.newest().max(state.shortened_at);
        state.garbage = Some(garbage);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Deletes the runs of earlier epochs that are not in `runs`, in the background.
    pub fn delete_orphans(&self, runs: HashSet<RunId>) {
        self.shared.state.lock().known_runs = Some(KnownRuns {
            runs,
            position: self.shared.log.written(),
        });
        self.shared.changed.notify_all();
    }

    /// Uploads what was written, and tells the other servers that this one ends. Gives up after a
    /// few seconds: what was not uploaded is in the local log.
    pub fn close(&self) {
        {
            let _state = self.shared.state.lock();
            self.shared.closing.store(true, Ordering::Release);
        }
        self.shared.changed.notify_all();
        self.shared.urgent.notify_all();
        self.shared.log.wake_followers();
        for thread in self.threads.lock().drain(..) {
            // A panic was already printed.
            let _ = thread.join();
        }
    }

    /// Returns the address that clients connect to.
    pub fn address(&self) -> &str {
        &self.shared.options.address
    }

    /// Returns the servers that build shares of indexes.
    pub fn builders(&self) -> Vec<Builder> {
        self.shared.state.lock().builders.clone()
    }

    /// Returns the number of takeovers of the log before this primary, its own included.
    pub fn epoch(&self) -> u64 {
        self.shared.epoch
    }
}

impl Drop for Uploader {
    fn drop(&mut self) {
        self.close();
    }
}

/// A log object that was requested. Only the storage that returned it knows it.
#[derive(Clone, Copy, Debug)]
pub struct Confirmation {
    /// The object that must exist, counted since this server is the primary.
    object: u64,
}

fn spawn(name: &str, run: Box<dyn FnOnce() + Send>) -> Result<JoinHandle<()>, StorageError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(run)
        .map_err(|error| StorageError::from_io("a thread of the object store", error))
}

impl Shared {
    fn uploaded(&self) -> Position {
        Position(self.uploaded.load(Ordering::Acquire))
    }

    /// Records that a caller waits for the upload of the records up to `position`.
    fn hurry(&self, position: Position) {
        let mut state = self.state.lock();
        if position > state.awaited {
            state.awaited = position;
            drop(state);
            self.urgent.notify_all();
        }
    }

    /// Waits until `is_done`. Returns `false` if it is not at the deadline.
    fn wait(
        &self,
        deadline: Instant,
        is_done: impl Fn(&State) -> bool,
    ) -> Result<bool, StorageError> {
        let mut state = self.state.lock();
        loop {
            if is_done(&state) {
                return Ok(true);
            }
            if let Some(error) = &state.ended {
                return Err(error.clone());
            }
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return Ok(is_done(&state));
            }
        }
    }
}
