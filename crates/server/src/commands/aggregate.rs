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
mod session_lists;
mod source_stages;
mod stage_options;

use std::collections::BTreeSet;
use std::sync::Arc;

use windrow_collection::Namespace;
use windrow_document::{Array, Document, Type, ValueRef};
use windrow_query::{Aggregate, Hint, NoCollection, ParsePipeline, Pipeline, Source, Verbosity};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::change_stream;
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{Accepted, Command, InTransactions, SnapshotReads};
use crate::common_arguments::is_generic;
use crate::context::Context;
use crate::cursors::{BatchSource, CursorOptions};
use crate::errors::{OrCommandError, refuse};
use crate::explanation;
use crate::first_batch::{self, FIRST_BATCH_COUNT, FirstBatch};
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{self, Defaults, QueryBatches};
use crate::{namespace, stable_api, views, writes};
use document_list::DocumentList;
use output::OutputWriter;
use source_stages::NO_COLLECTION;

pub const AGGREGATE: Command = Command {
    name: "aggregate",
    help: "runs an aggregation pipeline",
    kind: Kind::Command,
    class: LatencyClass::Read,
    read_concern: true,
    snapshot_reads: SnapshotReads::InCursor,
    write_concern: true,
    is_limited_read: |body| !writes_documents(body),
    in_api_version_1: true,
    outside_api_version_1: stable_api::of_aggregate,
    // The arguments are checked in this file, because the error code differs from that of other
    // commands.
    arguments: Accepted::Any,
    in_transactions: InTransactions::Allowed,
    check: |request| check_request(request.body()),
    run,
    ..Command::EMPTY
};

const FIELDS: &[&str] = &[
    "pipeline",
    "cursor",
    "explain",
    "allowDiskUse",
    "bypassDocumentValidation",
    "collation",
    COLLECTION_UUID,
    "hint",
    "let",
];

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let body = request.body();
    let wanted = Arguments::within("aggregate", body).given_bool("explain")?;
    if wanted.unwrap_or(false) {
        parse_cursor(body)?;
        if body.contains("writeConcern") {
            let message = "aggregate cannot have both a writeConcern and explain";
            return Err(CommandError::new(ErrorCode::FailedToParse, message));
        }
        in_transactions::check(context, body)?;
        return explain(context, request.database(), body, Verbosity::QueryPlanner);
    }
    let first = parse_cursor(body)?;
    in_transactions::check(context, body)?;
    let namespace = named(request.database(), body)?;
    let text = namespace.to_string();
    context.operation.set_namespace(&text);
    let target = named_target(context, namespace, body)?;
    let namespace = &target.namespace;
    if change_stream::opens_stream(body) {
        return open_stream(context, namespace.clone(), body, first);
    }
    let (aggregate, source) = prepare(context, &target, body)?;
    let mut cursor = queries::open_pipeline(context, &aggregate, &source)?;
    let front = cursor.take_front();
    let owner = queries::owner(context, text, body);
    let batches: Box<dyn BatchSource> = match aggregate.pipeline.output() {
        Some(output) => {
            let environment = aggregate.pipeline.environment();
            let validation = writes::validation(&Arguments::within("aggregate", body))?;
            let writing =
                OutputWriter::new(context, namespace, output, environment, validation, cursor)?;
            Box::new(writing)
        }
        None => Box::new(QueryBatches::from_pipeline(cursor)),
    };
    let reply = first_batch::reply(context, owner, batches, first);
    record_other_collections(context, request.database(), &aggregate.pipeline);
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
        let (client, took) = (context.client.id, context.operation.worked());
        let usage = &context.state.usage;
        usage.record(
            client,
            &format!("{database}.{other}"),
            (Kind::Command, LatencyClass::Read),
            took,
        );
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
fn check_request(body: Document<'_>) -> Result<(), CommandError> {
    // A stage that is refused in transactions aborts the transaction and is refused later.
    match in_transactions::refused_stage(body) {
        Some(_) => Ok(()),
        None => parse(body, Defaults::new(None)).map(drop),
    }
}

/// The collection that the command reads, with the expected UUID.
///
/// # Errors
///
/// With an expected UUID:
/// - 4928900: the command opens a change stream.
/// - 4928901: the pipeline reads no collection.
fn named_target(
    context: &Context<'_>,
    namespace: Namespace,
    body: Document<'_>,
) -> Result<Target, CommandError> {
    let target = Target::from_arguments(namespace, &Arguments::within("aggregate", body))?;
    if target.uuid().is_none() {
        return Ok(target);
    }
    let unsupported = |code, what: &str| {
        let message = format!("{COLLECTION_UUID} is not supported for a {what}");
        refuse(code, message)
    };
    if change_stream::opens_stream(body) {
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
    body: Document<'_>,
    first: FirstBatch,
) -> Result<Reply, CommandError> {
    check_names(body)?;
    let mut owner = queries::owner(context, namespace.to_string(), body);
    owner.options = CursorOptions {
        tailable: true,
        await_data: true,
        reports_drops: true,
        ..CursorOptions::default()
    };
    let stream = change_stream::open(context, &watched(namespace), body)?;
    first_batch::reply(context, owner, Box::new(stream), first)
}

/// The namespace that a change stream watches: the whole database if there is no collection name.
fn watched(mut namespace: Namespace) -> Namespace {
    if namespace.collection == NO_COLLECTION {
        namespace.collection.clear();
    }
    namespace
}

/// Explains a pipeline.
pub fn explain(
    context: &Context<'_>,
    database: &str,
    command: Document<'_>,
    verbosity: Verbosity,
) -> Result<Reply, CommandError> {
    let namespace = named(database, command)?;
    let target = named_target(context, namespace, command)?;
    let namespace = &target.namespace;
    if change_stream::opens_stream(command) {
        check_names(command)?;
        let scope = watched(namespace.clone());
        let stages = change_stream::explain(context, &scope, command)?;
        return Ok(explanation::stages(context, stages, command));
    }
    context.operation.set_namespace(&namespace.to_string());
    if let Some(begun) = source_stages::begin(context, namespace, command)? {
        let defaults = Defaults::for_command(context, None);
        let aggregate = parse_stages(
            command,
            begun.rest.as_array(),
            defaults,
            Pipeline::parse_behind,
        )?;
        let documents = match verbosity.runs() {
            true => (begun.describe)()?,
            false => Vec::new(),
        };
        let given = DocumentList::source(namespace.to_string(), documents);
        let over = (&aggregate, &given);
        return explanation::behind(context, begun.first, over, command, verbosity);
    }
    let source = source(context, &target, command)?;
    let aggregate = parse(command, Defaults::for_command(context, source.collation()))?;
    explanation::aggregate(context, &aggregate, &source, command, verbosity)
}

/// The pipeline and its source: a collection, or the documents that its first stage creates.
fn prepare(
    context: &Context<'_>,
    target: &Target,
    body: Document<'_>,
) -> Result<(Aggregate, Arc<dyn Source>), CommandError> {
    let namespace = &target.namespace;
    if let Some(begun) = source_stages::begin(context, namespace, body)? {
        let defaults = Defaults::for_command(context, None);
        let mut aggregate = parse_stages(
            body,
            begun.rest.as_array(),
            defaults,
            Pipeline::parse_behind,
        )?;
        aggregate.allow_disk_use = queries::may_use_disk(
            context,
            body.get("allowDiskUse").and_then(ValueRef::as_bool),
        );
        let given = DocumentList::source(namespace.to_string(), (begun.describe)()?);
        return Ok((aggregate, given));
    }
    let brings_documents = source_stages::first_stage_name(body) == Some("$documents");
    if brings_documents != (namespace.collection == NO_COLLECTION) {
        if let Some(stages) = body.get("pipeline").and_then(ValueRef::as_array) {
            Pipeline::check_forms(stages).or_command_error()?;
            Pipeline::check_facets(stages).or_command_error()?;
        }
        let message = match brings_documents {
            true => "$documents is only valid with {aggregate: 1}",
            false => "{aggregate: 1} is not valid for this pipeline: it needs a collection",
        };
        return Err(CommandError::new(ErrorCode::InvalidNamespace, message));
    }
    let source = source(context, target, body)?;
    let mut aggregate = parse(body, Defaults::for_command(context, source.collation()))?;
    aggregate.allow_disk_use = queries::may_use_disk(
        context,
        body.get("allowDiskUse").and_then(ValueRef::as_bool),
    );
    Ok((aggregate, source))
}

/// The source of a pipeline. A view is read with its collation. `$collStats` reads the view itself.
fn source(
    context: &Context<'_>,
    target: &Target,
    body: Document<'_>,
) -> Result<Arc<dyn Source>, CommandError> {
    if source_stages::first_stage_name(body) == Some("$collStats") {
        let namespace = target.namespace.to_string();
        return Ok(Arc::new(NoCollection { namespace }));
    }
    let source = target.source(context)?;
    if source.view().is_some() {
        views::collation(
            body.get("collation").and_then(ValueRef::as_document),
            &*source,
        )?;
    }
    Ok(source)
}

/// Parses all arguments except the cursor.
pub fn parse(body: Document<'_>, default: Defaults) -> Result<Aggregate, CommandError> {
    let arguments = Arguments::within("aggregate", body);
    let stages = match arguments.get("pipeline") {
        Some(ValueRef::Array(stages)) => stages,
        Some(other) => {
            return Err(arguments.wrong_type("pipeline", other.type_of(), &[Type::Array]));
        }
        None => {
            let message = "'pipeline' option must be specified as an array";
            return Err(CommandError::new(ErrorCode::TypeMismatch, message));
        }
    };
    parse_stages(body, stages, default, Pipeline::parse)
}

fn parse_stages(
    body: Document<'_>,
    stages: Array<'_>,
    default: Defaults,
    parse: ParsePipeline,
) -> Result<Aggregate, CommandError> {
    check_names(body)?;
    let arguments = Arguments::within("aggregate", body);
    let allow_disk_use = arguments.bool("allowDiskUse")?.unwrap_or(true);
    let environment =
        default.environment(arguments.document("let")?, arguments.document("collation")?)?;
    let hint = body.get("hint").map(Hint::parse).transpose();
    Ok(Aggregate {
        pipeline: parse(stages, &environment).or_command_error()?,
        hint: hint.or_command_error()?.flatten(),
        allow_disk_use,
    })
}

/// The collection of a pipeline. For `{aggregate: 1}` it is the name that means no collection.
pub fn named(database: &str, body: Document<'_>) -> Result<Namespace, CommandError> {
    let refuse = |code: ErrorCode, message: &str| Err(CommandError::new(code, message));
    match body.first() {
        Some((_, ValueRef::String(name))) => {
            namespace::check_collection(database, name)?;
            Ok(namespace::new(database, name))
        }
        Some((_, number)) if number.as_f64() == Some(1.0) => {
            Ok(namespace::new(database, NO_COLLECTION))
        }
        Some((_, number)) if number.is_number() => refuse(
            ErrorCode::FailedToParse,
            "Invalid command format: the 'aggregate' field must specify a collection name or 1",
        ),
        _ => refuse(
            ErrorCode::TypeMismatch,
            "collection name has invalid type: it must be a string or 1",
        ),
    }
}

fn check_names(body: Document<'_>) -> Result<(), CommandError> {
    let mut names = body.iter().skip(1).map(|(name, _)| name);
    match names.find(|name| !FIELDS.contains(name) && !is_generic(name)) {
        Some(name) => Err(CommandError::new(
            ErrorCode::FailedToParse,
            format!("unrecognized field '{name}'"),
        )),
        None => Ok(()),
    }
}

/// Parses `cursor: {batchSize}`, which is required unless the command is explained.
fn parse_cursor(body: Document<'_>) -> Result<FirstBatch, CommandError> {
    let arguments = Arguments::within("aggregate", body);
    let Some(cursor) = arguments.document("cursor")? else {
        // `explain: false` does not need a cursor either.
        if body.get("explain").is_some() {
            return Ok(FirstBatch::default());
        }
        let message =
            "The 'cursor' option is required, except for aggregate with the explain argument";
        return match body.get("pipeline") {
            Some(ValueRef::Array(_)) => Err(CommandError::new(ErrorCode::FailedToParse, message)),
            _ => parse(body, Defaults::new(None)).map(|_| FirstBatch::default()),
        };
    };
    if let Some((name, _)) = cursor.iter().find(|(name, _)| *name != "batchSize") {
        let message = format!("cursor object can't contain fields other than batchSize: {name}");
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    let size = Arguments::within("aggregate.cursor", cursor).count("batchSize")?;
    let limit = size.map_or(FIRST_BATCH_COUNT, |size| {
        usize::try_from(size).unwrap_or(usize::MAX)
    });
    Ok(FirstBatch {
        limit,
        single: false,
    })
}
