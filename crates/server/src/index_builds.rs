//! Index builds: a thread that builds, a command that waits, log lines of the phases, and progress
//! in `currentOp`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use windrow_collection::{
    BuildControl, BuildPhase, Collection, CreatedIndexes, Engine, Error, Index, Interrupted,
    ShareProgress,
};
use windrow_document::{DocumentBuf, Value, doc};
use windrow_index::Definition;
use windrow_wire::{CommandError, ErrorCode};

use crate::errors::IntoCommandError;
use crate::log::Log;
use crate::operations::{Operation, Progress};
use crate::sync::lock;

/// An index build, and the log for its events.
pub struct Build {
    pub engine: Arc<Engine>,
    pub collection: Arc<Collection>,
    pub definitions: Vec<Definition>,
    pub log: Arc<Log>,
    /// The thread that requested it, for log lines.
    pub context: String,
}

/// The state that the building thread and the waiting command share.
#[derive(Default)]
struct BuildStatus {
    stop: AtomicBool,
    indexes: Mutex<Vec<Arc<Index>>>,
}

/// The interval at which a waiting command checks if it must stop, and updates the progress.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The time that an interrupted command waits for its build to end. A build that is sorting or
/// writing at that moment ends later by itself and removes its indexes.
const ABORT_WAIT_MAX: Duration = Duration::from_millis(150);

/// The minimum time between two log lines about progress.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Builds indexes. Returns when they are ready and durable.
pub fn run(build: Build, operation: &Operation) -> Result<CreatedIndexes, CommandError> {
    let shared = Arc::new(BuildStatus::default());
    let (sender, receiver) = channel();
    let theirs = shared.clone();
    let thread = thread::Builder::new().name("IndexBuild".into());
    let spawned = thread.spawn(move || {
        let outcome = build.run(&theirs);
        // The command may have ended before.
        drop(sender.send(outcome));
    });
    spawned.map_err(|error| {
        let message = format!("no thread can be started for the index build: {error}");
        CommandError::new(ErrorCode::OperationFailed, message)
    })?;
    wait(&shared, &receiver, operation)
}

/// Builds indexes in this thread, without a command that waits. Returns when they are ready and
/// durable.
pub fn run_here(build: &Build) -> Result<CreatedIndexes, Error> {
    build.run(&BuildStatus::default())
}

fn wait(
    shared: &BuildStatus,
    outcome: &Receiver<Result<CreatedIndexes, Error>>,
    operation: &Operation,
) -> Result<CreatedIndexes, CommandError> {
    let mut interrupted: Option<(CommandError, Instant)> = None;
    loop {
        let left = operation.time_left().filter(|_| interrupted.is_none());
        match outcome.recv_timeout(left.map_or(CHECK_INTERVAL, |left| left.min(CHECK_INTERVAL))) {
            Ok(Ok(created)) => return Ok(created),
            Ok(Err(error)) => {
                return Err(interrupted.map_or_else(|| ended(error), |(error, _)| error));
            }
            Err(RecvTimeoutError::Disconnected) => {
                let message =
                    "the index build ended unexpectedly: the server's log has the details";
                return Err(CommandError::new(ErrorCode::UnknownError, message));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        operation.set_progress(progress(&lock(&shared.indexes)));
        if let Err(error) = operation.check() {
            // If the server stops, the next start continues the build.
            if error.code == ErrorCode::InterruptedAtShutdown {
                return Err(error);
            }
            shared.stop.store(true, Relaxed);
            match &interrupted {
                Some((_, since)) if since.elapsed() >= ABORT_WAIT_MAX => {
                    // The build must not finish any more, because the client gets an error.
                    let indexes = lock(&shared.indexes);
                    let unready = indexes.iter().filter(|index| !index.is_ready());
                    unready.for_each(|index| index.set_dropped());
                    return Err(error);
                }
                Some(_) => {}
                None => interrupted = Some((error, Instant::now())),
            }
        }
    }
}

/// The error of a build that its own command did not stop.
fn ended(error: Error) -> CommandError {
    match error {
        Error::Interrupted(interrupted) => {
            CommandError::new(ErrorCode::IndexBuildAborted, interrupted.into_message())
        }
        other => other.into_command_error(),
    }
}

/// How often a waiting command checks if an aborted index is removed. This takes longer only if the
/// disk fails.
const DROPPED_INDEX_CHECKS_MAX: u32 = 250;

/// Those of the requested indexes that other commands are building.
pub fn unready(indexes: &[Arc<Index>], definitions: &[Definition]) -> Vec<Arc<Index>> {
    let is_requested = |index: &Index| {
        definitions
            .iter()
            .any(|it| it.name == index.definition.name)
    };
    let unready = indexes
        .iter()
        .filter(|it| !it.is_ready() && is_requested(it));
    unready.cloned().collect()
}

/// Waits until other commands have built or aborted these indexes, so that an index that is
/// reported as existing can be used.
pub fn wait_ready(
    collection: &Collection,
    building: &[Arc<Index>],
    operation: &Operation,
) -> Result<(), CommandError> {
    for index in building {
        let is_there = || {
            collection
                .all_indexes()
                .iter()
                .any(|it| it.map == index.map)
        };
        let mut checks_left = DROPPED_INDEX_CHECKS_MAX;
        while !index.is_ready() && is_there() {
            checks_left -= u32::from(index.is_dropped());
            if checks_left == 0 || collection.is_dropped() {
                let message = format!("the build of index '{}' failed", index.definition.name);
                return Err(CommandError::new(ErrorCode::IndexBuildAborted, message));
            }
            operation.set_progress(progress(building));
            operation.check()?;
            thread::sleep(CHECK_INTERVAL);
        }
    }
    operation.set_progress(None);
    Ok(())
}

/// The progress of a build. `None` if it has not started.
pub fn progress(indexes: &[Arc<Index>]) -> Option<Progress> {
    let first = indexes.first()?.progress();
    let each =
        |of: fn(&Index) -> &AtomicU64| indexes.iter().map(move |index| of(index).load(Relaxed));
    let total = each(|index| &index.progress().documents_total).max()?;
    let done = each(|index| &index.progress().documents).max()?.min(total);
    let checking = first.checking.load(Relaxed);
    if total == 0 {
        return None;
    }
    let phase = if checking {
        "checking unique keys"
    } else {
        "scanning collection"
    };
    let mut details = doc! {
        "phase": phase, "documents": (done as i64), "documentsTotal": (total as i64),
        "keys": (each(|index| &index.progress().keys).sum::<u64>() as i64),
        "bytes": (each(|index| &index.progress().bytes).sum::<u64>() as i64),
    };
    let shares = first.shares.lock();
    if !shares.is_empty() {
        let share = |it: &ShareProgress| {
            doc! { "builder": (it.builder.as_str()), "documents": (it.documents as i64) }
        };
        let shares: Vec<DocumentBuf> = shares.iter().map(share).collect();
        details.push("shares", shares);
    }
    if done > 0 {
        let left = first.started.elapsed().as_secs_f64() * (total - done) as f64 / done as f64;
        details.push("secondsLeft", left);
    }
    Some(Progress {
        message: format!("Index Build: {phase}"),
        done,
        total,
        details: ("indexBuild", details),
    })
}

/// A collection with indexes that are not ready.
pub struct UnfinishedBuild {
    pub collection: Arc<Collection>,
    pub indexes: Vec<Arc<Index>>,
}

/// The collections with indexes that are being built.
pub fn unfinished(engine: &Engine) -> Vec<UnfinishedBuild> {
    let databases = engine.databases();
    let collections = databases.iter().flat_map(|name| engine.collections(name));
    let of = |collection: Arc<Collection>| {
        let mut indexes = collection.all_indexes();
        indexes.retain(|index| !index.is_ready());
        UnfinishedBuild {
            collection,
            indexes,
        }
    };
    let all = collections.map(of);
    all.filter(|one| !one.indexes.is_empty()).collect()
}

impl UnfinishedBuild {
    /// The description in `serverStatus`.
    pub fn summary(&self) -> DocumentBuf {
        let names = self.indexes.iter();
        let names: Vec<String> = names.map(|index| index.definition.name.clone()).collect();
        let namespace = self.collection.namespace().to_string();
        let mut summary = doc! { "namespace": namespace, "indexes": names };
        if let Some(progress) = progress(&self.indexes) {
            let (name, details) = progress.details;
            summary.push(name, details);
        }
        summary
    }

    /// The description in `currentOp` of a build for which no client waits.
    pub fn describe(&self, host: &str) -> DocumentBuf {
        let namespace = self.collection.namespace();
        let specifications = self.indexes.iter();
        let specifications: Vec<Value> = specifications
            .map(|index| Value::from(index.definition.specification.clone()))
            .collect();
        let mut op = doc! {
            "type": "op", "host": host, "desc": "IndexBuild", "active": true, "op": "command",
            "ns": (namespace.to_string()),
            "command": {
                "createIndexes": (namespace.collection), "indexes": specifications,
                "$db": (namespace.database),
            },
        };
        if let Some(progress) = progress(&self.indexes) {
            progress.describe(&mut op);
        }
        op
    }
}

/// Logs the builds that continue from an earlier run of the server, and their end.
pub fn log_resumed_builds(engine: &Arc<Engine>, log: &Arc<Log>) {
    for left in unfinished(engine) {
        let log = log.clone();
        let thread = thread::Builder::new().name("IndexBuild".into());
        // If the thread cannot be started, the build continues without log lines.
        drop(thread.spawn(move || left.watch(&log)));
    }
}

impl UnfinishedBuild {
    fn watch(self, log: &Log) {
        let namespace = self.collection.namespace().to_string();
        let started = Instant::now();
        let report = |id: i32, message: &str, index: &Index| {
            let attr = doc! {
                "namespace": (namespace.clone()), "index": (index.definition.name.as_str()),
                "durationSeconds": (started.elapsed().as_secs_f64()),
            };
            log.info("INDEX", id, "IndexBuild", message, attr);
        };
        for index in &self.indexes {
            report(20_660, "Index build: resuming", index);
        }
        for index in &self.indexes {
            while !index.is_ready() && !index.is_dropped() {
                thread::sleep(CHECK_INTERVAL);
            }
            if index.is_ready() {
                report(20_345, "Index build: done building", index)
            } else {
                report(20_649, "Index build: failed", index)
            }
        }
    }
}

impl Build {
    fn run(&self, shared: &BuildStatus) -> Result<CreatedIndexes, Error> {
        let started = Instant::now();
        let last_line = Mutex::new(started);
        let interrupt = || {
            self.log_progress(shared, &last_line);
            if shared.stop.load(Relaxed) {
                return Err(Interrupted::new("the index build was interrupted"));
            }
            Ok(())
        };
        let on_phase = |phase: &BuildPhase| self.log_phase(phase, shared);
        let control = BuildControl {
            interrupt: &interrupt,
            on_phase: &on_phase,
        };
        self.info(20_438, "Index build: registering", self.described());
        let outcome = self
            .collection
            .create_indexes(self.definitions.clone(), &control)
            .and_then(|created| self.engine.sync().map(|()| created));
        self.log_end(&outcome, started);
        outcome
    }

    fn info(&self, id: i32, message: &str, attr: DocumentBuf) {
        self.log.info("INDEX", id, &self.context, message, attr);
    }

    fn namespace(&self) -> String {
        self.collection.namespace().to_string()
    }

    fn described(&self) -> DocumentBuf {
        let all = self.definitions.iter();
        let specifications = all.map(|one| Value::from(one.specification.clone()));
        doc! {
            "namespace": (self.namespace()), "indexes": (self.definitions.len() as i32),
            "specifications": (specifications.collect::<Vec<Value>>()),
        }
    }

    fn log_phase(&self, phase: &BuildPhase, shared: &BuildStatus) {
        let namespace = self.namespace();
        match phase {
            BuildPhase::Registered { indexes } => {
                lock(&shared.indexes).clone_from(indexes);
                for index in indexes {
                    let attr = doc! {
                        "namespace": (namespace.clone()),
                        "properties": (index.definition.specification.clone()),
                    };
                    self.info(20_384, "Index build: starting", attr);
                }
            }
            BuildPhase::Scanned {
                documents,
                keys,
                seconds,
            } => {
                let scanned = doc! {
                    "namespace": (namespace.clone()), "totalRecords": (*documents as i64),
                    "durationSeconds": (*seconds),
                };
                self.info(20_391, "Index build: collection scan done", scanned);
                let inserted = doc! {
                    "namespace": namespace, "keysInserted": (*keys as i64),
                    "durationSeconds": (*seconds),
                };
                self.info(20_685, "Index build: inserted keys", inserted);
            }
            BuildPhase::Checked { seconds } => {
                let attr = doc! { "namespace": namespace, "durationSeconds": (*seconds) };
                self.info(20_689, "Index build: checked unique keys", attr);
            }
            BuildPhase::Ready { seconds } => {
                for index in lock(&shared.indexes).iter() {
                    let attr = doc! {
                        "namespace": (namespace.clone()),
                        "index": (index.definition.name.as_str()),
                        "durationSeconds": (*seconds),
                    };
                    self.info(20_345, "Index build: done building", attr);
                }
            }
        }
    }

    /// Only one of the scanning threads writes the line.
    fn log_progress(&self, shared: &BuildStatus, last_line: &Mutex<Instant>) {
        let Ok(mut last) = last_line.try_lock() else {
            return;
        };
        if last.elapsed() < LOG_INTERVAL {
            return;
        }
        *last = Instant::now();
        if let Some(progress) = progress(&lock(&shared.indexes)) {
            let mut attr = doc! {
                "namespace": (self.namespace()), "done": (progress.done as i64),
                "total": (progress.total as i64),
            };
            let (name, details) = progress.details;
            attr.push(name, details);
            self.info(51_773, "Index build: in progress", attr);
        }
    }

    fn log_end(&self, outcome: &Result<CreatedIndexes, Error>, started: Instant) {
        let namespace = self.namespace();
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(created) => {
                let attr = doc! {
                    "namespace": namespace, "indexesBuilt": (created.created.len() as i32),
                    "numIndexesBefore": (created.before as i32),
                    "numIndexesAfter": (created.after as i32), "durationSeconds": seconds,
                };
                self.info(20_663, "Index build: completed successfully", attr);
            }
            Err(error) => {
                let attr = doc! { "namespace": namespace, "error": (error.to_string()) };
                self.info(20_649, "Index build: failed", attr);
            }
        }
    }
}
