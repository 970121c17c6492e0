//! `serverStatus`: counters and sizes of the running server.
//!
//! A section is left out if it is named with 0: `{serverStatus: 1, metrics: 0}`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::SystemTime;

use windrow_access::Action;
use windrow_collection::{ShareCounts, StoreStatistics};
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::index_builds::unfinished;
use crate::metrics::{Metrics, int};
use crate::replica_set::{MemberLag, member_lags};
use crate::state::{Route, State};
use crate::tls::Tls;
use crate::transactions::TransactionCounts;
use crate::version::{MONGODB_VERSION, windrow};
use crate::{clock, latency, machine, namespace};

/// The arguments are names of sections.
pub const SERVER_STATUS: Command = Command {
    name: "serverStatus",
    help: "returns counters and sizes of the running server",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::serverStatus]),
    arguments: AcceptedArguments::Any,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let state = context.state;
    let mut status = identity(state);
    let is_selected = |name: &str| request.get(name).is_none_or(|section| section.is_truthy());
    if is_selected("catalogStats") {
        status.push("catalogStats", catalog(state)?);
    }
    let mut add = |name: &str, section: &dyn Fn() -> DocumentBuf| {
        if is_selected(name) {
            status.push(name, section());
        }
    };
    add("asserts", &|| asserts(state));
    add("connections", &|| connections(state));
    add("encryptionAtRest", &|| encryption_at_rest(state));
    add("extra_info", &extra);
    add("globalLock", &|| active_clients(state));
    add("locks", &DocumentBuf::new);
    add("logicalSessionRecordCache", &|| {
        doc! { "activeSessionsCount": (state.sessions.count() as i32) }
    });
    add("network", &|| state.metrics.network());
    add("opLatencies", &|| latencies(request, state));
    add("opcounters", &|| state.metrics.operation_counters());
    // The server applies no operations of other members.
    add("opcountersRepl", &|| {
        Metrics::default().operation_counters()
    });
    if let Some(member) = &state.replica_set {
        add("repl", &|| {
            let mut repl = doc! { "isWritablePrimary": true };
            let engine = &state.services.engine;
            let shared = context.state.shared_state();
            member.describe(engine.newest_time(), shared, &mut repl);
            repl
        });
    }
    if let Some(tls) = &state.tls {
        add("security", &|| security(tls));
    }
    add("storageEngine", &|| {
        doc! {
            "name": "windrow", "supportsCommittedReads": true, "supportsSnapshotReadConcern": true,
            "readOnly": false, "persistent": true,
        }
    });
    add("transportSecurity", &|| state.metrics.transport_security());
    add("transactions", &|| transactions(state));
    add("mem", &memory);
    add("metrics", &|| metrics(state));
    add("indexBuilds", &|| index_builds(state));
    add("windrow", &|| engine(state));
    if let Some(router) = &state.router
        && is_selected("dataSets")
    {
        status.push("dataSets", data_sets(router.as_ref())?);
    }
    Ok(Reply::ok(status))
}

/// Returns the data sets, each with the sections about its data on this server.
fn data_sets(router: &dyn Route) -> Result<Vec<Value>, CommandError> {
    let describe = |(mut set, member): (DocumentBuf, Option<Arc<State>>)| {
        if let Some(member) = member {
            set.push("catalogStats", catalog(&member)?);
            set.push("transactions", transactions(&member));
            set.push("indexBuilds", index_builds(&member));
            set.push("windrow", engine(&member));
        }
        Ok(set.into())
    };
    router.describe().into_iter().map(describe).collect()
}

/// Returns the latencies of operations, with histograms if requested: `{opLatencies: {histograms:
/// true}}`.
fn latencies(request: &Request, state: &State) -> DocumentBuf {
    let options = request.get("opLatencies").and_then(ValueRef::as_document);
    let histograms = options.and_then(|options| options.get("histograms"));
    let histograms = histograms.is_some_and(ValueRef::is_truthy);
    latency::describe(&state.metrics.latencies(), histograms)
}

fn identity(state: &State) -> DocumentBuf {
    let uptime = state.started.elapsed();
    let process = if state.router.is_some() {
        "mongos"
    } else {
        "mongod"
    };
    doc! {
        "host": (state.host.clone()),
        "version": MONGODB_VERSION,
        "process": process,
        "pid": (i64::from(std::process::id())),
        "uptime": (uptime.as_secs_f64().floor()),
        "uptimeMillis": (uptime.as_millis() as i64),
        "uptimeEstimate": (uptime.as_secs() as i64),
        "localTime": (clock::date(SystemTime::now())),
    }
}

/// Returns the certificate of the server.
fn security(tls: &Tls) -> DocumentBuf {
    let certificate = tls.loaded().certificate;
    doc! {
        "SSLServerSubjectName": (certificate.subject),
        "SSLServerHasCertificateAuthority": (tls.has_authority()),
        "SSLServerCertificateExpirationDate": (clock::date(certificate.not_after)),
    }
}

/// Returns the encryption of the data folder in the form of MongoDB Enterprise. The master key is
/// always in a local file.
fn encryption_at_rest(state: &State) -> DocumentBuf {
    let engine = state.users_engine();
    match engine.ok().and_then(|engine| engine.key_generation()) {
        None => doc! { "encryptionEnabled": false },
        Some(generation) => doc! {
            "encryptionEnabled": true,
            "encryptionCipherMode": "AES256-GCM",
            "encryptionKeyId": { "local": { "dataKeyGeneration": (i32::from(generation)) } },
        },
    }
}

/// Counters of the kernel.
fn extra() -> DocumentBuf {
    let counted = machine::counted();
    doc! {
        "note": "fields vary by platform",
        "page_faults": (counted.faults as i64),
        "page_reclaims": (counted.reclaims as i64),
        "user_time_us": (counted.user_micros as i64),
        "system_time_us": (counted.system_micros as i64),
        "maximum_resident_set_kb": (counted.resident_max_kb as i64),
    }
}

/// Counts the collections and views. Internal collections are counted separately.
fn catalog(state: &State) -> Result<DocumentBuf, CommandError> {
    let engine = &state.services.engine;
    let (mut internal, mut all, mut capped, mut clustered, mut views) = (0, 0, 0, 0, 0);
    for database in engine.databases() {
        let is_internal = namespace::is_internal_database(&database);
        for collection in engine.collections(&database) {
            let is_system = collection.namespace().collection.starts_with("system.");
            if is_internal || is_system {
                internal += 1;
            } else {
                all += 1;
            }
            capped += i32::from(collection.cap().is_some());
            clustered += i32::from(collection.is_clustered());
        }
        views += engine.views(&database).or_command_error()?.len() as i32;
    }
    Ok(doc! {
        "collections": all, "capped": capped, "clustered": clustered, "timeseries": 0,
        "views": views, "internalCollections": internal, "internalViews": 0,
    })
}

/// Counters since the start, and the current builds.
fn index_builds(state: &State) -> DocumentBuf {
    let active = unfinished(&state.services.engine);
    doc! {
        "total": (int(&state.metrics.index_builds)),
        "failed": (int(&state.metrics.index_builds_failed)),
        "active": (active.len() as i32),
        "memoryLimitBytes": (state.services.engine.build_bytes() as i64),
        "inProgress": (active.iter().map(|one| one.summary().into()).collect::<Vec<Value>>()),
    }
}

/// Statistics of the engine: memory in bytes, and counters since the start.
fn engine(state: &State) -> DocumentBuf {
    let statistics = state.services.engine.statistics();
    let number = |number: u64| Value::Int64(number as i64);
    let mut engine = windrow();
    let rest = doc! {
        "memory": {
            "limit": (number(statistics.memory)),
            "cache": (number(statistics.cache_bytes)),
            "tails": (number(statistics.tail_bytes)),
        },
        "folds": (number(statistics.folds)),
        "merges": (number(statistics.merges)),
        "delayedWrites": (number(statistics.delayed_writes)),
        "openSnapshots": (number(statistics.open_snapshots)),
        "log": {
            "written": (number(statistics.written.0)), "synced": (number(statistics.synced.0)),
        },
    };
    rest.iter()
        .for_each(|(name, value)| engine.push(name, value));
    if let Some(store) = &statistics.store {
        engine.push("store", store_of(state, store));
        let ShareCounts {
            builders,
            given,
            adopted,
            taken_back,
            built,
        } = statistics.shares;
        let shares = doc! {
            "builders": (number(builders)), "given": (number(given)), "adopted": (number(adopted)),
            "takenBack": (number(taken_back)), "built": (number(built)),
        };
        engine.push("indexBuildShares", shares);
    }
    if let Some(folder) = &state.services.folder {
        engine.push("disk", disk(folder));
    }
    if let Some(traces) = &state.services.traces {
        engine.push("traces", traces.describe());
    }
    engine
}

/// Returns the use of the object store by this server, and how far the other servers were behind it
/// when they announced themselves last.
fn store_of(state: &State, store: &StoreStatistics) -> DocumentBuf {
    let number = |number: u64| Value::Int64(number as i64);
    let StoreStatistics {
        requests,
        cache,
        uploaded,
        delay,
    } = store;
    let mut described = doc! {
        "requests": {
            "writes": (number(requests.writes)), "reads": (number(requests.reads)),
            "lists": (number(requests.lists)), "deletes": (number(requests.deletes)),
            "failed": (number(requests.failed)),
        },
        "bytesWritten": (number(requests.bytes_written)),
        "bytesRead": (number(requests.bytes_read)),
        "cache": {
            "bytes": (number(cache.bytes)), "bytesMax": (number(cache.bytes_max)),
            "hits": (number(cache.hits)), "misses": (number(cache.misses)),
        },
    };
    if let Some(uploaded) = uploaded {
        described.push("uploaded", number(uploaded.0));
    }
    if let Some(delay) = delay {
        described.push("delayMillis", number(delay.as_millis() as u64));
    }
    let members = member_lags(&state.services.engine).into_iter();
    let members = members.map(|MemberLag { address, seconds }| {
        Value::from(doc! { "name": (address), "lagSeconds": (i64::from(seconds)) })
    });
    described.push("members", members.collect::<Vec<Value>>());
    described
}

/// Returns the size of the data folder and the space of its file system, in bytes.
fn disk(folder: &Path) -> DocumentBuf {
    let kinds = machine::DATA_KINDS.iter();
    let data: u64 = kinds
        .map(|kind| machine::folder_bytes(&folder.join(kind)))
        .sum();
    let (used, total) = machine::file_system_bytes(folder).unwrap_or((0, 0));
    doc! {
        "data": (data as i64), "free": (total.saturating_sub(used) as i64), "total": (total as i64),
    }
}

fn transactions(state: &State) -> DocumentBuf {
    let TransactionCounts {
        open,
        active,
        started,
        committed,
        aborted,
    } = state.session_transactions.counts();
    doc! {
        "currentActive": (active as i64), "currentInactive": ((open - active) as i64),
        "currentOpen": (open as i64), "totalStarted": (started as i64),
        "totalCommitted": (committed as i64), "totalAborted": (aborted as i64),
    }
}

fn asserts(state: &State) -> DocumentBuf {
    doc! {
        "regular": (int(&state.metrics.panics)), "warning": 0, "msg": 0,
        "user": (int(&state.metrics.user_errors)), "rollovers": 0,
    }
}

fn connections(state: &State) -> DocumentBuf {
    let current = state.connections.count();
    doc! {
        "current": (current as i32),
        "available": (state.config.connections_max.saturating_sub(current) as i32),
        "totalCreated": (int(&state.metrics.connections_created)),
        "rejected": (int(&state.metrics.connections_rejected)),
        "active": (state.metrics.connections_active.load(Relaxed)),
    }
}

fn active_clients(state: &State) -> DocumentBuf {
    let active = state.metrics.connections_active.load(Relaxed) as i32;
    let waiting = state.operation_slots.waiting();
    let (readers, writers) = (waiting.readers as i32, waiting.writers as i32);
    doc! {
        "totalTime": (state.started.elapsed().as_micros() as i64),
        "currentQueue": {
            "total": (readers + writers), "readers": readers, "writers": writers,
        },
        "activeClients": { "total": active, "readers": 0, "writers": 0 },
    }
}

/// Returns the memory of the process in megabytes.
fn memory() -> DocumentBuf {
    let (resident, addresses) = machine::process_kb();
    let megabytes = |kilobytes: u64| Value::Int32((kilobytes / 1024) as i32);
    doc! {
        "bits": 64, "resident": (megabytes(resident)), "virtual": (megabytes(addresses)),
        "supported": true,
    }
}

fn metrics(state: &State) -> DocumentBuf {
    let (counts, metrics) = (state.cursors.counts(), &state.metrics);
    doc! {
        "commands": (metrics.commands()),
        "cursor": {
            "timedOut": (counts.timed_out as i64),
            "totalOpened": (counts.opened as i64),
            "open": {
                "noTimeout": (counts.no_timeout as i64),
                "pinned": (counts.in_use as i64),
                "total": (counts.open as i64),
            },
        },
        "document": {
            "deleted": (int(&metrics.documents_deleted)),
            "inserted": (int(&metrics.documents_inserted)),
            "returned": (int(&metrics.documents_returned)),
            "updated": (int(&metrics.documents_matched)),
        },
        "operation": {
            "killedDueToClientDisconnect": (int(&metrics.killed_by_disconnect)),
            "killedDueToDefaultMaxTimeMSExpired": (int(&metrics.killed_by_default_limit)),
            "killedDueToMaxTimeMSExpired": (int(&metrics.killed_by_limit)),
            "scanAndOrder": (int(&metrics.sorts)),
        },
        "queryExecutor": {
            "scanned": (int(&metrics.keys_examined)),
            "scannedObjects": (int(&metrics.documents_examined)),
        },
        "ttl": {
            "deletedDocuments": (int(&metrics.ttl_deleted)),
            "passes": (int(&metrics.ttl_passes)),
        },
    }
}
