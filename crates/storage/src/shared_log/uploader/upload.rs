//! The upload of the log. The next log object has all records that were written since the last one.
//! One object is in flight at a time. If there are no records, an empty object is created in each
//! heartbeat interval: other servers then know that the primary lives.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Shared, State, UntilClosed, WrittenObject};
use crate::compared_log::ComparedLog;
use crate::error::StorageError;
use crate::local_state::ComparedObject;
use crate::log::Follower;
use crate::position::Position;
use crate::shared_log::log_object::ObjectKind;
use crate::shared_log::{LogEnd, LogWriter};

/// An object is created when it has this many bytes of records, even if there are more.
const OBJECT_BYTES: usize = 8 << 20;
/// A close waits so long for the upload of the last records. They are in the local log.
const CLOSE_TIME: Duration = Duration::from_secs(10);
/// If no caller waits for the upload of a record, it waits so long for others. Each request costs
/// the object store much more than the bytes in it.
const GATHER_TIME: Duration = Duration::from_millis(20);
/// The interval in which the state of the local copy is saved.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

/// The upload of the log by a primary.
pub(super) struct Upload {
    shared: Arc<Shared>,
    writer: LogWriter,
    /// Reads the records after the uploaded ones.
    local: Follower,
    compared: Arc<ComparedLog>,
    saved: Instant,
}

impl Upload {
    pub fn new(
        shared: Arc<Shared>,
        writer: LogWriter,
        local: Follower,
        compared: Arc<ComparedLog>,
    ) -> Upload {
        Upload {
            shared,
            writer,
            local,
            compared,
            saved: Instant::now(),
        }
    }

    /// Uploads until the uploader closes or fails.
    pub fn run(&mut self) {
        let error = match self.upload_until_closed() {
            Ok(()) => StorageError::RefusingWrites {
                because: "the database is closed".to_owned(),
            },
            Err(error) => self.refuse_writes(error),
        };
        self.shared.state.lock().ended = Some(error);
        self.shared.changed.notify_all();
    }

    /// Creates one object.
    pub fn step(&mut self) -> Result<(), StorageError> {
        if let Some(error) = self.shared.state.lock().ended.clone() {
            return Err(error);
        }
        let created = self
            .create_next(ObjectKind::Segment, None)
            .and_then(|()| self.save_compared());
        created.map_err(|error| {
            let error = self.refuse_writes(error);
            self.shared.state.lock().ended = Some(error.clone());
            error
        })
    }

    /// A fenced primary must not acknowledge writes. After another error, the content of the shared
    /// log is unknown.
    fn refuse_writes(&self, error: StorageError) -> StorageError {
        self.shared.log.refuse_with(error.clone());
        error
    }

    fn upload_until_closed(&mut self) -> Result<(), StorageError> {
        loop {
            let uploaded = self.uploaded();
            let is_closing = self.shared.closing.load(Ordering::Acquire);
            if !is_closing {
                self.wait_for_records(uploaded);
            }
            let is_last = is_closing && self.shared.log.written() == uploaded;
            let kind = if is_last {
                ObjectKind::Release
            } else {
                ObjectKind::Segment
            };
            let deadline = is_closing.then(|| Instant::now() + CLOSE_TIME);
            match self.create_next(kind, deadline) {
                // The log was written to the local disk, and is uploaded at the next start.
                Err(StorageError::Unavailable { .. })
                    if self.shared.closing.load(Ordering::Acquire) =>
                {
                    return Ok(());
                }
                created => created?,
            }
            if is_last || self.saved.elapsed() >= SAVE_INTERVAL {
                self.save_compared()?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn uploaded(&self) -> Position {
        self.writer.end().position.previous()
    }

    /// Waits for a record after `uploaded`, for a request, for the next heartbeat or for the close.
    fn wait_for_records(&self, uploaded: Position) {
        let heartbeat = Instant::now() + self.shared.options.heartbeat;
        let is_requested = || {
            let state = self.shared.state.lock();
            state.requested > state.begun
        };
        let is_closing = || self.shared.closing.load(Ordering::Acquire);
        loop {
            // A request that comes between the check and the wait is noticed after this time.
            let step = Duration::from_millis(50).min(self.shared.options.heartbeat);
            if is_requested() || is_closing() {
                return;
            }
            if self.shared.log.wait_beyond(uploaded, step) {
                return self.gather(uploaded);
            }
            if Instant::now() >= heartbeat {
                return;
            }
        }
    }

    /// Waits for further records, as long as no caller waits for those after `uploaded`.
    fn gather(&self, uploaded: Position) {
        let deadline = Instant::now() + GATHER_TIME;
        let shared = &self.shared;
        let mut state = shared.state.lock();
        let is_urgent = |state: &State| {
            let is_awaited = state.awaited > uploaded || state.requested > state.begun;
            is_awaited || shared.closing.load(Ordering::Acquire)
        };
        while !is_urgent(&state) {
            if shared.urgent.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }

    /// Creates the next log object.
    fn create_next(
        &mut self,
        kind: ObjectKind,
        deadline: Option<Instant>,
    ) -> Result<(), StorageError> {
        let LogEnd {
            number, position, ..
        } = self.writer.end();
        // A request from now on is not for this object: it may be created before.
        self.shared.state.lock().begun += 1;
        let mut object = self.writer.begin(kind)?;
        while object.bytes() < OBJECT_BYTES
            && let Some(record) = self.local.read_stored()?
        {
            object.add(&record);
        }
        let retry_policy = UntilClosed {
            shared: &self.shared,
            deadline,
        };
        self.writer.append(object, &retry_policy)?;
        let uploaded = self.uploaded();
        self.shared.uploaded.store(uploaded.0, Ordering::Release);
        let mut state = self.shared.state.lock();
        state.created = state.begun;
        state.written.push_back(WrittenObject {
            number,
            first: position,
            created: Instant::now(),
        });
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Saves from which object on the next start compares the local log.
    fn save_compared(&mut self) -> Result<(), StorageError> {
        self.saved = Instant::now();
        let newest = self.shared.state.lock().written.back().copied();
        newest.map_or(Ok(()), |newest| {
            let WrittenObject { number, first, .. } = newest;
            self.compared.save(ComparedObject { number, first })
        })
    }
}
