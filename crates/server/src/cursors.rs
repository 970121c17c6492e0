//! Open cursors: what is left of a result, between the commands that ask for it.
//!
//! A cursor belongs to a namespace and perhaps to a session. A `getMore` takes its source out of
//! the table, so that no lock is held while it works, and puts it back; whoever else wants it
//! meanwhile is told that it is in use. A cursor that is killed meanwhile is not put back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use windrow_document::DocumentBuf;
use windrow_wire::{Batch, CommandError, ErrorCode};

use crate::operations::Operation;
use crate::random;
use crate::sessions::SessionId;
use crate::sync::lock;

/// Where the documents of a cursor come from.
pub trait BatchSource: Send {
    /// The next documents: at most `limit` of them, and no more after their size has reached
    /// `bytes_max` (one document always fits). Fails where `operation` may not go on.
    fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError>;

    /// Where a change stream stands.
    fn resume_token(&self) -> Option<DocumentBuf> {
        None
    }

    /// Waits for more at the end of the data, where that can come; whether it has.
    fn wait(&mut self, _: &Operation, _until: Instant) -> Result<bool, CommandError> {
        Ok(false)
    }
}

/// What a source gave, and whether it has more.
#[derive(Debug, Default)]
pub struct SourceBatch {
    pub documents: Batch,
    /// True where the source has come to its end: the cursor is closed with this batch. A source
    /// that stopped at the limit does not look whether there is more, as MongoDB's do not.
    pub finished: bool,
    /// Where a change stream stands.
    pub resume_token: Option<DocumentBuf>,
}

/// How a cursor behaves between batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CursorOptions {
    /// Lives until it is killed or its session ends.
    pub no_timeout: bool,
    /// Stays open at the end of its data.
    pub tailable: bool,
    /// A `getMore` at the end of the data waits for more, up to its `maxTimeMS`.
    pub await_data: bool,
    /// Goes on when what it reads is dropped: it tells of that.
    pub tells_of_drops: bool,
}

/// To whom a cursor belongs, and what `currentOp` says about it.
#[derive(Clone, Debug)]
pub struct CursorOwner {
    /// "database.collection"
    pub namespace: String,
    pub session: Option<SessionId>,
    /// The number of the transaction that opened it.
    pub transaction: Option<i64>,
    pub options: CursorOptions,
    /// The command that opened it, for the log of slow operations.
    pub command: DocumentBuf,
    /// The names of the indexes that it reads.
    pub indexes: Vec<String>,
    /// What its command has left of the time that it was given.
    pub time_left: Option<Duration>,
}

/// Who asks for a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    pub session: Option<SessionId>,
    /// The number of the transaction that asks.
    pub transaction: Option<i64>,
}

struct Cursor {
    owner: Arc<CursorOwner>,
    used: Instant,
    /// What its command and those that asked for more of it have left of the time that it was given.
    time_left: Option<Duration>,
    state: State,
}

enum State {
    Waiting(Box<dyn BatchSource>),
    InUse {
        operation: i32,
    },
    /// What it reads from is gone: the next `getMore` learns why.
    Ended(&'static str),
}

/// What became of a cursor that should be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Killed {
    Killed,
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

    /// Keeps a source for later; returns the number by which clients ask for it. Fails at the limit
    /// of open cursors.
    pub fn open(
        &self,
        owner: CursorOwner,
        source: Box<dyn BatchSource>,
    ) -> Result<i64, CommandError> {
        let mut open = lock(&self.open);
        if open.len() >= self.count_max {
            let message = format!("cannot open a cursor, {} are open already", open.len());
            return Err(CommandError::new(ErrorCode::ResourceExhausted, message));
        }
        let id = loop {
            // Positive, so that no driver takes it for "closed"; random, so that none can be guessed.
            let id = (random::bits() >> 1) as i64;
            if id != 0 && !open.contains_key(&id) {
                break id;
            }
        };
        let cursor = Cursor {
            time_left: owner.time_left,
            owner: Arc::new(owner),
            used: Instant::now(),
            state: State::Waiting(source),
        };
        open.insert(id, cursor);
        self.opened.fetch_add(1, Relaxed);
        Ok(id)
    }

    /// Takes a cursor out for a `getMore` on `namespace` of `asker`. It goes back, or is closed,
    /// through what is returned.
    pub fn take(
        &self,
        id: i64,
        namespace: &str,
        asker: Asker,
        operation: &Operation,
    ) -> Result<Taken<'_>, CommandError> {
        let mut open = lock(&self.open);
        let cursor = open.get_mut(&id).ok_or_else(|| not_found(id))?;
        check_owner(id, &cursor.owner, namespace, asker)?;
        let in_use = State::InUse {
            operation: operation.id,
        };
        match std::mem::replace(&mut cursor.state, in_use) {
            State::Waiting(source) => {
                let owner = Arc::clone(&cursor.owner);
                Ok(Taken {
                    cursors: self,
                    id,
                    owner,
                    time_left: cursor.time_left,
                    source: Some(source),
                })
            }
            State::InUse { operation } => {
                cursor.state = State::InUse { operation };
                let message = format!("cursor id {id} is already in use");
                Err(CommandError::new(ErrorCode::CursorInUse, message))
            }
            State::Ended(why) => {
                open.remove(&id);
                Err(CommandError::new(ErrorCode::QueryPlanKilled, why))
            }
        }
    }

    /// Closes a cursor. One that is in use does not go back; the caller kills the operation whose
    /// number is given.
    pub fn kill(&self, id: i64) -> (Killed, Option<i32>) {
        match lock(&self.open).remove(&id) {
            None => (Killed::NotFound, None),
            Some(Cursor {
                state: State::InUse { operation },
                ..
            }) => (Killed::Killed, Some(operation)),
            Some(_) => (Killed::Killed, None),
        }
    }

    /// Ends the cursors on these namespaces, as MongoDB does when a collection is dropped: the next
    /// `getMore` of each fails with QueryPlanKilled and the reason.
    pub fn end_where(&self, is_meant: impl Fn(&str) -> bool, why: &'static str) {
        self.end(|owner| is_meant(&owner.namespace), why);
    }

    /// The same for the cursors that read an index which has been dropped.
    pub fn end_using(&self, namespace: &str, index: &str) {
        let reads = |owner: &CursorOwner| owner.indexes.iter().any(|one| one == index);
        self.end(
            |owner| owner.namespace == namespace && reads(owner),
            "index dropped",
        );
    }

    /// The same for those of a session's transactions, which have ended.
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
            let is_meant = is_meant(&cursor.owner) && !cursor.owner.options.tells_of_drops;
            if is_meant && matches!(cursor.state, State::Waiting(_)) {
                ended.push(std::mem::replace(&mut cursor.state, State::Ended(why)));
            }
        }
        // The sources are dropped after the lock is let go.
        drop(open);
    }

    pub fn kill_session(&self, session: SessionId) {
        self.remove_where(|cursor| cursor.owner.session == Some(session));
    }

    /// Closes the cursors that nobody has used for `timeout` before `now`. Those of a session end
    /// with it instead.
    pub fn expire(&self, now: Instant, timeout: Duration) -> usize {
        let expired = self.remove_where(|cursor| {
            !matches!(cursor.state, State::InUse { .. })
                && !cursor.owner.options.no_timeout
                && cursor.owner.session.is_none()
                && now.saturating_duration_since(cursor.used) >= timeout
        });
        self.timed_out.fetch_add(expired as u64, Relaxed);
        expired
    }

    /// The sources are dropped after the lock is let go: closing one may take a while.
    fn remove_where(&self, is_meant: impl Fn(&Cursor) -> bool) -> usize {
        let mut open = lock(&self.open);
        let removed: Vec<Cursor> = open
            .extract_if(|_, cursor| is_meant(cursor))
            .map(|(_, cursor)| cursor)
            .collect();
        drop(open);
        removed.len()
    }

    pub fn counts(&self) -> CursorCounts {
        let open = lock(&self.open);
        let in_use = |cursor: &&Cursor| matches!(cursor.state, State::InUse { .. });
        CursorCounts {
            open: open.len(),
            in_use: open.values().filter(in_use).count(),
            no_timeout: open
                .values()
                .filter(|one| one.owner.options.no_timeout)
                .count(),
            opened: self.opened.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
        }
    }
}

/// For `serverStatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorCounts {
    pub open: usize,
    pub in_use: usize,
    pub no_timeout: usize,
    pub opened: u64,
    pub timed_out: u64,
}

/// A cursor while a `getMore` uses it. Dropped without [`put_back`](Self::put_back), it is closed.
pub struct Taken<'a> {
    cursors: &'a Cursors,
    id: i64,
    pub owner: Arc<CursorOwner>,
    /// What is left of the time that its command was given, and what is to be left of it when it is
    /// put back.
    pub time_left: Option<Duration>,
    source: Option<Box<dyn BatchSource>>,
}

impl Taken<'_> {
    pub fn next_batch(
        &mut self,
        operation: &Operation,
        limit: usize,
        bytes_max: usize,
    ) -> Result<SourceBatch, CommandError> {
        match &mut self.source {
            Some(source) => source.next_batch(operation, limit, bytes_max),
            None => Err(not_found(self.id)),
        }
    }

    /// See [`BatchSource::wait`].
    pub fn wait(&mut self, operation: &Operation, until: Instant) -> Result<bool, CommandError> {
        match &mut self.source {
            Some(source) => source.wait(operation, until),
            None => Ok(false),
        }
    }

    /// Leaves the cursor open for the next `getMore`, unless it was killed meanwhile.
    pub fn put_back(mut self) {
        let Some(source) = self.source.take() else {
            return;
        };
        let mut open = lock(&self.cursors.open);
        if let Some(cursor) = open.get_mut(&self.id) {
            cursor.state = State::Waiting(source);
            cursor.used = Instant::now();
            cursor.time_left = self.time_left;
        }
    }
}

impl Drop for Taken<'_> {
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

/// A cursor answers only on its own namespace and in its own session. The codes of the sessions
/// are MongoDB's.
fn check_owner(
    id: i64,
    owner: &CursorOwner,
    namespace: &str,
    asker: Asker,
) -> Result<(), CommandError> {
    if owner.namespace != namespace {
        let message = format!(
            "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
            owner.namespace
        );
        return Err(CommandError::new(ErrorCode::Unauthorized, message));
    }
    let sessions = match (owner.session, asker.session) {
        (one, other) if one == other => None,
        (Some(_), None) => Some((50737, "which was created in a session, without an lsid")),
        (None, _) => Some((50736, "which was not created in a session, in a session")),
        _ => Some((50738, "which was created in another session")),
    };
    let transactions = match (owner.transaction, asker.transaction) {
        (one, other) if one == other => None,
        (Some(_), None) => Some((50740, "which was created in a transaction, outside of it")),
        (None, _) => Some((50739, "which was not created in a transaction, in one")),
        _ => Some((50741, "which was created in another transaction")),
    };
    let Some((code, what)) = sessions.or(transactions) else {
        return Ok(());
    };
    Err(CommandError::new(
        ErrorCode(code),
        format!("Cannot run getMore on cursor {id}, {what}"),
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::client::Client;
    use crate::metrics::Kind;
    use crate::operations::Operations;
    use windrow_document::doc;

    /// Counts from 0 to below a number.
    pub struct Numbers(pub std::ops::Range<i32>);

    impl BatchSource for Numbers {
        fn next_batch(
            &mut self,
            operation: &Operation,
            limit: usize,
            _bytes_max: usize,
        ) -> Result<SourceBatch, CommandError> {
            operation.check()?;
            let mut documents = Batch::new();
            self.0
                .by_ref()
                .take(limit)
                .for_each(|n| documents.push(doc! { "n": n }.as_document()));
            Ok(SourceBatch {
                documents,
                finished: self.0.is_empty(),
                ..SourceBatch::default()
            })
        }
    }

    pub fn owner(session: Option<SessionId>, no_timeout: bool) -> CursorOwner {
        let options = CursorOptions {
            no_timeout,
            ..CursorOptions::default()
        };
        CursorOwner {
            namespace: "a.b".into(),
            session,
            transaction: None,
            options,
            command: DocumentBuf::new(),
            indexes: Vec::new(),
            time_left: None,
        }
    }

    pub fn with_operation(check: impl FnOnce(&Operation)) {
        let (operations, client) = (Operations::default(), Client::for_tests());
        let request = crate::connection::request_for_tests(&doc! { "ping": 1, "$db": "a" });
        let running = operations.start(&request, &client, Kind::GetMore, None, None);
        check(&running.operation);
    }

    #[test]
    fn a_cursor_is_taken_put_back_and_closed() {
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
            let mut taken = cursors
                .take(id, "a.b", Asker::default(), operation)
                .unwrap();
            let busy = cursors
                .take(id, "a.b", Asker::default(), operation)
                .err()
                .unwrap();
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
            let mut taken = cursors
                .take(id, "a.b", Asker::default(), operation)
                .unwrap();
            assert!(taken.next_batch(operation, 9, 100).unwrap().finished);
            drop(taken);
            let gone = cursors
                .take(id, "a.b", Asker::default(), operation)
                .err()
                .unwrap();
            assert_eq!(gone.code, ErrorCode::CursorNotFound);
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
                .take(one, "a.b", Asker::default(), operation)
                .unwrap()
                .put_back();
            cursors.end_where(|namespace| namespace == "a.b", "dropped");
            for (id, code) in [
                (one, ErrorCode::QueryPlanKilled),
                (one, ErrorCode::CursorNotFound),
                (other, ErrorCode::QueryPlanKilled),
            ] {
                let error = cursors
                    .take(id, "a.b", Asker::default(), operation)
                    .err()
                    .unwrap();
                assert_eq!(error.code, code);
            }
        });
        assert_eq!(cursors.counts().open, 0);
    }

    #[test]
    fn a_cursor_that_is_killed_in_use_does_not_go_back() {
        let cursors = Cursors::new(9);
        let id = cursors
            .open(owner(None, false), Box::new(Numbers(0..5)))
            .unwrap();
        with_operation(|operation| {
            let taken = cursors
                .take(id, "a.b", Asker::default(), operation)
                .unwrap();
            assert_eq!(cursors.kill(id), (Killed::Killed, Some(operation.id)));
            taken.put_back();
        });
        assert_eq!(cursors.kill(id), (Killed::NotFound, None));
    }

    #[test]
    fn a_cursor_answers_its_owner_only() {
        let asker = |session: u8, transaction: Option<i64>| Asker {
            session: (session > 0).then_some(SessionId([session; 16])),
            transaction,
        };
        let check = |of: Asker, namespace: &str, by: Asker, code: i32| {
            let cursors = Cursors::new(9);
            let owner = CursorOwner {
                transaction: of.transaction,
                ..owner(of.session, false)
            };
            let id = cursors.open(owner, Box::new(Numbers(0..5))).unwrap();
            with_operation(|operation| {
                let found = cursors.take(id, namespace, by, operation).err();
                assert_eq!(found.map_or(0, |error| error.code.number()), code);
            });
        };
        let (nobody, one, other) = (asker(0, None), asker(1, None), asker(2, None));
        check(nobody, "a.b", nobody, 0);
        check(one, "a.b", one, 0);
        check(nobody, "a.c", nobody, 13);
        check(one, "a.b", nobody, 50737);
        check(nobody, "a.b", one, 50736);
        check(one, "a.b", other, 50738);
        let (first, second) = (asker(1, Some(1)), asker(1, Some(2)));
        check(first, "a.b", first, 0);
        check(first, "a.b", one, 50740);
        check(one, "a.b", first, 50739);
        check(first, "a.b", second, 50741);
        check(nobody, "a.b", first, 50736);
    }

    #[test]
    fn what_nobody_uses_goes_after_its_time() {
        let cursors = Cursors::new(9);
        let session = SessionId([1; 16]);
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
