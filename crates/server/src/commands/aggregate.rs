//! `aggregate`: runs the stages of a pipeline.

mod cluster_catalog;
mod current_operations;
mod document_list;
mod in_transactions;
mod merge;
mod out;
mod output;
mod output_target;
mod query_settings;
mod request;
mod session_lists;
mod source_stages;
mod stage_options;

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_collection::Namespace;
use windrow_document::{Array, Document, ValueRef};
use windrow_query::{Aggregate, NoCollection, Pipeline, Source, Verbosity};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::pipeline::{self as access_pipeline, PipelineScope};
use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::change_stream;
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{AcceptedArguments, Command, InTransactions, Routing, SnapshotReads};
use crate::context::Context;
use crate::cursors::{BatchSource, CursorOptions};
use crate::errors::{OrCommandError, refuse};
use crate::explanation;
use crate::first_batch::{self, FirstBatch};
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{self, Defaults, QueryBatches};
use crate::queryable_encryption;
use crate::usage::CommandUse;
use crate::{namespace, stable_api, views};
use document_list::DocumentList;
use output::OutputWriter;
pub use request::AggregateRequest;
use source_stages::NO_COLLECTION;

pub const AGGREGATE: Command = Command {
    name: "aggregate",
    help: "runs an aggregation pipeline",
    routing: Routing::Databases,
    needs: Needs::Computed(requirement),
    kind: Kind::Command,
    class: LatencyClass::Read,
    read_concern: true,
    snapshot_reads: SnapshotReads::InCursor,
    write_concern: true,
    is_limited_read: |body| !writes_documents(body),
    in_api_version_1: true,
    outside_api_version_1: stable_api::unsupported_in_aggregate,
    // The arguments are checked in this file, because the error code differs from that of other
    // commands.
    arguments: AcceptedArguments::Any,
    in_transactions: InTransactions::Allowed,
    check: |request| check_request(request.body()),
    encrypted: Some(queryable_encryption::run_query),
    run,
    ..Command::EMPTY
};

/// Returns the requirement of the pipeline.
pub fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let scope = PipelineScope {
        database: request.database,
        collection: request.first().and_then(ValueRef::as_str),
        bypasses_validation: request.flag("bypassDocumentValidation"),
    };
    let stages = request.body.get("pipeline").and_then(ValueRef::as_array);
    access_pipeline::requirement(scope, stages.unwrap_or(Array::EMPTY))
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let database = request.database();
    let request = AggregateRequest::parse(request.body())?;
    let first = request.first_batch()?;
    if request.explain {
        if request.command.contains("writeConcern") {
            let message = "aggregate cannot have both a writeConcern and explain";
            return Err(CommandError::new(ErrorCode::FailedToParse, message));
        }
        in_transactions::check(context, &request)?;
        return explain(context, database, &request, Verbosity::QueryPlanner);
    }
    in_transactions::check(context, &request)?;
    let namespace = parse_namespace(database, request.command)?;
    context.operation.set_namespace(&namespace.to_string());
    let target = check_target(context, namespace, &request)?;
    if request.opens_stream() {
        return open_stream(context, target.namespace, &request, first);
    }
    let (aggregate, source) = prepare(context, &target, &request)?;
    let mut cursor = queries::open_pipeline(context, &aggregate, &source)?;
    let front = cursor.take_planned_find();
    let batches: Box<dyn BatchSource> = match aggregate.pipeline.output() {
        Some(output) => Box::new(OutputWriter::new(
            context,
            &target.namespace,
            output,
            aggregate.pipeline.environment(),
            request.validation()?,
            cursor,
        )?),
        None => Box::new(QueryBatches::from_pipeline(cursor)),
    };
    let owner = queries::owner(context, target.namespace.to_string(), request.command);
    let reply = first_batch::reply(context, owner, batches, first);
    record_other_collections(context, database, &aggregate.pipeline);
    if let Some(front) = front {
        queries::record_first_query(&front, context.operation);
    }
    reply
}

/// Records the use of the other collections that the pipeline reads, each once, with the duration
/// of the command.
fn record_other_collections(context: &Context<'_>, database: &str, pipeline: &Pipeline) {
    let others: BTreeSet<String> = pipeline.other_collections().into_iter().collect();
    for other in others {
        let used = CommandUse {
            connection: context.client.id,
            namespace: &format!("{database}.{other}"),
            kind: Kind::Command,
            class: LatencyClass::Read,
            took: context.operation.work_duration(),
        };
        let state = context.state;
        state.usage.record(&state.services.engine, used);
    }
}

/// Returns `true` if the pipeline ends with a stage that writes its documents.
pub(super) fn writes_documents(body: Document<'_>) -> bool {
    let stages = body.get("pipeline").and_then(ValueRef::as_array);
    let last = stages.and_then(|stages| stages.iter().last());
    let last = last.and_then(ValueRef::as_document);
    let name = last.and_then(Document::first).map(|(name, _)| name);
    matches!(name, Some("$out" | "$merge"))
}

/// Checks those parts of the command that need no collection.
fn check_request(command: Document<'_>) -> Result<(), CommandError> {
    let request = AggregateRequest::parse(command)?;
    // A stage that is refused in transactions aborts the transaction and is refused later.
    match in_transactions::refused_stage(request.stages) {
        Some(_) => Ok(()),
        None => request.aggregate(Defaults::new(None)).map(drop),
    }
}

/// Returns the collection of a pipeline. For `{aggregate: 1}` it is the name that means no
/// collection.
fn parse_namespace(database: &str, command: Document<'_>) -> Result<Namespace, CommandError> {
    match command.first().map(|(_, value)| value) {
        Some(ValueRef::String(name)) => {
            namespace::check_collection(database, name)?;
            Ok(namespace::new(database, name))
        }
        Some(number) if number.as_f64() == Some(1.0) => Ok(namespace::new(database, NO_COLLECTION)),
        Some(number) if number.is_number() => refuse(
            ErrorCode::FailedToParse,
            "Invalid command format: the 'aggregate' field must specify a collection name or 1",
        ),
        other => Err(namespace::wrong_type(other, ErrorCode::TypeMismatch)),
    }
}

/// Returns the collection that the command reads, with the expected UUID.
///
/// # Errors
///
/// With an expected UUID:
/// - 4928900: the command opens a change stream.
/// - 4928901: the pipeline reads no collection.
fn check_target(
    context: &Context<'_>,
    namespace: Namespace,
    request: &AggregateRequest<'_>,
) -> Result<Target, CommandError> {
    let arguments = Arguments::within("aggregate", request.command);
    let target = Target::from_arguments(namespace, &arguments)?;
    if target.uuid().is_none() {
        return Ok(target);
    }
    let unsupported = |code, what: &str| {
        let message = format!("{COLLECTION_UUID} is not supported for a {what}");
        refuse(code, message)
    };
    if request.opens_stream() {
        return unsupported(4_928_900, "change stream");
    }
    if target.namespace.collection == NO_COLLECTION {
        return unsupported(4_928_901, "collectionless aggregation");
    }
    target.collection(context).map(|_| target)
}

/// Opens a change stream.
fn open_stream(
    context: &Context<'_>,
    namespace: Namespace,
    request: &AggregateRequest<'_>,
    first: FirstBatch,
) -> Result<Reply, CommandError> {
    let mut owner = queries::owner(context, namespace.to_string(), request.command);
    owner.options = CursorOptions {
        tailable: true,
        await_data: true,
        reports_drops: true,
        ..CursorOptions::default()
    };
    let scope = watched_namespace(namespace);
    let stream = change_stream::open(context, &scope, &request.stream())?;
    first_batch::reply(context, owner, Box::new(stream), first)
}

/// Returns the namespace that a change stream watches: the whole database if there is no collection
/// name.
fn watched_namespace(mut namespace: Namespace) -> Namespace {
    if namespace.collection == NO_COLLECTION {
        namespace.collection.clear();
    }
    namespace
}

/// Explains a pipeline.
pub fn explain(
    context: &Context<'_>,
    database: &str,
    request: &AggregateRequest<'_>,
    verbosity: Verbosity,
) -> Result<Reply, CommandError> {
    let command = request.command;
    let namespace = parse_namespace(database, command)?;
    let target = check_target(context, namespace, request)?;
    let namespace = &target.namespace;
    if request.opens_stream() {
        let scope = watched_namespace(namespace.clone());
        change_stream::check(context, &scope, &request.stream())?;
        return Ok(explanation::stages(context, request.stages, command));
    }
    context.operation.set_namespace(&namespace.to_string());
    if let Some(stage) = source_stages::parse(context, namespace, request)? {
        let defaults = Defaults::for_command(context, None);
        let aggregate = request.aggregate_behind(stage.rest.as_array(), defaults)?;
        let documents = if verbosity.runs() {
            (stage.describe)()?
        } else {
            Vec::new()
        };
        let source = DocumentList::source(namespace.to_string(), documents);
        let first = stage.first;
        return explanation::behind(context, first, &aggregate, &source, command, verbosity);
    }
    let source = open_source(context, &target, request)?;
    let aggregate = request.aggregate(Defaults::for_command(context, source.collation()))?;
    explanation::aggregate(context, &aggregate, &source, command, verbosity)
}

/// Returns the pipeline and its source: a collection, or the documents that its first stage
/// creates.
fn prepare(
    context: &Context<'_>,
    target: &Target,
    request: &AggregateRequest<'_>,
) -> Result<(Aggregate, Arc<dyn Source>), CommandError> {
    let namespace = &target.namespace;
    let allow_disk_use = queries::may_use_disk(context, request.allow_disk_use);
    if let Some(stage) = source_stages::parse(context, namespace, request)? {
        let defaults = Defaults::for_command(context, None);
        let aggregate = Aggregate {
            allow_disk_use,
            ..request.aggregate_behind(stage.rest.as_array(), defaults)?
        };
        let source = DocumentList::source(namespace.to_string(), (stage.describe)()?);
        return Ok((aggregate, source));
    }
    check_needs_collection(namespace, request)?;
    let source = open_source(context, target, request)?;
    let aggregate = Aggregate {
        allow_disk_use,
        ..request.aggregate(Defaults::for_command(context, source.collation()))?
    };
    Ok((aggregate, source))
}

/// Fails if a pipeline with `$documents` names a collection, or if another one names none.
fn check_needs_collection(
    namespace: &Namespace,
    request: &AggregateRequest<'_>,
) -> Result<(), CommandError> {
    let has_documents = request.first_stage_name() == Some("$documents");
    if has_documents == (namespace.collection == NO_COLLECTION) {
        return Ok(());
    }
    Pipeline::check_forms(request.stages).or_command_error()?;
    Pipeline::check_facets(request.stages).or_command_error()?;
    let message = if has_documents {
        "$documents is only valid with {aggregate: 1}"
    } else {
        "{aggregate: 1} is not valid for this pipeline: it needs a collection"
    };
    Err(CommandError::new(ErrorCode::InvalidNamespace, message))
}

/// Returns the source of a pipeline. A view is read with its collation. `$collStats` reads the view
/// itself.
fn open_source(
    context: &Context<'_>,
    target: &Target,
    request: &AggregateRequest<'_>,
) -> Result<Arc<dyn Source>, CommandError> {
    if request.first_stage_name() == Some("$collStats") {
        let namespace = target.namespace.to_string();
        return Ok(Arc::new(NoCollection { namespace }));
    }
    let source = target.source(context)?;
    if source.view().is_some() {
        views::collation(request.collation, &*source)?;
    }
    Ok(source)
}
