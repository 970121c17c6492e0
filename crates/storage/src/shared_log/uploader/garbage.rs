//! Garbage collection, after a fold:
//!
//! 1. Wait until the log is uploaded up to the position of the checkpoint.
//! 2. Write the checkpoint of the catalog.
//! 3. Advance the boundary.
//! 4. Delete the log objects that it covers, except takeover objects. Delete older checkpoints, and
//!    the runs that the uploaded log does not refer to any more.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Shared, State, UntilClosed, Uploads, WrittenObject};
use crate::bucket::{RetryPolicy, retry};
use crate::error::StorageError;
use crate::position::Position;
use crate::run_id::RunId;
use crate::shared_log::boundary::{self, Boundary, CheckpointName};
use crate::shared_log::delete_covered;
use crate::shared_log::members::{self, ANNOUNCEMENT_HEARTBEATS, Announcement, MemberState};

/// A wait for an upload notices the close after this time.
const WAIT_STEP: Duration = Duration::from_millis(200);

/// The garbage after a fold, which can be collected.
pub(crate) struct Garbage {
    /// Records before this position are folded.
    pub needed: Position,
    /// The rows of the catalog.
    pub checkpoint: Vec<u8>,
    /// The position of the rows.
    pub checkpointed: Position,
}

/// All runs that the catalog names. Other runs of earlier epochs can be deleted.
pub(super) struct KnownRuns {
    pub runs: HashSet<RunId>,
    /// The position of the catalog. The local log can have changes of the catalog that were not
    /// uploaded yet. Until then, another server can need the runs that they have removed.
    pub position: Position,
}

impl Shared {
    /// Collects garbage until the uploader closes or fails.
    pub(super) fn run_collection(&self) {
        let members_interval = self.options.heartbeat * ANNOUNCEMENT_HEARTBEATS;
        let mut members_due = Instant::now();
        loop {
            let mut state = self.state.lock();
            while state.garbage.is_none()
                && state.known_runs.is_none()
                && Instant::now() < members_due
                && !self.is_over(&state)
            {
                self.changed.wait_until(&mut state, members_due);
            }
            if self.is_over(&state) {
                return;
            }
            drop(state);
            if Instant::now() >= members_due {
                // After an error, the servers that were known remain.
                let _ = self.update_members();
                members_due = Instant::now() + members_interval;
            }
            // After an error, the next collection does the work of this one.
            let _ = self.collect_due();
        }
    }

    fn is_over(&self, state: &State) -> bool {
        self.closing.load(Ordering::Acquire) || state.ended.is_some()
    }

    /// Announces this server, and reads the announcements of the others. Returns the position up to
    /// which no server needs the runs that the log has removed.
    fn update_members(&self) -> Result<Position, StorageError> {
        let bucket = self.options.bucket.as_ref();
        let heartbeat_number = {
            let mut state = self.state.lock();
            state.heartbeat_number += 1;
            state.heartbeat_number
        };
        let own = Announcement {
            state: MemberState {
                address: self.options.address.clone(),
                applied: self.log.newest_time(),
            },
            needs_after: Position::MAX,
            heartbeat_number,
            builder: None,
        };
        members::announce(bucket, self.server, &own)?;
        let mut all = members::all(bucket)?;
        let mut state = self.state.lock();
        let silent = (state.liveness).remove_silent(&mut all, self.options.member_lifetime);
        state.builders = state.liveness.builders(&all);
        drop(state);
        self.members.update(&all);
        for id in silent.into_iter().filter(|id| *id != self.server) {
            members::remove(bucket, id)?;
        }
        let needed = all.iter().map(|(_, it)| it.needs_after).min();
        Ok(needed.unwrap_or(Position::MAX))
    }

    /// Exchanges announcements with the other servers, then collects garbage, as
    /// [`run_collection`](Self::run_collection) does in each interval.
    pub(super) fn update_members_and_collect(&self) -> Result<(), StorageError> {
        self.update_members()?;
        self.collect_due()
    }

    /// Collects what was passed on. The caller of an upload without threads cannot wait for it, so
    /// what is not uploaded remains.
    pub(super) fn collect_due(&self) -> Result<(), StorageError> {
        let has_thread = self.options.uploads == Uploads::Threads;
        let uploaded = self.uploaded();
        let is_due = |position: Position| has_thread || position <= uploaded;
        let mut state = self.state.lock();
        let garbage = state.garbage.take_if(|it| is_due(it.checkpointed));
        let known = state.known_runs.take_if(|it| is_due(it.position));
        drop(state);
        let retry_policy = UntilClosed {
            shared: self,
            deadline: None,
        };
        let collected = garbage.map_or(Ok(()), |garbage| self.collect(garbage, &retry_policy));
        let deleted = known.map_or(Ok(()), |known| self.delete_orphans(&known));
        let options = &self.options;
        let ended = self
            .objects
            .delete_ended_shares(options.retention, options.member_lifetime);
        collected.and(deleted).and(ended)
    }

    fn delete_orphans(&self, known: &KnownRuns) -> Result<(), StorageError> {
        if !self.wait_uploaded(known.position)? {
            return Ok(());
        }
        self.objects.delete_orphans(self.epoch, &known.runs)
    }

    fn collect(
        &self,
        garbage: Garbage,
        retry_policy: &dyn RetryPolicy,
    ) -> Result<(), StorageError> {
        let position = garbage.checkpointed;
        if !self.wait_uploaded(position)? {
            return Ok(());
        }
        let unneeded = self.update_members()?;
        let needed = garbage.needed.min(position.next());
        let Some(start) = self.object_of(needed) else {
            return Ok(());
        };
        let bucket = self.options.bucket.as_ref();
        let name = CheckpointName {
            position,
            epoch: self.epoch,
        };
        let bytes = bytes::Bytes::from(garbage.checkpoint);
        retry(retry_policy, || bucket.put(&name.path(), bytes.clone()))?;
        let to = Boundary {
            collected: self.newest_collectable(start, unneeded),
            start,
            checkpoint: Some(name),
        };
        let newest = retry(retry_policy, || boundary::advance(bucket, to))?;
        delete_covered(bucket, &newest, retry_policy)?;
        self.forget_before(newest.collected + 1);
        let unneeded = unneeded.min(self.uploaded());
        self.objects
            .delete_removed(unneeded, self.options.retention)
    }

    /// Waits until the records up to `position` are uploaded. Returns `false` if the uploader
    /// closes before.
    fn wait_uploaded(&self, position: Position) -> Result<bool, StorageError> {
        let is_uploaded = |_: &State| self.uploaded() >= position;
        while !self.wait(Instant::now() + WAIT_STEP, is_uploaded)? {
            if self.closing.load(Ordering::Acquire) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the number of the newest object before `start` that is older than the retention and
    /// has no record after `unneeded`. 0 if there is none.
    fn newest_collectable(&self, start: u64, unneeded: Position) -> u64 {
        let state = self.state.lock();
        let is_due = |(it, next): &(&WrittenObject, &WrittenObject)| {
            it.number < start
                && it.created.elapsed() >= self.options.retention
                && next.first.previous() <= unneeded
        };
        let pairs = state.written.iter().zip(state.written.iter().skip(1));
        let due = pairs.take_while(is_due).last();
        due.map_or(0, |(it, _)| it.number)
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
