//! The state of the server in the text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/>).
//!
//! Names follow the conventions of Prometheus: a unit in the plural, and `_total` for counters.

mod data_sets;
mod exposition;
mod store;

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{SystemTime, UNIX_EPOCH};

use windrow_collection::{Collection, CollectionStatistics, Namespace, Statistics};

use crate::latency::{self, Latencies};
use crate::machine;
use crate::state::State;
use crate::version::MONGODB_VERSION;
use exposition::{Kind, Page};

/// The largest number of collections that have series of their own: those with the most operations,
/// and the largest ones. More series would overload the store that keeps them.
const COLLECTIONS_MAX: usize = 200;

/// Returns all metrics of a server.
pub fn metrics_page(state: &State) -> String {
    let mut page = Page::default();
    process(&mut page, state);
    connections(&mut page, state);
    operations(&mut page, state);
    commands(&mut page, state);
    interrupted_operations(&mut page, state);
    cursors_and_sessions(&mut page, state);
    durations(&mut page, state);
    documents(&mut page, state);
    let statistics = state.services.engine.statistics();
    engine(&mut page, &statistics);
    index_builds(&mut page, state);
    store::add(&mut page, state, &statistics);
    data_sets::add(&mut page, state);
    if let Some(traces) = &state.services.traces {
        let help = "Spans of commands, by what became of them.";
        page.family("windrow_trace_spans_total", Kind::Counter, help);
        for (outcome, count) in traces.counts() {
            page.sample(&[("outcome", outcome)], count);
        }
    }
    if let Some(folder) = &state.services.folder {
        disk(&mut page, folder);
    }
    collections(&mut page, state);
    page.into_text()
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Relaxed)
}

fn process(page: &mut Page, state: &State) {
    let version = env!("CARGO_PKG_VERSION");
    page.family(
        "windrow_build_info",
        Kind::Gauge,
        "The version of the server.",
    );
    page.sample(&[("version", version), ("mongodb", MONGODB_VERSION)], 1);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let started = now.saturating_sub(state.started.elapsed());
    let help = "When the process started, in seconds since 1970.";
    page.value(
        "process_start_time_seconds",
        Kind::Gauge,
        help,
        started.as_secs_f64(),
    );
    let counted = machine::counted();
    let seconds = (counted.user_micros + counted.system_micros) as f64 / 1e6;
    let help = "The processor time of the process.";
    page.value("process_cpu_seconds_total", Kind::Counter, help, seconds);
    let (resident, addresses) = machine::process_kb();
    let help = "The resident memory of the process.";
    page.value(
        "process_resident_memory_bytes",
        Kind::Gauge,
        help,
        resident * 1024,
    );
    let help = "The virtual memory of the process.";
    page.value(
        "process_virtual_memory_bytes",
        Kind::Gauge,
        help,
        addresses * 1024,
    );
    let help = "Panics that were caught. Each is a bug.";
    page.value(
        "windrow_panics_total",
        Kind::Counter,
        help,
        count(&state.metrics.panics),
    );
}

fn connections(page: &mut Page, state: &State) {
    let (metrics, open) = (&state.metrics, state.connections.count());
    let active = metrics.connections_active.load(Relaxed).max(0) as usize;
    page.family(
        "windrow_connections",
        Kind::Gauge,
        "Open connections, by what they do.",
    );
    page.sample(&[("state", "active")], active);
    page.sample(&[("state", "idle")], open.saturating_sub(active));
    let help = "The largest number of open connections.";
    page.value(
        "windrow_connections_max",
        Kind::Gauge,
        help,
        state.config.connections_max,
    );
    let help = "Operations that wait because too many run.";
    let waiting = state.operation_slots.waiting();
    page.value(
        "windrow_operations_waiting",
        Kind::Gauge,
        help,
        waiting.readers + waiting.writers,
    );
    let help = "Connections that were accepted.";
    let created = count(&metrics.connections_created);
    page.value(
        "windrow_connections_created_total",
        Kind::Counter,
        help,
        created,
    );
    let help = "Connections that were refused because too many were open.";
    let rejected = count(&metrics.connections_rejected);
    page.value(
        "windrow_connections_rejected_total",
        Kind::Counter,
        help,
        rejected,
    );
    let help = "Connections that were encrypted, by the version of TLS.";
    page.family("windrow_tls_connections_total", Kind::Counter, help);
    for (version, connections) in metrics.tls_connections() {
        page.sample(&[("version", version)], connections);
    }
    page.family(
        "windrow_network_bytes_total",
        Kind::Counter,
        "Bytes of messages.",
    );
    page.sample(&[("direction", "in")], count(&metrics.bytes_in));
    page.sample(&[("direction", "out")], count(&metrics.bytes_out));
    let help = "Messages that were received.";
    page.value(
        "windrow_network_requests_total",
        Kind::Counter,
        help,
        count(&metrics.requests),
    );
}

fn operations(page: &mut Page, state: &State) {
    let metrics = &state.metrics;
    page.family(
        "windrow_operations_total",
        Kind::Counter,
        "Operations, by kind.",
    );
    for (kind, counter) in [
        ("insert", &metrics.inserts),
        ("query", &metrics.queries),
        ("update", &metrics.updates),
        ("delete", &metrics.deletes),
        ("getmore", &metrics.get_mores),
        ("command", &metrics.commands),
    ] {
        page.sample(&[("kind", kind)], count(counter));
    }
}

fn commands(page: &mut Page, state: &State) {
    let metrics = &state.metrics;
    let commands = metrics.all_command_counts().into_iter();
    let commands: Vec<_> = commands.filter(|(_, it)| count(&it.total) > 0).collect();
    page.family(
        "windrow_commands_total",
        Kind::Counter,
        "Commands, by name.",
    );
    for (name, counts) in &commands {
        page.sample(&[("command", name)], count(&counts.total));
    }
    let help = "Commands that failed, by name.";
    page.family("windrow_commands_failed_total", Kind::Counter, help);
    for (name, counts) in &commands {
        page.sample(&[("command", name)], count(&counts.failed));
    }
    let help = "Requests for commands that do not exist.";
    let unknown = count(&metrics.unknown_commands);
    page.value(
        "windrow_commands_unknown_total",
        Kind::Counter,
        help,
        unknown,
    );
}

fn interrupted_operations(page: &mut Page, state: &State) {
    let metrics = &state.metrics;
    let help = "Operations that were ended early, by the reason.";
    page.family("windrow_operations_killed_total", Kind::Counter, help);
    for (reason, counter) in [
        ("time_limit", &metrics.killed_by_limit),
        ("default_time_limit", &metrics.killed_by_default_limit),
        ("disconnect", &metrics.killed_by_disconnect),
    ] {
        page.sample(&[("reason", reason)], count(counter));
    }
}

fn cursors_and_sessions(page: &mut Page, state: &State) {
    let cursors = state.cursors.counts();
    page.value(
        "windrow_cursors_open",
        Kind::Gauge,
        "Open cursors.",
        cursors.open,
    );
    let help = "Cursors that were closed because no client used them.";
    page.value(
        "windrow_cursors_timed_out_total",
        Kind::Counter,
        help,
        cursors.timed_out,
    );
    let transactions = state.session_transactions.counts();
    let help = "Open transactions.";
    page.value(
        "windrow_transactions_open",
        Kind::Gauge,
        help,
        transactions.open,
    );
    page.family(
        "windrow_transactions_total",
        Kind::Counter,
        "Transactions that ended.",
    );
    page.sample(&[("outcome", "committed")], transactions.committed);
    page.sample(&[("outcome", "aborted")], transactions.aborted);
    page.value(
        "windrow_sessions",
        Kind::Gauge,
        "Sessions of clients.",
        state.sessions.count(),
    );
}

fn durations(page: &mut Page, state: &State) {
    let help = "How long commands took, by class.";
    page.family("windrow_operation_duration_seconds", Kind::Histogram, help);
    class_histograms(page, &[], &state.metrics.latencies());
    let help = "How long commands took, by name.";
    page.family("windrow_command_duration_seconds", Kind::Histogram, help);
    for (name, counts) in state.metrics.all_command_counts() {
        let latency = counts.latency.load();
        if latency.count() > 0 {
            page.histogram(&[("command", name)], &latency);
        }
    }
    let mut all = state.usage.all_latencies();
    let operations =
        |latencies: &Latencies| -> u64 { latencies.iter().map(latency::Latency::count).sum() };
    all.sort_by_cached_key(|(_, latencies)| Reverse(operations(latencies)));
    all.truncate(COLLECTIONS_MAX);
    let help = "How long commands on a collection took, by class.";
    page.family("windrow_collection_duration_seconds", Kind::Histogram, help);
    for (namespace, latencies) in &all {
        let (database, collection) = namespace.split_once('.').unwrap_or((namespace, ""));
        class_histograms(
            page,
            &[("database", database), ("collection", collection)],
            latencies,
        );
    }
}

fn class_histograms(page: &mut Page, labels: &[(&str, &str)], latencies: &Latencies) {
    for (class, latency) in latency::NAMES.iter().zip(latencies) {
        let labels = [labels, &[("class", *class)]].concat();
        page.histogram(&labels, latency);
    }
}

fn documents(page: &mut Page, state: &State) {
    let metrics = &state.metrics;
    let help = "Documents of operations, by what was done.";
    page.family("windrow_documents_total", Kind::Counter, help);
    for (action, counter) in [
        ("inserted", &metrics.documents_inserted),
        ("updated", &metrics.documents_matched),
        ("deleted", &metrics.documents_deleted),
        ("returned", &metrics.documents_returned),
        ("examined", &metrics.documents_examined),
        ("expired", &metrics.ttl_deleted),
    ] {
        page.sample(&[("action", action)], count(counter));
    }
    let help = "Index entries that plans examined.";
    page.value(
        "windrow_keys_examined_total",
        Kind::Counter,
        help,
        count(&metrics.keys_examined),
    );
    let help = "Plans that sorted.";
    page.value(
        "windrow_sorts_total",
        Kind::Counter,
        help,
        count(&metrics.sorts),
    );
}

fn engine(page: &mut Page, statistics: &Statistics) {
    page.family(
        "windrow_memory_bytes",
        Kind::Gauge,
        "The memory of the engine, by purpose.",
    );
    page.sample(&[("purpose", "cache")], statistics.cache_bytes);
    page.sample(&[("purpose", "tails")], statistics.tail_bytes);
    let help = "The memory that the engine may use.";
    page.value(
        "windrow_memory_limit_bytes",
        Kind::Gauge,
        help,
        statistics.memory,
    );
    page.family(
        "windrow_background_work_total",
        Kind::Counter,
        "Folds and merges.",
    );
    page.sample(&[("work", "fold")], statistics.folds);
    page.sample(&[("work", "merge")], statistics.merges);
    let help = "The time of work in the background.";
    page.family("windrow_background_work_seconds_total", Kind::Counter, help);
    page.sample(&[("work", "fold")], statistics.fold_time.as_secs_f64());
    page.sample(&[("work", "merge")], statistics.merge_time.as_secs_f64());
    page.sample(&[("work", "index")], statistics.entry_time.as_secs_f64());
    let help = "Writes that waited for folds.";
    page.value(
        "windrow_writes_delayed_total",
        Kind::Counter,
        help,
        statistics.delayed_writes,
    );
    let help = "The time that writes waited for folds.";
    let seconds = statistics.delay_time.as_secs_f64();
    page.value(
        "windrow_writes_delayed_seconds_total",
        Kind::Counter,
        help,
        seconds,
    );
    page.value(
        "windrow_snapshots_open",
        Kind::Gauge,
        "Open snapshots.",
        statistics.open_snapshots,
    );
    let help = "The position of the newest record of the log.";
    page.value(
        "windrow_log_written_position",
        Kind::Gauge,
        help,
        statistics.written.0,
    );
    let help = "The position up to which the log is durable.";
    page.value(
        "windrow_log_synced_position",
        Kind::Gauge,
        help,
        statistics.synced.0,
    );
}

fn index_builds(page: &mut Page, state: &State) {
    let metrics = &state.metrics;
    let active = crate::index_builds::unfinished(&state.services.engine).len();
    page.value(
        "windrow_index_builds_active",
        Kind::Gauge,
        "Index builds that run.",
        active,
    );
    let help = "Index builds that were started.";
    page.value(
        "windrow_index_builds_total",
        Kind::Counter,
        help,
        count(&metrics.index_builds),
    );
    let help = "Index builds that failed.";
    let failed = count(&metrics.index_builds_failed);
    page.value(
        "windrow_index_builds_failed_total",
        Kind::Counter,
        help,
        failed,
    );
}

fn disk(page: &mut Page, folder: &Path) {
    let help = "The size of the data folder, by kind of file.";
    page.family("windrow_data_folder_bytes", Kind::Gauge, help);
    for &kind in machine::DATA_KINDS {
        page.sample(&[("kind", kind)], machine::folder_bytes(&folder.join(kind)));
    }
    if let Some((used, total)) = machine::file_system_bytes(folder) {
        let help = "The free space of the file system with the data folder.";
        let free = total.saturating_sub(used);
        page.value("windrow_disk_free_bytes", Kind::Gauge, help, free);
        let help = "The size of the file system with the data folder.";
        page.value("windrow_disk_total_bytes", Kind::Gauge, help, total);
    }
}

fn collections(page: &mut Page, state: &State) {
    let engine = &state.services.engine;
    let databases = engine.databases().into_iter();
    let all: Vec<Arc<Collection>> = databases.flat_map(|it| engine.collections(&it)).collect();
    page.value(
        "windrow_collections",
        Kind::Gauge,
        "The number of collections.",
        all.len(),
    );
    let mut sizes: Vec<_> = all
        .iter()
        .map(|it| (it.namespace(), it.statistics()))
        .collect();
    sizes.sort_by_cached_key(|(_, statistics)| Reverse(statistics.bytes));
    sizes.truncate(COLLECTIONS_MAX);
    for metric in COLLECTION_METRICS {
        page.family(metric.name, Kind::Gauge, metric.help);
        for (namespace, statistics) in &sizes {
            page.sample(&labels_of(namespace), (metric.value)(statistics));
        }
    }
    page.family(
        "windrow_index_bytes",
        Kind::Gauge,
        "The size of an index, with its memory.",
    );
    for (namespace, statistics) in &sizes {
        for index in &statistics.indexes {
            let name = index.search_name.as_ref().unwrap_or(&index.name);
            let [database, collection] = labels_of(namespace);
            page.sample(&[database, collection, ("index", name)], index.bytes());
        }
    }
}

/// A metric of each collection.
struct CollectionMetric {
    name: &'static str,
    help: &'static str,
    value: fn(&CollectionStatistics) -> u64,
}

const COLLECTION_METRICS: [CollectionMetric; 3] = [
    CollectionMetric {
        name: "windrow_collection_documents",
        help: "Documents of a collection.",
        value: |statistics| statistics.documents,
    },
    CollectionMetric {
        name: "windrow_collection_bytes",
        help: "The size of a collection's documents, uncompressed.",
        value: |statistics| statistics.bytes,
    },
    CollectionMetric {
        name: "windrow_collection_stored_bytes",
        help: "The size of a collection's documents in run files.",
        value: |statistics| statistics.bytes_stored,
    },
];

fn labels_of(namespace: &Namespace) -> [(&str, &str); 2] {
    [
        ("database", &namespace.database),
        ("collection", &namespace.collection),
    ]
}
