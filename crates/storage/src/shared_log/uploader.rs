//! The threads of a primary: one uploads the log, the other collects garbage.
//!
//! The upload thread creates the next log object from all records that were written since the last
//! one. One object is in flight at a time. If there are no records, it creates an empty object in
//! each heartbeat interval: other servers then know that the primary lives.
//!
//! Garbage collection, after a fold:
//!
//! 1. Wait until the log is uploaded up to the position of the checkpoint.
//! 2. Write the checkpoint of the catalog.
//! 3. Advance the boundary.
//! 4. Delete the log objects that it covers, except fences. Delete older checkpoints, and the runs
//!    that the uploaded log does not refer to any more.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::boundary::{self, Boundary, CheckpointName};
use super::log_object::ObjectKind;
use super::{LogEnd, LogWriter, delete_covered, members};
use crate::bucket::{Bucket, Patience, retry};
use crate::disk::Disk;
use crate::error::StorageError;
use crate::local_state::LocalState;
use crate::log::{Follower, Log, Position};
use crate::run_id::RunId;
use crate::run_objects::RunObjects;

/// An object is created when it has this many bytes of records, even if there are more.
const OBJECT_BYTES: usize = 8 << 20;
/// A close waits so long for the upload of the last records. They are in the local log.
const CLOSE_TIME: Duration = Duration::from_secs(10);
/// The interval in which the addresses of the servers are read.
const MEMBERS_INTERVAL: Duration = Duration::from_secs(5);
/// The interval in which the state of the local copy is noted.
const NOTE_INTERVAL: Duration = Duration::from_secs(5);

/// Uploads the log and collects garbage while this server is the primary. Its drop ends both.
pub(crate) struct Uploader {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What an uploader works with.
pub(crate) struct UploadParts {
    pub log: Arc<Log>,
    pub disk: Arc<dyn Disk>,
    pub options: ClusterOptions,
    pub objects: Arc<RunObjects>,
    /// The state of the local copy.
    pub state: LocalState,
    pub writer: LogWriter,
}

/// How a server takes part in a database in an object store.
#[derive(Clone)]
pub struct ClusterOptions {
    /// The object store.
    pub bucket: Arc<dyn Bucket>,
    /// The address that clients connect to, for the other servers.
    pub address: String,
    /// The largest size of the parts of runs that are kept on the local disk, in bytes.
    pub cache_bytes: u64,
    /// The interval in which a primary without writes extends the log.
    pub heartbeat: Duration,
    /// What is not needed any more is deleted after this time, since other servers may be reading
    /// it. A server that is further behind begins again at a checkpoint.
    pub retention: Duration,
    /// Decides if failed requests are tried again.
    pub patience: Arc<dyn Patience + Send + Sync>,
}

struct Shared {
    log: Arc<Log>,
    disk: Arc<dyn Disk>,
    options: ClusterOptions,
    objects: Arc<RunObjects>,
    epoch: u64,
    state: Mutex<State>,
    /// Notified when `uploaded` or `state` changes.
    changed: Condvar,
    /// All records up to this position are in the shared log.
    uploaded: AtomicU64,
    closing: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Log objects, oldest first, since this server is the primary.
    written: VecDeque<WrittenObject>,
    /// The reason why the log cannot be extended any more.
    ended: Option<StorageError>,
    /// The garbage to collect.
    collection: Option<Collection>,
    /// All runs that the catalog has, if those that it does not have are to be deleted.
    known_runs: Option<HashSet<RunId>>,
    /// The addresses of all servers.
    members: Vec<String>,
}

/// A log object that this server has created.
#[derive(Clone, Copy)]
struct WrittenObject {
    number: u64,
    first: Position,
    created: Instant,
}

/// What a fold makes collectable.
pub(crate) struct Collection {
    /// Records before this position are folded.
    pub needed: Position,
    /// The rows of the catalog.
    pub checkpoint: Vec<u8>,
    /// The position of the rows.
    pub checkpointed: Position,
}

/// Waits between attempts, and ends when the uploader closes.
struct UntilClosed<'s> {
    shared: &'s Shared,
    /// The end of the attempts after the close.
    deadline: Option<Instant>,
}

impl Patience for UntilClosed<'_> {
    fn again(&self, attempt: u32, error: &StorageError) -> bool {
        if self.shared.closing.load(Ordering::Acquire) {
            let is_over = |deadline: Instant| Instant::now() >= deadline;
            if self.deadline.is_none_or(is_over) {
                return false;
            }
        }
        self.shared.options.patience.again(attempt, error)
    }
}

impl Uploader {
    /// Starts the threads of a primary.
    pub fn start(parts: UploadParts) -> Result<Uploader, StorageError> {
        let UploadParts {
            log,
            disk,
            options,
            objects,
            state,
            writer,
        } = parts;
        let end = writer.end();
        let shared = Arc::new(Shared {
            log,
            disk,
            options,
            objects,
            epoch: end.epoch,
            state: Mutex::default(),
            changed: Condvar::new(),
            uploaded: AtomicU64::new(end.position.previous().0),
            closing: AtomicBool::new(false),
        });
        let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(run)
                .map_err(|error| StorageError::from_io("a thread of the object store", error))
        };
        let (uploading, collecting) = (shared.clone(), shared.clone());
        let local = shared.log.follow(end.position);
        let threads = vec![
            spawn(
                "log upload",
                Box::new(move || uploading.run_upload(writer, local, state)),
            )?,
            spawn("collection", Box::new(move || collecting.run_collection()))?,
        ];
        Ok(Uploader {
            shared,
            threads: Mutex::new(threads),
        })
    }

    /// Returns the newest position up to which all records are in the object store.
    pub fn uploaded(&self) -> Position {
        Position(self.shared.uploaded.load(Ordering::Acquire))
    }

    /// Waits until the records up to `position` are in the object store, at most `at_most`. Returns
    /// `false` if they are not yet.
    ///
    /// # Errors
    /// Fails with `Fenced` if another server has taken over the log: the records are not in it.
    pub fn wait(&self, position: Position, at_most: Duration) -> Result<bool, StorageError> {
        self.shared.wait(position, Instant::now() + at_most)
    }

    /// Passes on what a fold has made collectable. Replaces what was not begun yet.
    pub fn collect(&self, collection: Collection) {
        self.shared.state.lock().collection = Some(collection);
        self.shared.changed.notify_all();
    }

    /// Deletes the runs of earlier epochs that are not in `runs`, in the background.
    pub fn delete_orphans(&self, runs: HashSet<RunId>) {
        self.shared.state.lock().known_runs = Some(runs);
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
        for thread in self.threads.lock().drain(..) {
            // A panic was already printed.
            let _ = thread.join();
        }
    }

    /// Returns the address that clients connect to.
    pub fn address(&self) -> &str {
        &self.shared.options.address
    }

    /// Returns the addresses that clients connect to, of all servers.
    pub fn members(&self) -> Vec<String> {
        let members = self.shared.state.lock().members.clone();
        match members.contains(&self.shared.options.address) {
            true => members,
            false => vec![self.shared.options.address.clone()],
        }
    }

    /// Returns the number of takeovers of the log before this primary, its own included.
    pub fn epoch(&self) -> u64 {
        self.shared.epoch
    }

    /// Returns the size of the parts of runs that are kept on the local disk, in bytes.
    pub fn cache_bytes(&self) -> u64 {
        self.shared.objects.cache_bytes()
    }
}

impl Drop for Uploader {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn wait(&self, position: Position, deadline: Instant) -> Result<bool, StorageError> {
        let is_uploaded = || self.uploaded.load(Ordering::Acquire) >= position.0;
        if is_uploaded() {
            return Ok(true);
        }
        let mut state = self.state.lock();
        loop {
            if is_uploaded() {
                return Ok(true);
            }
            if let Some(error) = &state.ended {
                return Err(error.clone());
            }
            if self.changed.wait_until(&mut state, deadline).timed_out() {
                return Ok(is_uploaded());
            }
        }
    }

    fn run_upload(&self, mut writer: LogWriter, mut local: Follower, state: LocalState) {
        let result = self.upload_until_closed(&mut writer, &mut local, state);
        let error = match result {
            Ok(()) => StorageError::RefusingWrites {
                because: "the database is closed".to_owned(),
            },
            Err(error) => {
                // A fenced primary must not acknowledge writes. After another error, the content of
                // the shared log is unknown.
                self.log.refuse_with(error.clone());
                error
            }
        };
        self.state.lock().ended = Some(error);
        self.changed.notify_all();
    }

    fn upload_until_closed(
        &self,
        writer: &mut LogWriter,
        local: &mut Follower,
        mut state: LocalState,
    ) -> Result<(), StorageError> {
        let mut noted = Instant::now();
        loop {
            let uploaded = writer.end().position.previous();
            let is_closing = self.closing.load(Ordering::Acquire);
            if !is_closing {
                self.wait_for_records(uploaded);
            }
            let patience = UntilClosed {
                shared: self,
                deadline: is_closing.then(|| Instant::now() + CLOSE_TIME),
            };
            let is_last = is_closing && self.log.written() == uploaded;
            let kind = if is_last {
                ObjectKind::Release
            } else {
                ObjectKind::Segment
            };
            let object = self.upload_next(writer, local, kind, &patience);
            match object {
                // The log was written to the local disk, and is uploaded at the next start.
                Err(StorageError::Unavailable { .. }) if self.closing.load(Ordering::Acquire) => {
                    return Ok(());
                }
                object => object?,
            }
            if is_last || noted.elapsed() >= NOTE_INTERVAL {
                noted = Instant::now();
                self.note(&mut state)?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Waits for a record after `uploaded`, for the next heartbeat or for the close.
    fn wait_for_records(&self, uploaded: Position) {
        let heartbeat = Instant::now() + self.options.heartbeat;
        // A close does not wake this wait, so it is short.
        let step = Duration::from_millis(50).min(self.options.heartbeat);
        while !self.log.wait_beyond(uploaded, step)
            && Instant::now() < heartbeat
            && !self.closing.load(Ordering::Acquire)
        {}
    }

    /// Creates the next log object.
    fn upload_next(
        &self,
        writer: &mut LogWriter,
        local: &mut Follower,
        kind: ObjectKind,
        patience: &dyn Patience,
    ) -> Result<(), StorageError> {
        let LogEnd {
            number, position, ..
        } = writer.end();
        let mut object = writer.begin(kind)?;
        while object.bytes() < OBJECT_BYTES
            && let Some(record) = local.read_stored()?
        {
            object.add(&record);
        }
        writer.append(object, patience)?;
        let uploaded = writer.end().position.previous();
        self.uploaded.store(uploaded.0, Ordering::Release);
        let mut state = self.state.lock();
        state.written.push_back(WrittenObject {
            number,
            first: position,
            created: Instant::now(),
        });
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Notes from which object on the next start compares the local log.
    fn note(&self, state: &mut LocalState) -> Result<(), StorageError> {
        let Some(newest) = self.state.lock().written.back().copied() else {
            return Ok(());
        };
        let before = newest.first.previous();
        self.log.sync(before.min(self.log.written()))?;
        state.compared = Some((newest.number, newest.first));
        state.save(&self.disk)
    }

    fn run_collection(&self) {
        let mut members_due = Instant::now();
        loop {
            let mut state = self.state.lock();
            while state.collection.is_none()
                && state.known_runs.is_none()
                && Instant::now() < members_due
                && !self.is_over(&state)
            {
                self.changed.wait_until(&mut state, members_due);
            }
            if self.is_over(&state) {
                return;
            }
            let (collection, runs) = (state.collection.take(), state.known_runs.take());
            drop(state);
            let patience = UntilClosed {
                shared: self,
                deadline: None,
            };
            if Instant::now() >= members_due {
                // After an error, the addresses that were known remain.
                if let Ok(members) = members::addresses(self.options.bucket.as_ref()) {
                    self.state.lock().members = members;
                }
                members_due = Instant::now() + MEMBERS_INTERVAL;
            }
            // After an error, the next collection does the work of this one.
            if let Some(collection) = collection {
                let _ = self.collect(collection, &patience);
            }
            if let Some(runs) = runs {
                let _ = self.objects.delete_orphans(self.epoch, &runs);
            }
        }
    }

    fn is_over(&self, state: &State) -> bool {
        self.closing.load(Ordering::Acquire) || state.ended.is_some()
    }

    fn collect(&self, collection: Collection, patience: &dyn Patience) -> Result<(), StorageError> {
        let position = collection.checkpointed;
        while !self.wait(position, Instant::now() + Duration::from_millis(200))? {
            if self.closing.load(Ordering::Acquire) {
                return Ok(());
            }
        }
        let needed = collection.needed.min(position.next());
        let Some(start) = self.object_of(needed) else {
            return Ok(());
        };
        let bucket = self.options.bucket.as_ref();
        let name = CheckpointName {
            position,
            epoch: self.epoch,
        };
        let bytes = bytes::Bytes::from(collection.checkpoint);
        retry(patience, || bucket.put(&name.path(), bytes.clone()))?;
        let to = Boundary {
            collected: self.newest_collectable(start),
            start,
            checkpoint: Some(name),
        };
        let newest = retry(patience, || boundary::advance(bucket, to))?;
        delete_covered(bucket, &newest, patience)?;
        self.forget_before(newest.collected + 1);
        let uploaded = Position(self.uploaded.load(Ordering::Acquire));
        self.objects
            .delete_removed(uploaded, self.options.retention)
    }

    /// Returns the number of the newest object before `start` that is older than the retention. 0 if
    /// there is none.
    fn newest_collectable(&self, start: u64) -> u64 {
        let state = self.state.lock();
        let is_due = |it: &&WrittenObject| {
            it.number < start && it.created.elapsed() >= self.options.retention
        };
        let due = state.written.iter().take_while(is_due).last();
        due.map_or(0, |it| it.number)
    }

    /// Returns the number of the log object with the record at `position`, if this server knows it.
    fn object_of(&self, position: Position) -> Option<u64> {
        let state = self.state.lock();
        let after = state.written.partition_point(|it| it.first <= position);
        let object = state.written.get(after.checked_sub(1)?)?;
        Some(object.number)
    }

    fn forget_before(&self, number: u64) {
        let mut state = self.state.lock();
        while state.written.front().is_some_and(|it| it.number < number) {
            state.written.pop_front();
        }
    }
}
