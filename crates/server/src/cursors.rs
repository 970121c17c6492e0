//! Open cursors: the rest of a result between the commands that read it.
//!
//! A cursor belongs to a namespace and possibly to a session. A `getMore` takes its source out of
//! the table, so that no lock is held while it runs, and puts it back afterwards. Other commands
//! that need the cursor meanwhile fail because it is in use. A cursor that is killed meanwhile is
//! not put back.
//!
//! Reading order: `source` (returns the documents), `owner` (the clients that may read them),
//! `cursor_info` (how idle cursors are listed), and this file, the table of all open cursors.

mod cursor_info;
mod owner;
mod source;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use windrow_wire::{CommandError, ErrorCode};

pub use self::cursor_info::{CursorInfo, ReturnedCounts};
pub use self::owner::{CursorClient, CursorOptions, CursorOwner};
pub use self::source::{BatchSource, SourceBatch};
use crate::access::Authority;
use crate::operations::Operation;
use crate::random;
use crate::sessions::SessionId;
use crate::sync::lock;

struct Cursor {
    owner: Arc<CursorOwner>,
    created: SystemTime,
    used: Instant,
    returned: ReturnedCounts,
    /// The time that is left of the time limit.
    time_left: Option<Duration>,
    state: CursorState,
}

enum CursorState {
    Waiting(Box<dyn BatchSource>),
    InUse {
        operation: i32,
    },
    /// The source was dropped. The next `getMore` fails with this reason.
    Ended(&'static str),
}

/// The result of killing a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KillOutcome {
    Closed,
    /// The cursor is closed for others, but this operation still uses it.
    InUse {
        operation: i32,
    },
    NotFound,
}

/// All open cursors of a server.
pub struct Cursors {
    open: Mutex<HashMap<i64, Cursor>>,
    count_max: usize,
    timed_out: AtomicU64,
    opened: AtomicU64,
}

impl Cursors {
    pub fn new(count_max: usize) -> Cursors {
        let (timed_out, opened) = (AtomicU64::new(0), AtomicU64::new(0));
        Cursors {
            open: Mutex::default(),
            count_max,
            timed_out,
            opened,
        }
    }

    /// Stores a source. Returns the cursor id. Fails if there are too many open cursors.
    pub fn open(
        &self,
        owner: CursorOwner,
        source: Box<dyn BatchSource>,
    ) -> Result<i64, CommandError> {
        let mut open = lock(&self.open);
        if open.len() >= self.count_max {
            let message = format!("cannot open a cursor: {} are open, the maximum", open.len());
            return Err(CommandError::new(ErrorCode::ResourceExhausted, message));
        }
        let id = loop {
            // Ids are positive, because 0 means closed, and random, so that they cannot be guessed.
            let id = (random::bits() >> 1) as i64;
            if id != 0 && !open.contains_key(&id) {
                break id;
            }
        };
        let (now, mut returned) = (Instant::now(), ReturnedCounts::default());
        returned.add(owner.returned);
        let cursor = Cursor {
            time_left: owner.time_left,
            owner: Arc::new(owner),
            created: SystemTime::now(),
            used: now,
            returned,
            state: CursorState::Waiting(source),
        };
        open.insert(id, cursor);
        self.opened.fetch_add(1, Relaxed);
        Ok(id)
    }

    /// Takes a cursor out of the table for a `getMore` of `asker` on `namespace`. The returned
    /// guard puts it back or closes it.
    pub fn take(
        &self,
        id: i64,
        namespace: &str,
        asker: CursorClient,
        authority: &Authority,
        operation: &Operation,
    ) -> Result<CheckedOutCursor<'_>, CommandError> {
        let mut open = lock(&self.open);
        let cursor = open.get_mut(&id).ok_or_else(|| not_found(id))?;
        cursor.owner.check_user(id, authority)?;
        cursor.owner.check(id, namespace, asker)?;
        let in_use = CursorState::InUse {
            operation: operation.id,
        };
        match std::mem::replace(&mut cursor.state, in_use) {
            CursorState::Waiting(source) => Ok(CheckedOutCursor {
                cursors: self,
                id,
                owner: Arc::clone(&cursor.owner),
                shown: cursor.shown(id),
                time_left: cursor.time_left,
                returned: cursor.returned,
                source: Some(source),
            }),
            CursorState::InUse { operation } => {
                cursor.state = CursorState::InUse { operation };
                let message = format!("cursor id {id} is already in use");
                Err(CommandError::new(ErrorCode::CursorInUse, message))
            }
            CursorState::Ended(why) => {
                open.remove(&id);
                Err(CommandError::new(ErrorCode::QueryPlanKilled, why))
            }
        }
    }

    /// Returns the owner of a cursor.
    pub fn owner(&self, id: i64) -> Option<Arc<CursorOwner>> {
        let open = lock(&self.open);
        open.get(&id).map(|cursor| Arc::clone(&cursor.owner))
    }

    /// Closes a cursor. If it is in use, it is not put back, and the caller kills the operation
    /// that uses it.
    pub fn kill(&self, id: i64) -> KillOutcome {
        match lock(&self.open).remove(&id) {
            None => KillOutcome::NotFound,
            Some(Cursor {
                state: CursorState::InUse { operation },
                ..
            }) => KillOutcome::InUse { operation },
            Some(_) => KillOutcome::Closed,
        }
    }

    /// Ends the cursors on these namespaces, as MongoDB does when a collection is dropped: the next
    /// `getMore` of each fails with QueryPlanKilled and the reason.
    pub fn end_where(&self, is_meant: impl Fn(&str) -> bool, why: &'static str) {
        self.end(|owner| is_meant(&owner.namespace), why);
    }

    /// Ends the cursors that read a dropped index.
    pub fn end_using(&self, namespace: &str, index: &str) {
        let reads = |owner: &CursorOwner| owner.indexes.iter().any(|one| one == index);
        self.end(
            |owner| owner.namespace == namespace && reads(owner),
            "index dropped",
        );
    }

    /// Ends the cursors of a session's transactions, which have ended.
    pub fn end_transactions(&self, session: SessionId) {
        self.end(
            |owner| owner.session == Some(session) && owner.transaction.is_some(),
            "the transaction that opened the cursor has ended",
        );
    }

    fn end(&self, is_meant: impl Fn(&CursorOwner) -> bool, why: &'static str) {
        let mut open = lock(&self.open);
        let mut ended = Vec::new();
        for cursor in open.values_mut() {
            let is_meant = is_meant(&cursor.owner) && !cursor.owner.options.reports_drops;
            if is_meant && matches!(cursor.state, CursorState::Waiting(_)) {
                ended.push(std::mem::replace(
                    &mut cursor.state,
                    CursorState::Ended(why),
                ));
            }
        }
        // The sources are dropped after the lock is released.
        drop(open);
    }

    /// Closes the cursors of a session.
    pub fn kill_session(&self, session: SessionId) {
        self.remove_where(|cursor| cursor.owner.session == Some(session));
    }

    /// Closes the cursors that were not used since `timeout` before `now`. Cursors of a session end
    /// with the session instead.
    pub fn expire(&self, now: Instant, timeout: Duration) -> usize {
        let expired = self.remove_where(|cursor| {
            !matches!(cursor.state, CursorState::InUse { .. })
                && !cursor.owner.options.no_timeout
                && cursor.owner.session.is_none()
                && now.saturating_duration_since(cursor.used) >= timeout
        });
        self.timed_out.fetch_add(expired as u64, Relaxed);
        expired
    }

    /// Removes cursors. Their sources are dropped after the lock is released, because closing one
    /// can take long.
    fn remove_where(&self, is_meant: impl Fn(&Cursor) -> bool) -> usize {
        let mut open = lock(&self.open);
        let removed: Vec<Cursor> = open
            .extract_if(|_, cursor| is_meant(cursor))
            .map(|(_, cursor)| cursor)
            .collect();
        drop(open);
        removed.len()
    }
}

/// A cursor that a `getMore` uses. It is closed when this is dropped without
/// [`put_back`](Self::put_back).
pub struct CheckedOutCursor<'a> {
    cursors: &'a Cursors,
    id: i64,
    pub owner: Arc<CursorOwner>,
    /// The cursor as it was listed before.
    pub shown: CursorInfo,
    /// The time that is left of the time limit, to be updated before it is put back.
    pub time_left: Option<Duration>,
    returned: ReturnedCounts,
    source: Option<Box<dyn BatchSource>>,
}

impl CheckedOutCursor<'_> {
    /// Returns the next batch, as [`BatchSource::next_batch`] does. Fails if the cursor has no
    /// source any more.
    pub fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError> {
        let Some(source) = &mut self.source else {
            return Err(not_found(self.id));
        };
        let batch = source.next_batch(operation, limit, bytes_max)?;
        self.returned.add(batch.documents.count());
        Ok(batch)
    }

    /// Waits for documents, as [`BatchSource::wait`] does.
    pub fn wait(&mut self, operation: &Operation, until: Instant) -> Result<bool, CommandError> {
        match &mut self.source {
            Some(source) => source.wait(operation, until),
            None => Ok(false),
        }
    }

    /// Puts the cursor back for the next `getMore`, unless it was killed meanwhile.
    pub fn put_back(mut self) {
        let Some(source) = self.source.take() else {
            return;
        };
        let mut open = lock(&self.cursors.open);
        if let Some(cursor) = open.get_mut(&self.id) {
            cursor.state = CursorState::Waiting(source);
            cursor.used = Instant::now();
            cursor.time_left = self.time_left;
            cursor.returned = self.returned;
        }
    }
}

impl Drop for CheckedOutCursor<'_> {
    fn drop(&mut self) {
        if self.source.is_some() {
            lock(&self.cursors.open).remove(&self.id);
        }
    }
}

fn not_found(id: i64) -> CommandError {
    CommandError::new(
        ErrorCode::CursorNotFound,
        format!("cursor id {id} not found"),
    )
}

#[cfg(test)]
pub(crate) mod tests {
    pub use super::owner::tests::owner;
    pub use super::source::tests::Numbers;
    use super::*;
    use crate::client::Client;
    use crate::metrics::Kind;
    use crate::operations::{Operations, Starter};
    use windrow_document::doc;

    pub fn with_operation(check: impl FnOnce(&Operation)) {
        let (operations, client) = (Operations::default(), Client::for_tests());
        let request = crate::connection::request_for_tests(&doc! { "ping": 1, "$db": "a" });
        let running = operations.start(
            &request,
            &client,
            Starter::for_tests(Kind::GetMore),
            None,
            None,
        );
        check(&running.operation);
    }

    #[test]
    fn a_cursor_is_checked_out_returned_and_closed() {
        let cursors = Cursors::new(1);
        let id = cursors
            .open(owner(None, false), Box::new(Numbers(0..5)))
            .unwrap();
        assert!(
            cursors
                .open(owner(None, false), Box::new(Numbers(0..5)))
                .is_err()
        );
        with_operation(|operation| {
            let take = || {
                let client = CursorClient::default();
                cursors.take(id, "a.b", client, &Authority::Unrestricted, operation)
            };
            let mut taken = take().unwrap();
            let busy = take().err().unwrap();
            assert_eq!(busy.code, ErrorCode::CursorInUse);
            assert_eq!(
                taken
                    .next_batch(operation, 2, 100)
                    .unwrap()
                    .documents
                    .count(),
                2
            );
            taken.put_back();
            let mut taken = take().unwrap();
            assert!(taken.next_batch(operation, 9, 100).unwrap().finished);
            drop(taken);
            let error = take().err().unwrap();
            assert_eq!(error.code, ErrorCode::CursorNotFound);
        });
        assert_eq!(cursors.counts().open, 0);
    }

    #[test]
    fn a_cursor_ends_with_its_collection() {
        let cursors = Cursors::new(9);
        let open = || {
            let source = Box::new(Numbers(0..5));
            cursors.open(owner(None, false), source).unwrap()
        };
        let (one, other) = (open(), open());
        cursors.end_where(|namespace| namespace == "a.c", "dropped");
        with_operation(|operation| {
            cursors
                .take(
                    one,
                    "a.b",
                    CursorClient::default(),
                    &Authority::Unrestricted,
                    operation,
                )
                .unwrap()
                .put_back();
            cursors.end_where(|namespace| namespace == "a.b", "dropped");
            for (id, code) in [
                (one, ErrorCode::QueryPlanKilled),
                (one, ErrorCode::CursorNotFound),
                (other, ErrorCode::QueryPlanKilled),
            ] {
                let error = cursors
                    .take(
                        id,
                        "a.b",
                        CursorClient::default(),
                        &Authority::Unrestricted,
                        operation,
                    )
                    .err()
                    .unwrap();
                assert_eq!(error.code, code);
            }
        });
        assert_eq!(cursors.counts().open, 0);
    }

    #[test]
    fn a_cursor_that_is_killed_in_use_is_not_returned() {
        let cursors = Cursors::new(9);
        let id = cursors
            .open(owner(None, false), Box::new(Numbers(0..5)))
            .unwrap();
        with_operation(|operation| {
            let taken = cursors
                .take(
                    id,
                    "a.b",
                    CursorClient::default(),
                    &Authority::Unrestricted,
                    operation,
                )
                .unwrap();
            let in_use = KillOutcome::InUse {
                operation: operation.id,
            };
            assert_eq!(cursors.kill(id), in_use);
            taken.put_back();
        });
        assert_eq!(cursors.kill(id), KillOutcome::NotFound);
    }

    #[test]
    fn unused_cursors_expire() {
        let cursors = Cursors::new(9);
        let session = SessionId::for_tests([1; 16]);
        for (of, no_timeout) in [(None, false), (None, true), (Some(session), false)] {
            cursors
                .open(owner(of, no_timeout), Box::new(Numbers(0..5)))
                .unwrap();
        }
        let minutes = |count: u64| Duration::from_secs(60 * count);
        let now = Instant::now() + minutes(9);
        assert_eq!(cursors.expire(now, minutes(10)), 0);
        assert_eq!(cursors.expire(now + minutes(1), minutes(10)), 1);
        cursors.kill_session(session);
        assert_eq!((cursors.counts().open, cursors.counts().timed_out), (1, 1));
    }
}
