//! Stages that stand at the front of a pipeline and make documents of their own out of what the
//! server knows: `$collStats`, `$currentOp`, `$indexStats`, `$listLocalSessions`, `$listSessions`,
//! `$planCacheStats`. The stages behind them read these documents as they
//! would a collection's.

use std::time::{Duration, SystemTime};

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, Document, DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use super::plan_cache_stats;
use crate::arguments::Arguments;
use crate::clock;
use crate::commands::coll_stats;
use crate::context::Context;
use crate::latency;
use crate::sessions::SessionId;
use crate::views;

/// The documents of a first stage, and the stages behind it.
pub struct Begun {
    pub documents: Vec<DocumentBuf>,
    pub rest: ArrayBuf,
}

/// The name and the operand of the first stage.
pub fn first_stage(body: Document<'_>) -> Option<(&str, ValueRef<'_>)> {
    let stages = body.get("pipeline").and_then(ValueRef::as_array)?;
    stages.get(0)?.as_document()?.first()
}

/// Runs the first stage of a command's pipeline where it makes its own documents.
pub fn begin(
    context: &Context<'_>,
    namespace: &Namespace,
    body: Document<'_>,
) -> Result<Option<Begun>, CommandError> {
    let stages = body.get("pipeline").and_then(ValueRef::as_array);
    let documents = match first_stage(body) {
        Some(("$collStats", wanted)) => vec![coll_stats_of(context, namespace, wanted)?],
        Some(("$currentOp", wanted)) => current_op(context, namespace, wanted)?,
        Some(("$indexStats", wanted)) => {
            check_front(context, namespace, "$indexStats")?;
            index_stats(context, namespace, wanted)?
        }
        Some(("$listLocalSessions", wanted)) => local_sessions(context, namespace, wanted)?,
        Some(("$listSessions", wanted)) => stored_sessions(context, namespace, wanted)?,
        Some(("$planCacheStats", wanted)) => {
            if namespace.collection == NO_COLLECTION {
                let message = "$planCacheStats must be run against a collection";
                return refuse(ErrorCode::InvalidNamespace.number(), message);
            }
            check_front(context, namespace, "$planCacheStats")?;
            plan_cache_stats::describe(context, namespace, wanted)?
        }
        _ => return Ok(None),
    };
    let rest = stages.into_iter().flat_map(|stages| stages.iter()).skip(1);
    Ok(Some(Begun {
        documents,
        rest: rest.collect(),
    }))
}

/// In a view its own stages stand in front.
fn check_front(
    context: &Context<'_>,
    namespace: &Namespace,
    stage: &str,
) -> Result<(), CommandError> {
    match views::refuse(context, namespace) {
        Ok(()) => Ok(()),
        Err(_) => refuse(
            40_602,
            format!("{stage} is only valid as the first stage in a pipeline"),
        ),
    }
}

fn refuse<T>(code: i32, message: impl Into<String>) -> Result<T, CommandError> {
    Err(CommandError::new(ErrorCode(code), message))
}

fn coll_stats_of(
    context: &Context<'_>,
    namespace: &Namespace,
    wanted: ValueRef<'_>,
) -> Result<DocumentBuf, CommandError> {
    let Some(wanted) = wanted.as_document() else {
        return refuse(40166, "$collStats must take a nested object");
    };
    let mut stats = DocumentBuf::new();
    stats.push("ns", namespace.to_string());
    stats.push("host", &context.state.host);
    stats.push("localTime", clock::date(SystemTime::now()));
    for (name, value) in wanted {
        let add = match name {
            "count" => count,
            "storageStats" => storage,
            "latencyStats" => latencies,
            "queryExecStats" => {
                let message = format!("$collStats.{name} is not supported yet");
                return refuse(ErrorCode::NotImplemented.number(), message);
            }
            _ => return refuse(40168, format!("unrecognized option to $collStats: {name}")),
        };
        add(context, namespace, value, &mut stats)?;
    }
    Ok(stats)
}

/// What an option of `$collStats` is given.
fn object<'v>(value: ValueRef<'v>, code: i32, option: &str) -> Result<Document<'v>, CommandError> {
    match value.as_document() {
        Some(object) => Ok(object),
        None => refuse(code, format!("{option} must be an object")),
    }
}

fn count(
    context: &Context<'_>,
    namespace: &Namespace,
    value: ValueRef<'_>,
    stats: &mut DocumentBuf,
) -> Result<(), CommandError> {
    object(value, 40480, "count")?;
    let Some(collection) = context.state.services.engine.collection(namespace) else {
        let message = format!("Unable to retrieve count: {namespace} does not exist");
        return refuse(40481, message);
    };
    stats.push("count", coll_stats::size(collection.count()));
    Ok(())
}

fn latencies(
    context: &Context<'_>,
    namespace: &Namespace,
    value: ValueRef<'_>,
    stats: &mut DocumentBuf,
) -> Result<(), CommandError> {
    let options = object(value, 40167, "latencyStats")?;
    let histograms = options.get("histograms").is_some_and(ValueRef::is_truthy);
    let latencies = context.state.usage.latencies(&namespace.to_string());
    stats.push("latencyStats", latency::describe(&latencies, histograms));
    Ok(())
}

fn storage(
    context: &Context<'_>,
    namespace: &Namespace,
    value: ValueRef<'_>,
    stats: &mut DocumentBuf,
) -> Result<(), CommandError> {
    let options = object(value, 40279, "storageStats")?;
    let scale = coll_stats::scale(&Arguments::within("$collStats.storageStats", options))?;
    let Some(collection) = context.state.services.engine.collection(namespace) else {
        let message = format!("Unable to retrieve storageStats: {namespace} does not exist");
        return refuse(ErrorCode::NamespaceNotFound.number(), message);
    };
    let described = coll_stats::describe(&collection, scale);
    stats.push("storageStats", described);
    Ok(())
}

/// What runs, each with all that is known of it; the options choose among users and servers, of
/// which there is one.
fn current_op(
    context: &Context<'_>,
    namespace: &Namespace,
    wanted: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>, CommandError> {
    let is_on_admin = namespace.database == "admin" && namespace.collection == NO_COLLECTION;
    if !is_on_admin {
        let message = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return refuse(ErrorCode::InvalidNamespace.number(), message);
    }
    if wanted.as_document().is_none() {
        return refuse(9, "$currentOp options must be specified in an object");
    }
    let state = context.state;
    Ok(state.operations.describe(&state.host, |_, _| true))
}

/// How often each index has been used. Error 28803 for options.
fn index_stats(
    context: &Context<'_>,
    namespace: &Namespace,
    wanted: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>, CommandError> {
    if !wanted.as_document().is_some_and(Document::is_empty) {
        return refuse(
            28_803,
            "The $indexStats stage specification must be an empty object",
        );
    }
    let collection = context.state.services.engine.collection(namespace);
    let indexes = collection.map(|collection| collection.indexes());
    let describe = |index: &std::sync::Arc<windrow_collection::Index>| {
        let since = SystemTime::now().checked_sub(index.progress().started.elapsed());
        let since = clock::date(since.unwrap_or(SystemTime::UNIX_EPOCH));
        let definition = &index.definition;
        let mut stats = DocumentBuf::new();
        stats.push("name", &definition.name);
        stats.push("key", definition.key_pattern());
        stats.push("host", &context.state.host);
        stats.push(
            "accesses",
            doc! { "ops": (index.uses() as i64), "since": since },
        );
        stats.push("spec", definition.specification.clone());
        if !index.is_ready() {
            stats.push("building", true);
        }
        stats
    };
    let indexes = indexes.iter().flatten();
    let indexes = indexes.filter(|index| !index.definition.clustered);
    Ok(indexes.map(describe).collect())
}

/// Options choose among users, of which there is one. Error 9 for what is no document.
fn sessions(context: &Context<'_>, wanted: ValueRef<'_>) -> Result<Vec<DocumentBuf>, CommandError> {
    let Some(options) = wanted.as_document() else {
        return refuse(9, "options of sessions must be specified in an object");
    };
    if let Some((name, _)) = options
        .iter()
        .find(|(name, _)| !["allUsers", "users"].contains(name))
    {
        let message = format!("BSON field 'ListSessionsSpec.{name}' is an unknown field.");
        return refuse(ErrorCode::IDLUnknownField.number(), message);
    }
    let now = SystemTime::now();
    let describe = |(id, age): (SessionId, Duration)| {
        let last = now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        doc! { "_id": (id.to_document()), "lastUse": (clock::date(last)) }
    };
    Ok(context
        .state
        .sessions
        .ages()
        .into_iter()
        .map(describe)
        .collect())
}

fn local_sessions(
    context: &Context<'_>,
    namespace: &Namespace,
    wanted: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>, CommandError> {
    if namespace.collection != NO_COLLECTION {
        let message = "$listLocalSessions must be run against the database with {aggregate: 1}";
        return refuse(ErrorCode::InvalidNamespace.number(), message);
    }
    sessions(context, wanted)
}

fn stored_sessions(
    context: &Context<'_>,
    namespace: &Namespace,
    wanted: ValueRef<'_>,
) -> Result<Vec<DocumentBuf>, CommandError> {
    if namespace.database != "config" || namespace.collection != "system.sessions" {
        let message = "$listSessions may only be run against config.system.sessions";
        return refuse(ErrorCode::InvalidNamespace.number(), message);
    }
    sessions(context, wanted)
}

/// How the pipelines of `{aggregate: 1}` call their collection.
pub const NO_COLLECTION: &str = "$cmd.aggregate";
