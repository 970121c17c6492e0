//! Explanations of queries and pipelines, with the explained command and the server.

use std::sync::Arc;

use windrow_document::{Array, Document, DocumentBuf, doc};
use windrow_query::{Aggregate, ExplainedCommand, Find, Source, Verbosity};
use windrow_wire::limits::DOCUMENT_BYTES_MAX;
use windrow_wire::{CommandError, Reply};

use crate::collection_uuid::Target;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::queries;
use crate::query_shape;
use crate::version::MONGODB_VERSION;

/// Returns the collection or view of the explained command.
pub fn open(context: &Context<'_>, target: &Target) -> Result<Arc<dyn Source>, CommandError> {
    context
        .operation
        .set_namespace(&target.namespace.to_string());
    target.source(context)
}

/// Explains a pipeline.
pub fn aggregate(
    context: &Context<'_>,
    aggregate: &Aggregate,
    source: &Arc<dyn Source>,
    command: Document<'_>,
    verbosity: Verbosity,
) -> Result<Reply, CommandError> {
    let collections = queries::collections(context);
    let explained = aggregate
        .explain(source, &collections, verbosity, context.operation)
        .or_command_error()?;
    Ok(Reply::ok(finish(context, explained, command)))
}

/// Explains a pipeline without a plan: by its stages as written.
pub fn stages(context: &Context<'_>, stages: Array<'_>, command: Document<'_>) -> Reply {
    let explained = doc! { "explainVersion": "1", "stages": (stages.to_buf()) };
    Reply::ok(finish(context, explained, command))
}

/// Explains a pipeline after its first stage, which creates its own documents. `source` contains
/// them.
pub fn behind(
    context: &Context<'_>,
    first: DocumentBuf,
    aggregate: &Aggregate,
    source: &Arc<dyn Source>,
    command: Document<'_>,
    verbosity: Verbosity,
) -> Result<Reply, CommandError> {
    let collections = queries::collections(context);
    let explained = aggregate
        .explain_after_first(first, source, &collections, verbosity, context.operation)
        .or_command_error()?;
    Ok(Reply::ok(finish(context, explained, command)))
}

/// Explains a query, with a verbosity and the stages above it.
pub fn find(
    context: &Context<'_>,
    find: &Find,
    source: &Arc<dyn Source>,
    command: Document<'_>,
    verbosity: Verbosity,
    wrapping: &ExplainedCommand,
) -> Result<Reply, CommandError> {
    let explained = find
        .explain(source, verbosity, wrapping, context.operation)
        .or_command_error()?;
    Ok(Reply::ok(finish(context, explained, command)))
}

/// Adds the command and the server to the explanation.
fn finish(context: &Context<'_>, mut explained: DocumentBuf, command: Document<'_>) -> DocumentBuf {
    let namespace = context.operation.namespace();
    if let Some(hash) = query_shape::hash(command, &namespace) {
        explained.push("queryShapeHash", hash);
    }
    let bytes = explained.as_document().as_bytes().len() + command.as_bytes().len();
    if bytes < DOCUMENT_BYTES_MAX {
        explained.push("command", command)
    } else {
        explained.push(
            "warning",
            "'command' has been omitted due to BSON size limit",
        )
    }
    let (host, port) = context.state.host.rsplit_once(':').unwrap_or_default();
    let server = doc! {
        "host": host, "port": (port.parse::<i32>().unwrap_or_default()),
        "version": (MONGODB_VERSION), "gitVersion": "",
    };
    explained.push("serverInfo", server);
    explained
}
