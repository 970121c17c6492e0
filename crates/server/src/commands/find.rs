//! `find`: matching documents, sorted and projected.

use std::sync::Arc;

use windrow_document::{Document, Type, ValueRef, doc};
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Find, Hint, Source};
use windrow_wire::{Batch, CommandError, ErrorCode, Reply, Request};

use crate::arguments::{Arguments, whole};
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{Accepted, Command, InTransactions, SnapshotReads};
use crate::common_arguments::is_generic;
use crate::context::Context;
use crate::cursors::CursorOptions;
use crate::errors::OrCommandError;
use crate::first_batch::{self, FIRST_BATCH_COUNT, FirstBatch};
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{self, Defaults, QueryBatches, Running};
use crate::stable_api;
use crate::tailable_cursor::TailableCursor;
use crate::views;

pub const FIND: Command = Command {
    name: "find",
    help: "returns the documents of a collection that match a query",
    kind: Kind::Query,
    class: LatencyClass::Read,
    read_concern: true,
    snapshot_reads: SnapshotReads::InCursor,
    is_limited_read: |_| true,
    in_api_version_1: true,
    outside_api_version_1: stable_api::of_find,
    // The arguments are checked in this file, because the error code differs from that of other
    // commands.
    arguments: Accepted::Any,
    in_transactions: InTransactions::Allowed,
    run,
    ..Command::EMPTY
};

/// The known arguments and their types.
const ARGUMENTS: &[(&str, ArgumentType)] = &[
    ("filter", ArgumentType::Document),
    ("projection", ArgumentType::Document),
    ("sort", ArgumentType::Document),
    ("hint", ArgumentType::Hint),
    ("skip", ArgumentType::Number),
    ("limit", ArgumentType::Number),
    ("batchSize", ArgumentType::Number),
    ("ntoreturn", ArgumentType::Number),
    ("singleBatch", ArgumentType::Bool),
    ("min", ArgumentType::Document),
    ("max", ArgumentType::Document),
    ("returnKey", ArgumentType::Bool),
    ("showRecordId", ArgumentType::Bool),
    ("tailable", ArgumentType::Bool),
    ("awaitData", ArgumentType::Bool),
    ("oplogReplay", ArgumentType::Bool),
    ("noCursorTimeout", ArgumentType::Bool),
    ("allowPartialResults", ArgumentType::Bool),
    ("allowDiskUse", ArgumentType::Bool),
    ("readOnce", ArgumentType::Bool),
    ("collation", ArgumentType::Document),
    ("let", ArgumentType::Document),
    (COLLECTION_UUID, ArgumentType::Binary),
];

#[derive(Clone, Copy)]
enum ArgumentType {
    Document,
    Number,
    Bool,
    Hint,
    Binary,
}

impl ArgumentType {
    fn takes(self, value: ValueRef<'_>) -> bool {
        let type_of = value.type_of();
        match self {
            ArgumentType::Document => type_of == Type::Document,
            ArgumentType::Number => value.is_number(),
            ArgumentType::Bool => type_of == Type::Bool,
            ArgumentType::Hint => matches!(type_of, Type::Document | Type::String),
            ArgumentType::Binary => type_of == Type::Binary,
        }
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let body = request.body();
    let code = ErrorCode::FailedToParse;
    let target = Target::from_name_or_uuid(context, request.database(), body, code)?;
    let text = target.namespace.to_string();
    context.operation.set_namespace(&text);
    let target = target.with_expected_uuid(&Arguments::within("find", body))?;
    let source = target.source(context)?;
    if source.view().is_some() {
        return run_on_view(context, text, body, &source);
    }
    let mut asked = FindRequest::parse(body, Defaults::for_command(context, source.collation()))?;
    asked.find.allow_disk_use = queries::may_use_disk(context, body);
    if asked.tailable {
        if context.transaction().is_some() {
            let message = "Tailable cursors are not allowed in transactions.";
            return Err(CommandError::new(ErrorCode::InvalidOptions, message));
        }
        return tail(context, &target, body, asked);
    }
    let running = Running::start(&asked.find, &source, context.operation)?;
    if !source.exists() {
        return Ok(nothing(context, &text));
    }
    let mut owner = queries::owner(context, text, body);
    owner.indexes = running.indexes().to_vec();
    let plan = running.plan();
    let batches = QueryBatches::from_query(running, asked.find.limit);
    owner.options.no_timeout = asked.no_cursor_timeout;
    let reply = first_batch::reply(context, owner, Box::new(batches), asked.first);
    queries::record_hashes(&asked.find, &*source, &plan, context.operation);
    reply
}

fn nothing(context: &Context<'_>, namespace: &str) -> Reply {
    if context.moment.is_some() {
        // The duration is in the fields that a batch has besides its documents.
        return Reply::first_batch(namespace, 0, Batch::new());
    }
    let cursor = doc! { "id": 0i64, "ns": namespace, "firstBatch": [] };
    Reply::ok(doc! { "cursor": cursor })
}

/// A tailable cursor. A collection without documents has no end at which it could wait.
fn tail(
    context: &Context<'_>,
    target: &Target,
    body: Document<'_>,
    asked: FindRequest,
) -> Result<Reply, CommandError> {
    let text = target.namespace.to_string();
    if context.moment.is_some() {
        let message = "Tailable cursors are not supported with the read concern 'snapshot'";
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    let Some(collection) = target.collection(context)? else {
        return Ok(nothing(context, &text));
    };
    if collection.cap().is_none() {
        let message = "error processing query: tailable cursor requested on non capped collection";
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    let tailing = TailableCursor::new(collection.clone(), asked.find)?;
    if collection.count() == 0 {
        return Ok(Reply::first_batch(&text, 0, Batch::new()));
    }
    context.operation.set_plan_summary("COLLSCAN");
    let mut owner = queries::owner(context, text, body);
    owner.options = CursorOptions {
        no_timeout: asked.no_cursor_timeout,
        tailable: true,
        await_data: asked.await_data,
        ..CursorOptions::default()
    };
    first_batch::reply(context, owner, Box::new(tailing), asked.first)
}

fn run_on_view(
    context: &Context<'_>,
    namespace: String,
    body: Document<'_>,
    source: &Arc<dyn Source>,
) -> Result<Reply, CommandError> {
    check_types(body)?;
    let arguments = Arguments::within("find", body);
    let first = FindRequest::first_batch(&arguments)?;
    for name in ["skip", "limit"] {
        count(&arguments, name)?;
    }
    let mut of_view = views::find(context, body, &**source)?;
    of_view.allow_disk_use = queries::may_use_disk(context, body);
    let cursor = queries::open_pipeline(context, &of_view, source)?;
    let batches = QueryBatches::from_pipeline(cursor);
    let owner = queries::owner(context, namespace, body);
    first_batch::reply(context, owner, Box::new(batches), first)
}

/// A parsed `find`.
pub struct FindRequest {
    pub find: Find,
    first: FirstBatch,
    no_cursor_timeout: bool,
    tailable: bool,
    await_data: bool,
}

impl FindRequest {
    /// Parses the arguments of a find command. `default` has the collation of the collection.
    pub fn parse(body: Document<'_>, default: Defaults) -> Result<FindRequest, CommandError> {
        check_types(body)?;
        let arguments = Arguments::within("find", body);
        let switch = |name: &str| arguments.get(name) == Some(ValueRef::Bool(true));
        let tailable = switch("tailable");
        if switch("awaitData") && !tailable {
            let message = "Cannot set 'awaitData' without also setting 'tailable'";
            return Err(failed_to_parse(message.to_owned()));
        }
        let first = FindRequest::first_batch(&arguments)?;
        if tailable && first.single {
            let message = "Cannot use tailable option with the 'singleBatch' option.";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        Ok(FindRequest {
            find: read_find(&arguments, default)?,
            first,
            no_cursor_timeout: switch("noCursorTimeout"),
            tailable,
            await_data: switch("awaitData"),
        })
    }

    fn first_batch(arguments: &Arguments<'_>) -> Result<FirstBatch, CommandError> {
        let batch_size = count(arguments, "batchSize")?;
        let to_return = count(arguments, "ntoreturn")?;
        let limit = batch_size.or(to_return).map_or(FIRST_BATCH_COUNT, |size| {
            usize::try_from(size).unwrap_or(usize::MAX)
        });
        let single = arguments.get("singleBatch") == Some(ValueRef::Bool(true));
        Ok(FirstBatch { limit, single })
    }
}

fn read_find(arguments: &Arguments<'_>, default: Defaults) -> Result<Find, CommandError> {
    let document = |name: &str| arguments.get(name).and_then(ValueRef::as_document);
    let filled = |name: &str| document(name).filter(|document| !document.is_empty());
    let switch = |name: &str| arguments.get(name) == Some(ValueRef::Bool(true));
    let environment = default.environment(document("let"), document("collation"))?;
    let collation = environment.collation.clone();
    let filter = queries::filter(document("filter"), &environment)?;
    let projection = filled("projection")
        .map(|projection| Projection::parse_with(projection, &filter, &environment));
    let hint = arguments.get("hint").map(Hint::parse).transpose();
    Ok(Find {
        projection: projection.transpose().or_command_error()?,
        sort: filled("sort")
            .map(Sort::parse)
            .transpose()
            .or_command_error()?
            .map(|sort| sort.with_collation(collation)),
        skip: count(arguments, "skip")?.unwrap_or(0),
        limit: count(arguments, "limit")?.filter(|limit| *limit > 0),
        hint: hint.or_command_error()?.flatten(),
        min: filled("min").map(Document::to_buf),
        max: filled("max").map(Document::to_buf),
        return_key: switch("returnKey"),
        show_record_id: switch("showRecordId"),
        allow_disk_use: arguments.get("allowDiskUse") != Some(ValueRef::Bool(false)),
        ..Find::of(filter)
    })
}

fn check_types(body: Document<'_>) -> Result<(), CommandError> {
    for (name, value) in body.iter().skip(1) {
        match ARGUMENTS.iter().find(|(known, _)| *known == name) {
            Some((_, wanted)) if wanted.takes(value) => {}
            // As in all commands, a null `let` defines no variables.
            Some(_) if name == "let" && value == ValueRef::Null => {}
            Some(_) => {
                let found = value.type_of().name();
                return Err(failed_to_parse(format!(
                    "Failed to parse: {name}: unexpected type '{found}'"
                )));
            }
            None if is_generic(name) => {}
            None => {
                return Err(failed_to_parse(format!(
                    "Failed to parse: unrecognized field '{name}' of find"
                )));
            }
        }
    }
    Ok(())
}

/// A number that is not negative, truncated to a whole number.
fn count(arguments: &Arguments<'_>, name: &str) -> Result<Option<u64>, CommandError> {
    let Some(value) = arguments.get(name) else {
        return Ok(None);
    };
    let is_finite = value.as_f64().is_none_or(f64::is_finite);
    let number = whole(value).filter(|_| is_finite).unwrap_or(-1);
    u64::try_from(number).map(Some).map_err(|_| {
        let message = format!("{name} value must be non-negative, but received: {value}");
        CommandError::new(ErrorCode::BadValue, message)
    })
}

fn failed_to_parse(message: String) -> CommandError {
    CommandError::new(ErrorCode::FailedToParse, message)
}
