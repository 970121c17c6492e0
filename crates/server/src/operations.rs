//! The commands that run right now: who asked for them, how far they are, and whether to go on.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use windrow_collection::Patience;
use windrow_document::{Document, DocumentBuf, DocumentBuilder, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Request};

use crate::client::{Client, Connections};
use crate::clock;
use crate::metrics::{Kind, Metrics, Note};
use crate::sessions::SessionId;
use crate::sync::lock;

/// A command while it runs. Long work calls [`check`](Self::check) now and then, and tells how far
/// it is with [`set_progress`](Self::set_progress).
#[derive(Debug)]
pub struct Operation {
    pub id: i32,
    pub kind: Kind,
    pub started: Instant,
    pub session: Option<SessionId>,
    client: Arc<Client>,
    command: DocumentBuf,
    /// The comment of the command that this one goes on with.
    comment: OnceLock<Value>,
    /// The cursor that it uses.
    cursor: OnceLock<Described>,
    /// Microseconds after its start at which its time is over; [`NO_LIMIT`] where there is no limit.
    limit_micros: AtomicU64,
    /// The code of the error that ends the operation; 0 while it may go on.
    killed: AtomicI32,
    ends_with_client: AtomicBool,
    namespace: Mutex<String>,
    plan_summary: Mutex<Option<String>>,
    progress: Mutex<Option<Progress>>,
    notes: Mutex<Vec<Note>>,
    /// Microseconds from which on it is recorded, in the log or the profile; see [`set_recorded_from`](Self::set_recorded_from).
    recorded_from_micros: AtomicU64,
    /// What identifies its query and its plan.
    hashes: Mutex<DocumentBuf>,
    waits: AtomicBool,
    /// It waits for others just now.
    waits_for_others: AtomicBool,
    /// Microseconds that it has waited for something that its client wanted to wait for.
    waited_micros: AtomicU64,
}

/// What is only described when somebody looks.
struct Described(Box<dyn Fn() -> DocumentBuf + Send + Sync>);

impl fmt::Debug for Described {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Described")
    }
}

/// How long an operation runs before its client's socket is looked at. Most operations end sooner.
const UNWATCHED: Duration = Duration::from_millis(20);

/// See [`Operation::limit_micros`].
const NO_LIMIT: u64 = u64::MAX;

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).map_or(NO_LIMIT - 1, |micros| micros.min(NO_LIMIT - 1))
}

/// How far an operation is, as `currentOp` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// "Index Build: scanning collection"
    pub message: String,
    pub done: u64,
    pub total: u64,
    /// What else there is to say of it, under the name of this kind of work.
    pub details: (&'static str, DocumentBuf),
}

impl Progress {
    /// Adds what `currentOp` shows.
    pub fn describe(&self, op: &mut DocumentBuf) {
        let Progress {
            message,
            done,
            total,
            details: (kind, details),
        } = self;
        let percent = (done * 100).checked_div(*total).unwrap_or(0);
        op.push("msg", format!("{message}: {done}/{total} {percent}%"));
        op.push(
            "progress",
            doc! { "done": (*done as i64), "total": (*total as i64) },
        );
        op.push(kind, details.clone());
    }
}

impl Operation {
    /// Fails where the operation was killed, the server stops, or its time (`maxTimeMS`) is over.
    /// Costs a load, and a look at the clock where there is a limit of time.
    pub fn check(&self) -> Result<(), CommandError> {
        match self.killed.load(Relaxed) {
            0 => {}
            code => return Err(interrupted(ErrorCode(code))),
        }
        match self.time_left() {
            Some(Duration::ZERO) => Err(interrupted(ErrorCode::MaxTimeMSExpired)),
            _ => Ok(()),
        }
    }

    /// Makes [`check`](Self::check) fail with this code from now on.
    pub fn kill(&self, code: ErrorCode) {
        // The first reason stands.
        let _ = self
            .killed
            .compare_exchange(0, code.number(), Relaxed, Relaxed);
    }

    pub fn is_killed(&self) -> bool {
        self.killed.load(Relaxed) != 0
    }

    /// Says that it does nothing but answer, which is of no use once its client is gone.
    pub fn end_with_client(&self) {
        self.ends_with_client.store(true, Relaxed);
    }

    /// What is left of `maxTimeMS`; `None` where there is no limit.
    pub fn time_left(&self) -> Option<Duration> {
        let limit = self.limit_micros.load(Relaxed);
        (limit != NO_LIMIT)
            .then(|| Duration::from_micros(limit).saturating_sub(self.started.elapsed()))
    }

    /// Gives the operation so much time from now on, where it has no limit yet: what a cursor's command
    /// has left of its own.
    pub fn limit_time(&self, left: Duration) {
        let limit = micros(self.started.elapsed().saturating_add(left));
        let _ = self
            .limit_micros
            .compare_exchange(NO_LIMIT, limit, Relaxed, Relaxed);
    }

    /// Says that the operation waits for something that the client wants to wait for, so that it is
    /// not logged as slow.
    pub fn wait_on_purpose(&self) {
        self.waits.store(true, Relaxed);
    }

    /// Says that the operation is recorded in the log or the profile where it has worked so long.
    pub fn set_recorded_from(&self, least: Duration) {
        self.recorded_from_micros.store(micros(least), Relaxed);
    }

    /// Whether it would be recorded, if it ended now: else nobody needs to know more of it.
    pub fn is_recorded(&self) -> bool {
        micros(self.worked()) >= self.recorded_from_micros.load(Relaxed)
    }

    /// What identifies its query and its plan; of several statements each in its turn.
    pub fn set_hashes(&self, hashes: DocumentBuf) {
        *lock(&self.hashes) = hashes;
    }

    pub fn hashes(&self) -> DocumentBuf {
        lock(&self.hashes).clone()
    }

    /// Notes how long it waited for something that its client wanted to wait for: that is no work.
    pub fn note_wait(&self, waited: Duration) {
        self.waited_micros.fetch_add(micros(waited), Relaxed);
    }

    /// How long it has worked.
    pub fn worked(&self) -> Duration {
        let waited = Duration::from_micros(self.waited_micros.load(Relaxed));
        self.started.elapsed().saturating_sub(waited)
    }

    pub fn waits_on_purpose(&self) -> bool {
        self.waits.load(Relaxed)
    }

    pub fn set_namespace(&self, namespace: &str) {
        namespace.clone_into(&mut lock(&self.namespace));
    }

    pub fn namespace(&self) -> String {
        lock(&self.namespace).clone()
    }

    /// "IXSCAN { a: 1 }", for `currentOp` and the log of slow operations.
    pub fn set_plan_summary(&self, summary: &str) {
        *lock(&self.plan_summary) = Some(summary.to_owned());
    }

    pub fn plan_summary(&self) -> Option<String> {
        lock(&self.plan_summary).clone()
    }

    pub fn has_progress(&self) -> bool {
        lock(&self.progress).is_some()
    }

    pub fn set_progress(&self, progress: Option<Progress>) {
        *lock(&self.progress) = progress;
    }

    /// Adds what the log of slow operations should say.
    pub fn note(&self, name: &'static str, value: impl Into<Value>) {
        lock(&self.notes).push((name, value.into()));
    }

    /// Counts the work that it has noted.
    pub fn count_work(&self, metrics: &Metrics) {
        metrics.add_work(&lock(&self.notes));
    }

    /// What the log of a slow operation says about it.
    pub fn slow_attributes(&self) -> DocumentBuf {
        let mut attr = doc! {
            "type": (self.kind.operation()), "ns": (self.namespace()), "command": (self.command()),
        };
        if let Some(summary) = lock(&self.plan_summary).clone() {
            attr.push("planSummary", summary);
        }
        for (name, value) in lock(&self.notes).iter() {
            attr.push(name, value.clone());
        }
        for (name, value) in self.hashes().iter() {
            attr.push(name, value);
        }
        attr
    }

    /// Takes over the comment of the command that this one goes on with, unless it has its own.
    pub fn inherit_comment(&self, from: Document<'_>) {
        if let Some(comment) = from
            .get("comment")
            .filter(|_| !self.command.as_document().contains("comment"))
        {
            // An operation goes on with one command only.
            let _ = self.comment.set(comment.to_value());
        }
    }

    /// The comment of its command.
    pub fn comment(&self) -> Option<ValueRef<'_>> {
        self.command.as_document().get("comment")
    }

    /// Says which cursor it uses.
    pub fn set_cursor(&self, described: impl Fn() -> DocumentBuf + Send + Sync + 'static) {
        // An operation uses one cursor only.
        let _ = self.cursor.set(Described(Box::new(described)));
    }

    /// The command as it is shown.
    fn command(&self) -> DocumentBuf {
        let mut command = self.command.clone();
        if let Some(comment) = self.comment.get() {
            command.push("comment", comment.clone());
        }
        command
    }

    /// The number of the connection that it came over.
    pub fn connection(&self) -> i32 {
        self.client.id
    }

    /// The document that `currentOp` shows.
    pub fn describe(&self, host: &str) -> DocumentBuf {
        let running = self.started.elapsed();
        let mut op = self.client.describe(host);
        op.push("active", true);
        op.push("currentOpTime", clock::iso(SystemTime::now()));
        op.push("opid", self.id);
        if let Some(session) = self.session {
            op.push("lsid", session.to_document());
        }
        op.push("secs_running", running.as_secs() as i64);
        op.push("microsecs_running", running.as_micros() as i64);
        op.push("op", self.kind.operation());
        op.push("ns", self.namespace());
        op.push("command", self.command());
        if let Some(cursor) = self.cursor.get() {
            let mut cursor = cursor.0();
            cursor.push("operationUsingCursorId", i64::from(self.id));
            op.push("cursor", cursor);
        }
        self.describe_progress(&mut op);
        let locks = doc! {
            "numYields": 0, "locks": {}, "waitingForLock": (self.waits_for_others.load(Relaxed)),
            "lockStats": {},
            "waitingForFlowControl": false, "flowControlStats": {},
        };
        locks.iter().for_each(|(name, value)| op.push(name, value));
        op
    }

    fn describe_progress(&self, op: &mut DocumentBuf) {
        if let Some(summary) = lock(&self.plan_summary).clone() {
            op.push("planSummary", summary);
        }
        if let Some(progress) = lock(&self.progress).clone() {
            progress.describe(op);
        }
        if self.is_killed() {
            op.push("killPending", true);
        }
    }
}

impl Patience for Operation {
    fn is_over(&self) -> bool {
        self.check().is_err()
    }

    fn set_waiting(&self, waits: bool) {
        self.waits_for_others.store(waits, Relaxed);
    }
}

/// The error of an operation that was ended from outside.
fn interrupted(code: ErrorCode) -> CommandError {
    let message = match code {
        ErrorCode::MaxTimeMSExpired => "operation exceeded time limit",
        ErrorCode::InterruptedAtShutdown => "interrupted at shutdown",
        ErrorCode::CursorKilled => "the cursor was killed while it was in use",
        ErrorCode::ClientDisconnect => "the client closed the connection",
        _ => "operation was interrupted",
    };
    CommandError::new(code, message)
}

/// Most operations note no more.
const NOTES: usize = 8;

/// Commands above this size in bytes are shown by their first field and their comment, if that is shorter.
const SHOWN_COMMAND_BYTES_MAX: usize = 4096;

fn shown_command(request: &Request) -> DocumentBuf {
    let body = request.body();
    if body.as_bytes().len() <= SHOWN_COMMAND_BYTES_MAX {
        return body.to_buf();
    }
    let mut shown = DocumentBuilder::new();
    if let Some((name, value)) = body.first() {
        shown.append(name, value);
    }
    let comment = body.get("comment").map(|value| doc! { "comment": value });
    if let Some(comment) = comment.filter(|it| it.as_bytes().len() <= SHOWN_COMMAND_BYTES_MAX) {
        shown.append_all(comment.as_document());
    }
    let mut shown = shown.finish();
    shown.push("$truncated", format!("{} bytes", body.as_bytes().len()));
    shown.push("$db", request.database());
    shown
}

/// All operations that run, by their number.
#[derive(Debug, Default)]
pub struct Operations {
    running: Mutex<BTreeMap<i32, Arc<Operation>>>,
    started: AtomicU64,
}

impl Operations {
    /// Enters a command; it leaves when what is returned is dropped.
    pub fn start(
        &self,
        request: &Request,
        client: &Arc<Client>,
        kind: Kind,
        session: Option<SessionId>,
        time_limit: Option<Duration>,
    ) -> Running<'_> {
        let started = Instant::now();
        // Positive numbers only, as tools expect; after two billion commands they begin again.
        let id = (self.started.fetch_add(1, Relaxed) % i32::MAX as u64) as i32 + 1;
        let operation = Arc::new(Operation {
            id,
            kind,
            started,
            session,
            client: Arc::clone(client),
            command: shown_command(request),
            comment: OnceLock::new(),
            cursor: OnceLock::new(),
            limit_micros: AtomicU64::new(time_limit.map_or(NO_LIMIT, micros)),
            killed: AtomicI32::new(0),
            ends_with_client: AtomicBool::new(false),
            namespace: Mutex::new([request.database(), ".$cmd"].concat()),
            plan_summary: Mutex::default(),
            progress: Mutex::default(),
            notes: Mutex::new(Vec::with_capacity(NOTES)),
            recorded_from_micros: AtomicU64::new(NO_LIMIT),
            hashes: Mutex::default(),
            waits: AtomicBool::new(false),
            waits_for_others: AtomicBool::new(false),
            waited_micros: AtomicU64::new(0),
        });
        lock(&self.running).insert(id, Arc::clone(&operation));
        Running {
            operations: self,
            operation,
        }
    }

    pub fn all(&self) -> Vec<Arc<Operation>> {
        lock(&self.running).values().cloned().collect()
    }

    pub fn kill(&self, id: i32, code: ErrorCode) {
        if let Some(operation) = lock(&self.running).get(&id) {
            operation.kill(code);
        }
    }

    pub fn kill_session(&self, session: SessionId, code: ErrorCode) {
        self.kill_where(code, |operation| operation.session == Some(session));
    }

    pub fn kill_where(&self, code: ErrorCode, is_meant: impl Fn(&Operation) -> bool) {
        let running = lock(&self.running);
        running
            .values()
            .filter(|one| is_meant(one))
            .for_each(|one| one.kill(code));
    }

    /// Kills operations that only answer a client which has closed its connection.
    pub fn kill_disconnected(&self, connections: &Connections) {
        let is_watched = |one: &&Arc<Operation>| {
            one.ends_with_client.load(Relaxed) && one.started.elapsed() > UNWATCHED
        };
        let running = lock(&self.running);
        let watched: Vec<_> = running.values().filter(is_watched).cloned().collect();
        // No command waits for the table while the sockets are looked at.
        drop(running);
        let disconnected = watched
            .into_iter()
            .filter(|one| connections.is_gone(one.connection()));
        disconnected.for_each(|one| one.kill(ErrorCode::ClientDisconnect));
    }

    /// The operations that run, in the order of their numbers, and the clients that have none: both as
    /// they are at one moment, in which no operation begins or ends.
    pub fn look(&self, connections: &Connections) -> (Vec<Arc<Operation>>, Vec<Arc<Client>>) {
        let running = lock(&self.running);
        let mut idle = connections.clients();
        let busy: HashSet<i32> = running.values().map(|one| one.connection()).collect();
        idle.retain(|client| !busy.contains(&client.id));
        (running.values().cloned().collect(), idle)
    }
}

/// An operation that is entered in the table for as long as this lives.
pub struct Running<'a> {
    operations: &'a Operations,
    pub operation: Arc<Operation>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        lock(&self.operations.running).remove(&self.operation.id);
    }
}
