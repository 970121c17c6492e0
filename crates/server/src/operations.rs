//! The running commands: their clients, their progress, and their interrupts.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use windrow_access::UserName;
use windrow_collection::WaitControl;
use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Request};

use crate::client::{Client, Connections};
use crate::clock;
use crate::metrics::{Kind, Metrics, OperationRecord};
use crate::placement::DataSetId;
use crate::sessions::SessionId;
use crate::shown_command::{SecretArguments, shown_command};
use crate::sync::lock;

/// A running command. Long work calls [`check`](Self::check) regularly, and reports its progress
/// with [`set_progress`](Self::set_progress).
#[derive(Debug)]
pub struct Operation {
    pub id: i32,
    pub kind: Kind,
    pub started: Instant,
    pub session: Option<SessionId>,
    /// The user of its client.
    pub user: Option<UserName>,
    /// The data set in which it runs, if there are several.
    pub data_set: Option<DataSetId>,
    client: Arc<Client>,
    command: DocumentBuf,
    /// The comment of the command that this one continues.
    comment: OnceLock<Value>,
    /// The cursor that it uses.
    cursor: OnceLock<CursorDescription>,
    /// The time limit in microseconds after the start. [`NO_LIMIT`] if there is none.
    limit_micros: AtomicU64,
    /// The error code of the interrupt. 0 while the operation may continue.
    killed: AtomicI32,
    ends_with_client: AtomicBool,
    namespace: Mutex<String>,
    plan_summary: Mutex<Option<String>>,
    progress: Mutex<Option<Progress>>,
    records: Mutex<Vec<OperationRecord>>,
    /// The minimum duration in microseconds for the log or the profile; see
    /// [`set_record_threshold`](Self::set_record_threshold).
    record_threshold_micros: AtomicU64,
    /// The hashes of its query and its plan.
    hashes: Mutex<DocumentBuf>,
    is_requested_wait: AtomicBool,
    /// `true` while it has one of the slots of the server.
    pub has_slot: AtomicBool,
    /// `true` while it waits for other operations.
    waits_for_others: AtomicBool,
    /// The time in microseconds that it has waited because its client requested it.
    waited_micros: AtomicU64,
}

/// A description that is created on demand.
struct CursorDescription(Box<dyn Fn() -> DocumentBuf + Send + Sync>);

impl fmt::Debug for CursorDescription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CursorDescription")
    }
}

/// The time for which the socket of an operation's client is not watched. Most operations end
/// earlier.
const WATCH_DELAY: Duration = Duration::from_millis(20);

/// The interval at which a waiting operation checks if it must stop.
pub const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// See [`Operation::limit_micros`].
const NO_LIMIT: u64 = u64::MAX;

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).map_or(NO_LIMIT - 1, |micros| micros.min(NO_LIMIT - 1))
}

/// The progress of an operation in `currentOp`.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// For example "Index Build: scanning collection".
    pub message: String,
    pub done: u64,
    pub total: u64,
    /// Additional fields, under the name of this kind of work.
    pub details: (&'static str, DocumentBuf),
}

impl Progress {
    /// Adds the fields of `currentOp`.
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
    /// Fails if the operation was killed, the server stops, or the time limit (`maxTimeMS`) is
    /// exceeded. It costs an atomic load, and a read of the clock if there is a time limit.
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

    /// Waits until `wait` returns `true`, at most until a deadline. `wait` waits at most for the
    /// time that it gets. Returns `false` at the deadline. Fails if the operation must stop.
    pub fn wait_until(
        &self,
        deadline: Instant,
        mut wait: impl FnMut(Duration) -> Result<bool, CommandError>,
    ) -> Result<bool, CommandError> {
        loop {
            self.check()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            if wait(left.min(CHECK_INTERVAL))? {
                return Ok(true);
            }
        }
    }

    /// Lets [`check`](Self::check) fail with this code from now on.
    pub fn kill(&self, code: ErrorCode) {
        // The first reason is kept.
        let _ = self
            .killed
            .compare_exchange(0, code.number(), Relaxed, Relaxed);
    }

    /// Returns `true` if the operation was interrupted.
    pub fn is_killed(&self) -> bool {
        self.killed.load(Relaxed) != 0
    }

    /// Marks the operation as one that only returns a result, which is useless once its client has
    /// disconnected.
    pub fn end_with_client(&self) {
        self.ends_with_client.store(true, Relaxed);
    }

    /// Returns the time that is left of `maxTimeMS`. `None` if there is no limit.
    pub fn time_left(&self) -> Option<Duration> {
        let limit = self.limit_micros.load(Relaxed);
        (limit != NO_LIMIT)
            .then(|| Duration::from_micros(limit).saturating_sub(self.started.elapsed()))
    }

    /// Sets a time limit from now on if there is none: the time that is left of the limit of a
    /// cursor's command.
    pub fn limit_time(&self, left: Duration) {
        let limit = micros(self.started.elapsed().saturating_add(left));
        let _ = self
            .limit_micros
            .compare_exchange(NO_LIMIT, limit, Relaxed, Relaxed);
    }

    /// Marks the operation as waiting because its client requested it. Such an operation is not
    /// logged as slow.
    pub fn mark_as_requested_wait(&self) {
        self.is_requested_wait.store(true, Relaxed);
    }

    /// Sets the minimum duration of work from which the operation is recorded in the log or the
    /// profile.
    pub fn set_record_threshold(&self, least: Duration) {
        self.record_threshold_micros.store(micros(least), Relaxed);
    }

    /// Returns `true` if the operation would be recorded in the log or the profile if it ended now.
    /// If not, its details need not be collected.
    pub fn is_recorded(&self) -> bool {
        micros(self.work_duration()) >= self.record_threshold_micros.load(Relaxed)
    }

    /// Sets the hashes of its query and its plan. Each statement of a command replaces them.
    pub fn set_hashes(&self, hashes: DocumentBuf) {
        *lock(&self.hashes) = hashes;
    }

    /// Returns the hashes that [`set_hashes`](Self::set_hashes) has set.
    pub fn hashes(&self) -> DocumentBuf {
        lock(&self.hashes).clone()
    }

    /// Records a wait that its client requested, which does not count as work.
    pub fn record_wait(&self, waited: Duration) {
        self.waited_micros.fetch_add(micros(waited), Relaxed);
    }

    /// Returns the duration of the operation so far, without the waits that its client requested.
    pub fn work_duration(&self) -> Duration {
        let waited = Duration::from_micros(self.waited_micros.load(Relaxed));
        self.started.elapsed().saturating_sub(waited)
    }

    /// Returns `true` if the operation was marked by [`mark_as_requested_wait`](Self::mark_as_requested_wait).
    pub fn is_requested_wait(&self) -> bool {
        self.is_requested_wait.load(Relaxed)
    }

    /// Sets the namespace for `currentOp`, the log and the profile.
    pub fn set_namespace(&self, namespace: &str) {
        namespace.clone_into(&mut lock(&self.namespace));
    }

    pub fn namespace(&self) -> String {
        lock(&self.namespace).clone()
    }

    /// Sets the summary of the plan for `currentOp` and the log of slow operations, for example
    /// "IXSCAN { a: 1 }".
    pub fn set_plan_summary(&self, summary: &str) {
        *lock(&self.plan_summary) = Some(summary.to_owned());
    }

    /// Returns the summary that [`set_plan_summary`](Self::set_plan_summary) has set.
    pub fn plan_summary(&self) -> Option<String> {
        lock(&self.plan_summary).clone()
    }

    /// Returns `true` if the operation reports its progress.
    pub fn has_progress(&self) -> bool {
        lock(&self.progress).is_some()
    }

    /// Sets the progress for `currentOp`. `None` ends the report.
    pub fn set_progress(&self, progress: Option<Progress>) {
        *lock(&self.progress) = progress;
    }

    /// Adds a field of the log of slow operations.
    pub fn record(&self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        lock(&self.records).push(OperationRecord { name, value });
    }

    /// Adds the recorded work to the metrics.
    pub fn count_work(&self, metrics: &Metrics) {
        metrics.add_work(&lock(&self.records));
    }

    /// Returns the fields of the log of slow operations.
    pub fn slow_attributes(&self) -> DocumentBuf {
        let mut attr = doc! {
            "type": (self.kind.operation()), "ns": (self.namespace()), "command": (self.command()),
        };
        if let Some(summary) = lock(&self.plan_summary).clone() {
            attr.push("planSummary", summary);
        }
        for OperationRecord { name, value } in lock(&self.records).iter() {
            attr.push(name, value.clone());
        }
        for (name, value) in self.hashes().iter() {
            attr.push(name, value);
        }
        attr
    }

    /// Takes over the comment of the command that this one continues, unless it has its own.
    pub fn inherit_comment(&self, from: Document<'_>) {
        if let Some(comment) = from
            .get("comment")
            .filter(|_| !self.command.as_document().contains("comment"))
        {
            // An operation continues one command only.
            let _ = self.comment.set(comment.to_value());
        }
    }

    /// Returns the comment of its command.
    pub fn comment(&self) -> Option<ValueRef<'_>> {
        self.command.as_document().get("comment")
    }

    /// Sets the cursor that it uses.
    pub fn set_cursor(&self, described: impl Fn() -> DocumentBuf + Send + Sync + 'static) {
        // An operation uses one cursor only.
        let _ = self.cursor.set(CursorDescription(Box::new(described)));
    }

    /// Returns the command as it is shown.
    fn command(&self) -> DocumentBuf {
        let mut command = self.command.clone();
        if let Some(comment) = self.comment.get() {
            command.push("comment", comment.clone());
        }
        command
    }

    /// Returns the id of its connection.
    pub fn connection(&self) -> i32 {
        self.client.id
    }

    /// Returns the document in `currentOp`.
    pub fn describe(&self, host: &str) -> DocumentBuf {
        let running = self.started.elapsed();
        let mut op = self.client.describe(host);
        op.push("active", true);
        op.push("currentOpTime", clock::iso(SystemTime::now()));
        op.push("opid", self.id);
        if let Some(user) = &self.user {
            op.push("effectiveUsers", vec![user.to_document()]);
        }
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

impl WaitControl for Operation {
    fn set_waiting(&self, waits: bool) {
        self.waits_for_others.store(waits, Relaxed);
    }
}

/// Returns the error of an interrupted operation.
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

/// Most operations record at most this many fields.
const RECORDS_USUAL: usize = 8;

/// All running operations, by their ids.
#[derive(Debug, Default)]
pub struct Operations {
    running: Mutex<BTreeMap<i32, Arc<Operation>>>,
    started: AtomicU64,
}

/// The data from which an operation is started, besides its request.
#[derive(Clone, Copy, Debug)]
pub struct Starter<'a> {
    pub kind: Kind,
    /// The arguments with passwords.
    pub secret_arguments: SecretArguments,
    pub user: Option<&'a UserName>,
    /// The data set in which it runs, if there are several.
    pub data_set: Option<DataSetId>,
}

impl Starter<'_> {
    /// Returns a command of this kind without secrets and without a user.
    #[cfg(test)]
    pub fn for_tests(kind: Kind) -> Starter<'static> {
        Starter {
            kind,
            secret_arguments: |_| &[],
            user: None,
            data_set: None,
        }
    }
}

impl Operations {
    /// Registers a command. It is removed when the returned guard is dropped.
    pub fn start(
        &self,
        request: &Request,
        client: &Arc<Client>,
        started_by: Starter<'_>,
        session: Option<SessionId>,
        time_limit: Option<Duration>,
    ) -> RunningOperation<'_> {
        let started = Instant::now();
        // Ids are positive, as tools expect. They start again after two billion commands.
        let id = (self.started.fetch_add(1, Relaxed) % i32::MAX as u64) as i32 + 1;
        let operation = Arc::new(Operation {
            id,
            kind: started_by.kind,
            started,
            session,
            user: started_by.user.cloned(),
            data_set: started_by.data_set,
            client: Arc::clone(client),
            command: shown_command(
                request.body(),
                request.database(),
                started_by.secret_arguments,
            ),
            comment: OnceLock::new(),
            cursor: OnceLock::new(),
            limit_micros: AtomicU64::new(time_limit.map_or(NO_LIMIT, micros)),
            killed: AtomicI32::new(0),
            ends_with_client: AtomicBool::new(false),
            namespace: Mutex::new([request.database(), ".$cmd"].concat()),
            plan_summary: Mutex::default(),
            progress: Mutex::default(),
            records: Mutex::new(Vec::with_capacity(RECORDS_USUAL)),
            record_threshold_micros: AtomicU64::new(NO_LIMIT),
            hashes: Mutex::default(),
            is_requested_wait: AtomicBool::new(false),
            has_slot: AtomicBool::new(false),
            waits_for_others: AtomicBool::new(false),
            waited_micros: AtomicU64::new(0),
        });
        lock(&self.running).insert(id, Arc::clone(&operation));
        RunningOperation {
            operations: self,
            operation,
        }
    }

    /// Returns the running operations in ascending order of their ids.
    pub fn all(&self) -> Vec<Arc<Operation>> {
        lock(&self.running).values().cloned().collect()
    }

    /// Kills the operation with this id, if it is running.
    pub fn kill(&self, id: i32, code: ErrorCode) {
        if let Some(operation) = lock(&self.running).get(&id) {
            operation.kill(code);
        }
    }

    /// Kills the operations of a session.
    pub fn kill_session(&self, session: SessionId, code: ErrorCode) {
        self.kill_where(code, |operation| operation.session == Some(session));
    }

    /// Kills the operations for which `is_meant` returns `true`.
    pub fn kill_where(&self, code: ErrorCode, is_meant: impl Fn(&Operation) -> bool) {
        let running = lock(&self.running);
        running
            .values()
            .filter(|one| is_meant(one))
            .for_each(|one| one.kill(code));
    }

    /// Kills operations that only return a result to a client that has closed its connection.
    pub fn kill_disconnected(&self, connections: &Connections) {
        let is_watched = |one: &&Arc<Operation>| {
            one.ends_with_client.load(Relaxed) && one.started.elapsed() > WATCH_DELAY
        };
        let running = lock(&self.running);
        let watched: Vec<_> = running.values().filter(is_watched).cloned().collect();
        // The table is not locked while the sockets are checked.
        drop(running);
        let disconnected = watched
            .into_iter()
            .filter(|one| connections.is_gone(one.connection()));
        disconnected.for_each(|one| one.kill(ErrorCode::ClientDisconnect));
    }

    /// Returns the running operations in ascending order of their ids, and the clients without one.
    /// Both are from the same moment.
    pub fn running_and_idle(
        &self,
        connections: &Connections,
    ) -> (Vec<Arc<Operation>>, Vec<Arc<Client>>) {
        let running = lock(&self.running);
        let mut idle = connections.clients();
        let busy: HashSet<i32> = running.values().map(|one| one.connection()).collect();
        idle.retain(|client| !busy.contains(&client.id));
        (running.values().cloned().collect(), idle)
    }
}

/// A registered operation. It is removed from the table when this is dropped.
pub struct RunningOperation<'a> {
    operations: &'a Operations,
    pub operation: Arc<Operation>,
}

impl Drop for RunningOperation<'_> {
    fn drop(&mut self) {
        lock(&self.operations.running).remove(&self.operation.id);
    }
}
