//! Stages that stand at the front of a pipeline and make documents of their own out of what the
//! server knows: `$collStats`, `$currentOp`. The stages behind them read these documents as they
//! would a collection's.

use std::time::SystemTime;

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, Document, DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::Arguments;
use crate::clock;
use crate::commands::coll_stats;
use crate::context::Context;

/// The documents of a first stage, and the stages behind it.
pub struct Begun {
    pub documents: Vec<DocumentBuf>,
    pub rest: ArrayBuf,
}

/// Runs the first stage of a command's pipeline where it makes its own documents.
pub fn begin(
    context: &Context<'_>,
    namespace: &Namespace,
    body: Document<'_>,
) -> Result<Option<Begun>, CommandError> {
    let stages = body.get("pipeline").and_then(ValueRef::as_array);
    let first = stages.and_then(|stages| stages.get(0)?.as_document()?.first());
    let documents = match first {
        Some(("$collStats", wanted)) => vec![coll_stats_of(context, namespace, wanted)?],
        Some(("$currentOp", wanted)) => current_op(context, namespace, wanted)?,
        _ => return Ok(None),
    };
    let rest = stages.into_iter().flat_map(|stages| stages.iter()).skip(1);
    Ok(Some(Begun {
        documents,
        rest: rest.collect(),
    }))
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
            "latencyStats" if value.as_document().is_none() => {
                return refuse(40167, "latencyStats must be an object");
            }
            "latencyStats" | "queryExecStats" => {
                let message = format!("$collStats.{name} is not supported yet");
                return refuse(ErrorCode::NotImplemented.number(), message);
            }
            _ => return refuse(40168, format!("unrecognized option to $collStats: {name}")),
        };
        add(context, namespace, value, &mut stats)?;
    }
    Ok(stats)
}

fn count(
    context: &Context<'_>,
    namespace: &Namespace,
    value: ValueRef<'_>,
    stats: &mut DocumentBuf,
) -> Result<(), CommandError> {
    if value.as_document().is_none() {
        return refuse(40480, "count must be an object");
    }
    let Some(collection) = context.state.services.engine.collection(namespace) else {
        let message = format!("Unable to retrieve count: {namespace} does not exist");
        return refuse(40481, message);
    };
    stats.push("count", coll_stats::size(collection.count()));
    Ok(())
}

fn storage(
    context: &Context<'_>,
    namespace: &Namespace,
    value: ValueRef<'_>,
    stats: &mut DocumentBuf,
) -> Result<(), CommandError> {
    let Some(options) = value.as_document() else {
        return refuse(40279, "storageStats must be an object");
    };
    let scale = coll_stats::scale(&Arguments::within("$collStats.storageStats", options))?;
    let Some(collection) = context.state.services.engine.collection(namespace) else {
        let message = format!("Unable to retrieve storageStats: {namespace} does not exist");
        return refuse(ErrorCode::NamespaceNotFound.number(), message);
    };
    let described = coll_stats::describe(&collection.statistics(), scale);
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

/// How the pipelines of `{aggregate: 1}` call their collection.
pub const NO_COLLECTION: &str = "$cmd.aggregate";
