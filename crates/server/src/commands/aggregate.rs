//! `aggregate`: documents through the stages of a pipeline.

use windrow_collection::Namespace;
use windrow_document::{Document, ValueRef};
use windrow_query::{Aggregate, Hint, Pipeline, Verbosity};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::{Accepted, Command, explain};
use crate::arguments::Arguments;
use crate::collation;
use crate::context::Context;
use crate::cursors::{self, FIRST_BATCH_COUNT, FirstBatch};
use crate::errors::OrCommandError;
use crate::generic::is_generic;
use crate::metrics::Kind;
use crate::queries::{self, QueryBatches};

pub const AGGREGATE: Command = Command {
    name: "aggregate",
    help: "runs documents through the stages of a pipeline",
    kind: Kind::Command,
    read_concern: true,
    write_concern: true,
    in_api_version_1: true,
    // They are checked here: the code is another than that of other commands.
    arguments: Accepted::Any,
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
    "hint",
    "let",
];

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let body = request.body();
    if body.get("explain").is_some_and(ValueRef::is_truthy) {
        let verbosity = Verbosity::QueryPlanner;
        return explain::explain(context, request.database(), body, verbosity);
    }
    let first = parse_cursor(body)?;
    let namespace = named(request.database(), body)?;
    let aggregate = parse(body)?;
    let text = namespace.to_string();
    context.operation.set_namespace(&text);
    let source = queries::source(context.state, &namespace)?;
    let collections = queries::collections(context.state);
    let cursor = aggregate.open(&source, &collections).or_command_error()?;
    let owner = queries::owner(context, text, body);
    cursors::reply(
        context,
        owner,
        Box::new(QueryBatches::of_pipeline(cursor)),
        first,
    )
}

/// Reads all arguments but the cursor.
pub fn parse(body: Document<'_>) -> Result<Aggregate, CommandError> {
    check_names(body)?;
    let arguments = Arguments::within("aggregate", body);
    let stages = match arguments.array("pipeline")? {
        Some(stages) => stages,
        None => {
            let message = "'pipeline' option must be specified as an array";
            return Err(CommandError::new(ErrorCode::TypeMismatch, message));
        }
    };
    let allow_disk_use = arguments.bool("allowDiskUse")?.unwrap_or(false);
    collation::check(arguments.document("collation")?)?;
    let environment = queries::environment(arguments.document("let")?)?;
    let hint = body.get("hint").map(Hint::parse).transpose();
    Ok(Aggregate {
        pipeline: Pipeline::parse(stages, &environment).or_command_error()?,
        hint: hint.or_command_error()?.flatten(),
        allow_disk_use,
    })
}

/// The collection of a pipeline. Those without one, `aggregate: 1`, are for stages that make their
/// own documents; there are none yet.
pub fn named(database: &str, body: Document<'_>) -> Result<Namespace, CommandError> {
    let refuse = |code: ErrorCode, message: &str| Err(CommandError::new(code, message));
    match body.first() {
        Some((_, ValueRef::String(_))) => {
            queries::named(database, body, ErrorCode::InvalidNamespace)
        }
        Some((_, number)) if number.as_f64() == Some(1.0) => refuse(
            ErrorCode::InvalidNamespace,
            "{aggregate: 1} is not valid for this pipeline: it needs a collection",
        ),
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

/// `cursor: {batchSize}`, which must be there where the command is not explained.
fn parse_cursor(body: Document<'_>) -> Result<FirstBatch, CommandError> {
    let arguments = Arguments::within("aggregate", body);
    let Some(cursor) = arguments.document("cursor")? else {
        // `explain: false` is taken for the wish to see documents.
        if body.get("explain").is_some() {
            return Ok(FirstBatch::default());
        }
        let message =
            "The 'cursor' option is required, except for aggregate with the explain argument";
        return match body.get("pipeline") {
            Some(ValueRef::Array(_)) => Err(CommandError::new(ErrorCode::FailedToParse, message)),
            _ => parse(body).map(|_| FirstBatch::default()),
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
