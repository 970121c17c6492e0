//! Counters since the start of the server, for `serverStatus`.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use windrow_document::{DocumentBuf, Value, doc};

use crate::latency::{AtomicLatency, CLASSES, Latencies, LatencyClass};
use crate::tls::TlsVersion;

/// A value that an operation records.
#[derive(Debug)]
pub struct OperationRecord {
    /// The name in the log of slow operations: `keysExamined`, `nreturned`, …
    pub name: &'static str,
    pub value: Value,
}

/// The kind of a command in `opcounters` and in `currentOp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Insert,
    Query,
    Update,
    Delete,
    GetMore,
    Command,
}

impl Kind {
    /// Returns the name in `currentOp` and in the log of slow operations.
    pub fn operation(self) -> &'static str {
        match self {
            Kind::Insert => "insert",
            Kind::Query => "query",
            Kind::Update => "update",
            Kind::Delete => "remove",
            Kind::GetMore => "getmore",
            Kind::Command => "command",
        }
    }
}

/// The number of times that a command was requested and that it failed, and its durations.
#[derive(Debug, Default)]
pub struct CommandCounts {
    pub total: AtomicU64,
    pub failed: AtomicU64,
    pub latency: AtomicLatency,
    /// The number of its updates with a pipeline, and of those with array filters.
    by_pipeline: AtomicU64,
    with_array_filters: AtomicU64,
}

/// Commands that count their updates.
const UPDATES: &[&str] = &["findAndModify", "update"];

/// The counters of the server for `serverStatus`.
#[derive(Debug, Default)]
pub struct Metrics {
    /// By command name. It is created for all commands at the first request.
    by_command: OnceLock<HashMap<&'static str, CommandCounts>>,
    /// Requests for unknown commands.
    pub unknown_commands: AtomicU64,
    pub inserts: AtomicU64,
    pub queries: AtomicU64,
    pub updates: AtomicU64,
    pub deletes: AtomicU64,
    pub get_mores: AtomicU64,
    pub commands: AtomicU64,
    pub index_builds: AtomicU64,
    pub index_builds_failed: AtomicU64,
    /// Documents that TTL indexes have deleted, and the number of passes.
    pub ttl_deleted: AtomicU64,
    pub ttl_passes: AtomicU64,
    pub documents_deleted: AtomicU64,
    pub documents_inserted: AtomicU64,
    pub documents_matched: AtomicU64,
    pub documents_returned: AtomicU64,
    /// The numbers of index keys and documents that plans have examined, and of plans that sorted.
    pub keys_examined: AtomicU64,
    pub documents_examined: AtomicU64,
    pub sorts: AtomicU64,
    /// By command class.
    latencies: [AtomicLatency; CLASSES],
    pub bytes_in: AtomicU64,
    pub bytes_out: AtomicU64,
    pub requests: AtomicU64,
    pub connections_created: AtomicU64,
    pub connections_rejected: AtomicU64,
    /// Connections that currently run a command.
    pub connections_active: AtomicI64,
    /// Operations that exceeded their own time limit or the default of reads, and those whose
    /// client disconnected.
    pub killed_by_limit: AtomicU64,
    pub killed_by_default_limit: AtomicU64,
    pub killed_by_disconnect: AtomicU64,
    /// Connections by the version of TLS.
    connections_tls_1_2: AtomicU64,
    connections_tls_1_3: AtomicU64,
    connections_tls_unknown: AtomicU64,
    pub user_errors: AtomicU64,
    pub panics: AtomicU64,
}

impl Metrics {
    /// Counts a requested command. Inserts, updates and deletes count their statements themselves.
    pub fn count(&self, kind: Kind) {
        match kind {
            Kind::Query => &self.queries,
            Kind::GetMore => &self.get_mores,
            Kind::Command => &self.commands,
            Kind::Insert | Kind::Update | Kind::Delete => return,
        }
        .fetch_add(1, Relaxed);
    }

    /// Adds the values that an operation has recorded. A sort may be recorded twice.
    pub fn add_work(&self, records: &[OperationRecord]) {
        let mut sorts = false;
        for OperationRecord { name, value } in records {
            let counter = match *name {
                "docsExamined" => &self.documents_examined,
                "keysExamined" => &self.keys_examined,
                "nMatched" => &self.documents_matched,
                "ndeleted" => &self.documents_deleted,
                "ninserted" => &self.documents_inserted,
                "nreturned" => &self.documents_returned,
                "hasSortStage" => {
                    sorts = true;
                    continue;
                }
                _ => continue,
            };
            let count = value
                .as_ref()
                .as_whole()
                .and_then(|count| u64::try_from(count).ok());
            counter.fetch_add(count.unwrap_or(0), Relaxed);
        }
        self.sorts.fetch_add(sorts.into(), Relaxed);
    }

    /// Returns the counters of a command. `all` are the names of all commands.
    pub fn command_counts(
        &self,
        all: impl Iterator<Item = &'static str>,
        name: &str,
    ) -> Option<&CommandCounts> {
        let make = || all.map(|name| (name, CommandCounts::default())).collect();
        self.by_command.get_or_init(make).get(name)
    }

    /// Returns the counters of all commands, sorted by name. Empty before the first command.
    pub fn all_command_counts(&self) -> Vec<(&'static str, &CommandCounts)> {
        let counts = self.by_command.get().into_iter().flatten();
        let mut counts: Vec<_> = counts.map(|(name, counts)| (*name, counts)).collect();
        counts.sort_by_key(|(name, _)| *name);
        counts
    }

    /// Counts an update of a command by its form.
    pub fn count_update(&self, command: &str, by_pipeline: bool, with_array_filters: bool) {
        if let Some(counts) = self.by_command.get().and_then(|all| all.get(command)) {
            counts.by_pipeline.fetch_add(by_pipeline.into(), Relaxed);
            counts
                .with_array_filters
                .fetch_add(with_array_filters.into(), Relaxed);
        }
    }

    /// Returns `{NAME: {failed, total}}` of all commands, sorted by name. Commands that update have
    /// more fields.
    pub fn commands(&self) -> DocumentBuf {
        let mut described = doc! { "<UNKNOWN>": (int(&self.unknown_commands)) };
        for (name, counts) in self.all_command_counts() {
            let (failed, total) = (int(&counts.failed), int(&counts.total));
            let shown = if UPDATES.contains(&name) {
                doc! {
                    "arrayFilters": (int(&counts.with_array_filters)), "failed": failed,
                    "pipeline": (int(&counts.by_pipeline)), "total": total,
                }
            } else {
                doc! { "failed": failed, "total": total }
            };
            described.push(name, shown);
        }
        described
    }

    /// Records the duration of a command.
    pub fn record_latency(&self, class: LatencyClass, time: Duration) {
        if let Some(latency) = self.latencies.get(class as usize) {
            latency.add(time);
        }
    }

    /// Counts a connection with TLS.
    pub fn count_tls(&self, version: Option<TlsVersion>) {
        match version {
            Some(TlsVersion::V12) => &self.connections_tls_1_2,
            Some(TlsVersion::V13) => &self.connections_tls_1_3,
            None => &self.connections_tls_unknown,
        }
        .fetch_add(1, Relaxed);
    }

    /// Returns the number of connections by the version of TLS.
    pub fn tls_connections(&self) -> [(&'static str, u64); 3] {
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        [
            ("1.2", count(&self.connections_tls_1_2)),
            ("1.3", count(&self.connections_tls_1_3)),
            ("unknown", count(&self.connections_tls_unknown)),
        ]
    }

    /// Connections by the version of TLS. The server does not have the versions before 1.2.
    pub fn transport_security(&self) -> DocumentBuf {
        doc! {
            "1.0": 0i64, "1.1": 0i64, "1.2": (int(&self.connections_tls_1_2)),
            "1.3": (int(&self.connections_tls_1_3)),
            "unknown": (int(&self.connections_tls_unknown)),
        }
    }

    pub fn operation_counters(&self) -> DocumentBuf {
        doc! {
            "insert": (int(&self.inserts)), "query": (int(&self.queries)),
            "update": (int(&self.updates)), "delete": (int(&self.deletes)),
            "getmore": (int(&self.get_mores)), "command": (int(&self.commands)),
        }
    }

    pub fn latencies(&self) -> Latencies {
        std::array::from_fn(|class| {
            self.latencies
                .get(class)
                .map(AtomicLatency::load)
                .unwrap_or_default()
        })
    }

    pub fn network(&self) -> DocumentBuf {
        doc! {
            "bytesIn": (int(&self.bytes_in)), "bytesOut": (int(&self.bytes_out)),
            "physicalBytesIn": (int(&self.bytes_in)), "physicalBytesOut": (int(&self.bytes_out)),
            "numRequests": (int(&self.requests)),
        }
    }
}

pub(crate) fn int(counter: &AtomicU64) -> i64 {
    counter.load(Relaxed) as i64
}
