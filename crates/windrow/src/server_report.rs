//! Reports about a running server, for `windrow top` and `windrow status`.
//!
//! [`Sample`] queries the server (`serverStatus`, `top`, `currentOp`). [`Report`] is the difference
//! of two samples: rates and latencies between them, and the state at the end. It contains neither
//! documents nor values of statements.

pub mod page;
mod sample;

use std::time::Duration;

use windrow_client::server_status::{latencies_between, number, percentile_ms, section};
use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};

use crate::command_line::Failure;
use crate::server_target::ResolvedTarget;
pub use sample::Sample;
use sample::total_of_collection;

/// The counted operations, in the order of display.
const OPERATIONS: &[&str] = &["insert", "query", "update", "delete", "getmore", "command"];

/// The classes of latencies.
const CLASSES: &[&str] = &["reads", "writes", "commands", "transactions"];

/// The state of a server, and its activity between two samples.
#[derive(Debug)]
pub struct Report {
    pub host: String,
    pub version: String,
    pub uptime_seconds: i64,
    pub interval_seconds: f64,
    pub operations: Vec<OperationRate>,
    pub latencies: Vec<LatencyRate>,
    /// `connections`, `cursors`, `transactions`, `memory`, `background`, `log`, `disk` and
    /// `network`, each with its numbers.
    pub sections: Vec<Section>,
    /// Index builds: namespace, index names and progress as reported by the server.
    pub builds: Vec<DocumentBuf>,
    /// The running operations, the longest first.
    pub running: Vec<RunningOperation>,
    /// The collections in descending order of their time.
    pub collections: Vec<CollectionRate>,
    /// The parts that the user is not allowed to see.
    pub missing: Vec<String>,
}

/// Operations of a kind per second.
#[derive(Debug)]
pub struct OperationRate {
    pub kind: &'static str,
    pub per_second: f64,
}

/// The rate and latency of a class of operations.
#[derive(Debug)]
pub struct LatencyRate {
    pub class: &'static str,
    pub per_second: f64,
    /// In milliseconds. `None` if there were no operations.
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

/// A group of values.
#[derive(Debug)]
pub struct Section {
    pub name: &'static str,
    pub values: Vec<(&'static str, f64)>,
}

/// A running operation.
#[derive(Debug)]
pub struct RunningOperation {
    pub id: i64,
    /// "query", "command" and so on.
    pub kind: String,
    /// The name of the command.
    pub command: String,
    pub namespace: String,
    pub seconds: f64,
    pub client: String,
    pub user: String,
    pub plan: String,
}

/// The activity of a collection.
#[derive(Debug)]
pub struct CollectionRate {
    pub namespace: String,
    pub per_second: f64,
    /// Milliseconds of work per second.
    pub total_ms: f64,
    pub read_ms: f64,
    pub write_ms: f64,
}

impl Report {
    /// Measures the activity of a server during an interval.
    pub fn measure(target: &ResolvedTarget, interval: Duration) -> Result<Report, Failure> {
        let mut client = target.connect().map_err(Failure::runtime)?;
        let before = Sample::take(&mut client).map_err(Failure::runtime)?;
        std::thread::sleep(interval);
        let after = Sample::take(&mut client).map_err(Failure::runtime)?;
        Ok(Report::from_samples(&before, &after))
    }

    /// Returns the difference of two samples of a server.
    pub fn from_samples(before: &Sample, after: &Sample) -> Report {
        let seconds = after.at.duration_since(before.at).as_secs_f64().max(1e-3);
        let (old, new) = (before.status.as_document(), after.status.as_document());
        // The counters of a restarted server begin at zero.
        let rate = |path: &[&str]| (number(new, path) - number(old, path)).max(0.0) / seconds;
        let text = |path: &[&str]| match section(new, path) {
            Some(ValueRef::String(text)) => text.to_owned(),
            _ => String::new(),
        };
        let operations = OPERATIONS.iter().map(|kind| OperationRate {
            kind,
            per_second: rate(&["opcounters", kind]),
        });
        let latencies = CLASSES.iter().map(|class| {
            let counts = latencies_between(old, new, class);
            LatencyRate {
                class,
                per_second: rate(&["opLatencies", class, "ops"]),
                p50_ms: percentile_ms(&counts, 0.5),
                p99_ms: percentile_ms(&counts, 0.99),
            }
        });
        let builds = section(new, &["indexBuilds", "inProgress"]).and_then(ValueRef::as_array);
        let builds = builds
            .into_iter()
            .flatten()
            .filter_map(ValueRef::as_document);
        Report {
            host: text(&["host"]),
            version: text(&["windrow", "version"]),
            uptime_seconds: number(new, &["uptime"]) as i64,
            interval_seconds: seconds,
            operations: operations.collect(),
            latencies: latencies.collect(),
            sections: sections(new, rate),
            builds: builds.map(|build| build.to_buf()).collect(),
            running: running(&after.operations),
            collections: collections(before, after, seconds),
            missing: after.missing.clone(),
        }
    }

    /// Returns the value with this name in a section.
    pub fn value(&self, section: &str, name: &str) -> f64 {
        let found = self.sections.iter().find(|one| one.name == section);
        let values = found.map(|one| one.values.as_slice()).unwrap_or_default();
        let value = values.iter().find(|(known, _)| *known == name);
        value.map_or(0.0, |(_, value)| *value)
    }

    /// Returns the report as a document.
    pub fn to_document(&self) -> DocumentBuf {
        let mut document = doc! {
            "host": (self.host.as_str()), "version": (self.version.as_str()),
            "uptimeSeconds": (self.uptime_seconds), "intervalSeconds": (self.interval_seconds),
        };
        let mut operations = DocumentBuf::new();
        for one in &self.operations {
            operations.push(one.kind, one.per_second);
        }
        document.push("operationsPerSecond", operations);
        let mut latencies = DocumentBuf::new();
        for one in &self.latencies {
            let optional = |value: Option<f64>| value.map_or(Value::Null, Value::from);
            let latency = doc! {
                "perSecond": (one.per_second), "p50Ms": (optional(one.p50_ms)),
                "p99Ms": (optional(one.p99_ms)),
            };
            latencies.push(one.class, latency);
        }
        document.push("latencies", latencies);
        for section in &self.sections {
            let mut values = DocumentBuf::new();
            for (name, value) in &section.values {
                values.push(name, *value);
            }
            document.push(section.name, values);
        }
        let list = |documents: Vec<DocumentBuf>| -> Vec<Value> {
            documents.into_iter().map(Value::from).collect()
        };
        document.push("indexBuilds", list(self.builds.clone()));
        document.push(
            "running",
            list(
                self.running
                    .iter()
                    .map(RunningOperation::to_document)
                    .collect(),
            ),
        );
        let collections = self.collections.iter().map(CollectionRate::to_document);
        document.push("collections", list(collections.collect()));
        document.push("missing", self.missing.clone());
        document
    }
}

impl RunningOperation {
    fn to_document(&self) -> DocumentBuf {
        doc! {
            "opid": (self.id), "op": (self.kind.as_str()), "command": (self.command.as_str()),
            "ns": (self.namespace.as_str()), "seconds": (self.seconds),
            "client": (self.client.as_str()), "user": (self.user.as_str()),
            "planSummary": (self.plan.as_str()),
        }
    }
}

impl CollectionRate {
    fn to_document(&self) -> DocumentBuf {
        doc! {
            "ns": (self.namespace.as_str()), "perSecond": (self.per_second),
            "totalMsPerSecond": (self.total_ms), "readMsPerSecond": (self.read_ms),
            "writeMsPerSecond": (self.write_ms),
        }
    }
}

/// Returns the values of the newer status, and rates.
fn sections(status: Document<'_>, rate: impl Fn(&[&str]) -> f64) -> Vec<Section> {
    let mut sections = client_sections(status, &rate);
    sections.extend(engine_sections(status, &rate));
    sections.push(Section {
        name: "network",
        values: vec![
            ("inBytesPerSecond", rate(&["network", "bytesIn"])),
            ("outBytesPerSecond", rate(&["network", "bytesOut"])),
            ("requestsPerSecond", rate(&["network", "numRequests"])),
        ],
    });
    sections
}

/// Returns the sections about the clients of the server.
fn client_sections(status: Document<'_>, rate: &impl Fn(&[&str]) -> f64) -> Vec<Section> {
    let now = |path: &[&str]| number(status, path);
    let section = |name, values| Section { name, values };
    vec![
        section(
            "connections",
            vec![
                ("current", now(&["connections", "current"])),
                ("active", now(&["connections", "active"])),
                ("available", now(&["connections", "available"])),
                ("rejected", now(&["connections", "rejected"])),
                ("createdPerSecond", rate(&["connections", "totalCreated"])),
            ],
        ),
        section(
            "cursors",
            vec![("open", now(&["metrics", "cursor", "open", "total"]))],
        ),
        section(
            "transactions",
            vec![
                ("open", now(&["transactions", "currentOpen"])),
                (
                    "committedPerSecond",
                    rate(&["transactions", "totalCommitted"]),
                ),
                ("abortedPerSecond", rate(&["transactions", "totalAborted"])),
            ],
        ),
    ]
}

/// Returns the sections about the engine.
fn engine_sections(status: Document<'_>, rate: &impl Fn(&[&str]) -> f64) -> Vec<Section> {
    let now = |path: &[&str]| number(status, path);
    let unsynced = now(&["windrow", "log", "written"]) - now(&["windrow", "log", "synced"]);
    let section = |name, values| Section { name, values };
    vec![
        section(
            "memory",
            vec![
                (
                    "residentBytes",
                    now(&["mem", "resident"]) * f64::from(1 << 20),
                ),
                ("limitBytes", now(&["windrow", "memory", "limit"])),
                ("cacheBytes", now(&["windrow", "memory", "cache"])),
                ("tailsBytes", now(&["windrow", "memory", "tails"])),
            ],
        ),
        section(
            "background",
            vec![
                ("folds", now(&["windrow", "folds"])),
                ("foldsPerSecond", rate(&["windrow", "folds"])),
                ("merges", now(&["windrow", "merges"])),
                ("mergesPerSecond", rate(&["windrow", "merges"])),
                (
                    "delayedWritesPerSecond",
                    rate(&["windrow", "delayedWrites"]),
                ),
                ("openSnapshots", now(&["windrow", "openSnapshots"])),
                ("indexBuilds", now(&["indexBuilds", "active"])),
                ("unsyncedCommits", unsynced.max(0.0)),
            ],
        ),
        section(
            "disk",
            vec![
                ("dataBytes", now(&["windrow", "disk", "data"])),
                ("freeBytes", now(&["windrow", "disk", "free"])),
                ("totalBytes", now(&["windrow", "disk", "total"])),
            ],
        ),
    ]
}

/// Commands that only monitor the server.
const WATCHING: &[&str] = &["hello", "isMaster", "ismaster", "currentOp"];

fn running(operations: &[DocumentBuf]) -> Vec<RunningOperation> {
    let mut running: Vec<RunningOperation> = operations
        .iter()
        .filter_map(|operation| running_operation(operation.as_document()))
        .collect();
    running.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    running
}

fn running_operation(operation: Document<'_>) -> Option<RunningOperation> {
    let text = |name: &str| match operation.get(name) {
        Some(ValueRef::String(text)) => text.to_owned(),
        _ => String::new(),
    };
    let command = operation.get("command").and_then(ValueRef::as_document);
    let command = command
        .and_then(|it| it.first())
        .map_or("", |(name, _)| name);
    let is_active = operation.get("active").is_some_and(ValueRef::is_truthy);
    if !is_active || WATCHING.contains(&command) {
        return None;
    }
    let users = operation.get("effectiveUsers").and_then(ValueRef::as_array);
    let user = users
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_document);
    let mut user = user.filter_map(|user| {
        let (name, database) = (user.get("user")?.as_str()?, user.get("db")?.as_str()?);
        Some(format!("{name}@{database}"))
    });
    Some(RunningOperation {
        id: operation
            .get("opid")
            .and_then(ValueRef::as_whole)
            .unwrap_or(0),
        kind: text("op"),
        command: command.to_owned(),
        namespace: text("ns"),
        seconds: number(operation, &["microsecs_running"]) / 1e6,
        client: text("client"),
        user: user.next().unwrap_or_default(),
        plan: text("planSummary"),
    })
}

/// The maximum number of collections in a report.
const COLLECTIONS_MAX: usize = 50;

fn collections(before: &Sample, after: &Sample, seconds: f64) -> Vec<CollectionRate> {
    let empty = DocumentBuf::new();
    let old = before.collections.as_ref().unwrap_or(&empty).as_document();
    let Some(new) = &after.collections else {
        return Vec::new();
    };
    let mut rates = Vec::new();
    for (namespace, value) in new.iter() {
        let Some(now) = value.as_document() else {
            continue;
        };
        let known = old.get(namespace).and_then(ValueRef::as_document);
        let known = known.unwrap_or(empty.as_document());
        let rate = |kind: &str, field: &str| {
            let (new, old) = (number(now, &[kind, field]), number(known, &[kind, field]));
            (new - old).max(0.0) / seconds
        };
        if total_of_collection(now) > total_of_collection(known) {
            rates.push(CollectionRate {
                namespace: namespace.to_owned(),
                per_second: rate("total", "count"),
                total_ms: rate("total", "time") / 1e3,
                read_ms: rate("readLock", "time") / 1e3,
                write_ms: rate("writeLock", "time") / 1e3,
            });
        }
    }
    rates.sort_by(|one, other| other.total_ms.total_cmp(&one.total_ms));
    rates.truncate(COLLECTIONS_MAX);
    rates
}
