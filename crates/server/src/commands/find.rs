//! `find`: matching documents, sorted and projected.

use std::sync::Arc;

use windrow_access::Action;
use windrow_document::{Document, Type, ValueRef, doc};
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Find, Source};
use windrow_wire::{Batch, CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::{Arguments, whole};
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{AcceptedArguments, Command, InTransactions, SnapshotReads};
use crate::common_arguments::is_generic;
use crate::context::Context;
use crate::cursors::CursorOptions;
use crate::errors::OrCommandError;
use crate::first_batch::{self, FIRST_BATCH_COUNT, FirstBatch};
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{self, Defaults, QueryBatches, RunningQuery};
use crate::queryable_encryption;
use crate::stable_api;
use crate::tailable_cursor::TailableCursor;
use crate::views::{self, ViewQuery};

pub const FIND: Command = Command {
    name: "find",
    help: "returns the documents of a collection that match a query",
    needs: Needs::OnCollection(&[Action::find]),
    kind: Kind::Query,
    class: LatencyClass::Read,
    read_concern: true,
    snapshot_reads: SnapshotReads::InCursor,
    is_limited_read: |_| true,
    in_api_version_1: true,
    outside_api_version_1: stable_api::unsupported_in_find,
    // The arguments are checked in this file, because the error code differs from that of other
    // commands.
    arguments: AcceptedArguments::Any,
    in_transactions: InTransactions::Allowed,
    encrypted: Some(queryable_encryption::run_query),
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
    fn accepts(self, value: ValueRef<'_>) -> bool {
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
    let command = request.body();
    let code = ErrorCode::FailedToParse;
    let target = Target::from_name_or_uuid(context, request.database(), command, code)?;
    let namespace = target.namespace.to_string();
    context.operation.set_namespace(&namespace);
    let target = target.with_expected_uuid(&Arguments::within("find", command))?;
    let source = target.source(context)?;
    let request = FindRequest::parse(command)?;
    if source.view().is_some() {
        return run_on_view(context, namespace, &request, &source);
    }
    let mut find = request.find(Defaults::for_command(context, source.collation()))?;
    find.allow_disk_use = queries::may_use_disk(context, request.allow_disk_use);
    if request.tailable {
        if context.transaction().is_some() {
            let message = "Tailable cursors are not allowed in transactions.";
            return Err(CommandError::new(ErrorCode::InvalidOptions, message));
        }
        return open_tailable(context, &target, &request, find);
    }
    let running = RunningQuery::start(&find, &source, context.operation)?;
    if !source.exists() {
        return Ok(empty_result(context, &namespace));
    }
    let mut owner = queries::owner(context, namespace, command);
    owner.indexes = running.indexes().to_vec();
    owner.options.no_timeout = request.no_cursor_timeout;
    let plan = running.plan();
    let batches = QueryBatches::from_query(running, find.limit);
    let reply = first_batch::reply(context, owner, Box::new(batches), request.first);
    queries::record_hashes(&find, &*source, &plan, context.operation);
    reply
}

/// Returns the reply if the collection does not exist.
fn empty_result(context: &Context<'_>, namespace: &str) -> Reply {
    if context.snapshot.is_some() {
        // The duration is in the fields that a batch has besides its documents.
        return Reply::first_batch(namespace, 0, Batch::new());
    }
    let cursor = doc! { "id": 0i64, "ns": namespace, "firstBatch": [] };
    Reply::ok(doc! { "cursor": cursor })
}

/// Opens a tailable cursor, unless the collection is empty: then there is no position to wait at.
fn open_tailable(
    context: &Context<'_>,
    target: &Target,
    request: &FindRequest<'_>,
    find: Find,
) -> Result<Reply, CommandError> {
    let namespace = target.namespace.to_string();
    if context.snapshot.is_some() {
        let message = "Tailable cursors are not supported with the read concern 'snapshot'";
        return Err(CommandError::new(ErrorCode::InvalidOptions, message));
    }
    let Some(collection) = target.collection(context)? else {
        return Ok(empty_result(context, &namespace));
    };
    if collection.cap().is_none() {
        let message = "error processing query: tailable cursor requested on non capped collection";
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    let cursor = TailableCursor::new(collection.clone(), find)?;
    if collection.count() == 0 {
        return Ok(Reply::first_batch(&namespace, 0, Batch::new()));
    }
    context.operation.set_plan_summary("COLLSCAN");
    let mut owner = queries::owner(context, namespace, request.command);
    owner.options = CursorOptions {
        no_timeout: request.no_cursor_timeout,
        tailable: true,
        await_data: request.await_data,
        ..CursorOptions::default()
    };
    first_batch::reply(context, owner, Box::new(cursor), request.first)
}

fn run_on_view(
    context: &Context<'_>,
    namespace: String,
    request: &FindRequest<'_>,
    source: &Arc<dyn Source>,
) -> Result<Reply, CommandError> {
    let mut aggregate = views::aggregate(context, request.view_query()?, &**source)?;
    aggregate.allow_disk_use = queries::may_use_disk(context, request.allow_disk_use);
    let cursor = queries::open_pipeline(context, &aggregate, source)?;
    let batches = QueryBatches::from_pipeline(cursor);
    let owner = queries::owner(context, namespace, request.command);
    first_batch::reply(context, owner, Box::new(batches), request.first)
}

/// A parsed `find`. Documents are parsed by [`find`](Self::find), because that needs the collation
/// of the collection.
pub struct FindRequest<'a> {
    command: Document<'a>,
    filter: Option<Document<'a>>,
    /// `None` if it is empty, as for the documents below.
    projection: Option<Document<'a>>,
    sort: Option<Document<'a>>,
    min: Option<Document<'a>>,
    max: Option<Document<'a>>,
    /// The variables of `let`.
    variables: Option<Document<'a>>,
    collation: Option<Document<'a>>,
    hint: Option<ValueRef<'a>>,
    skip: u64,
    limit: Option<u64>,
    return_key: bool,
    show_record_id: bool,
    allow_disk_use: Option<bool>,
    first: FirstBatch,
    no_cursor_timeout: bool,
    tailable: bool,
    await_data: bool,
}

impl<'a> FindRequest<'a> {
    /// Parses the arguments of a find command.
    pub fn parse(command: Document<'a>) -> Result<FindRequest<'a>, CommandError> {
        check_types(command)?;
        let arguments = Arguments::within("find", command);
        let document = |name: &str| arguments.get(name).and_then(ValueRef::as_document);
        let filled = |name: &str| document(name).filter(|document| !document.is_empty());
        let bool = |name: &str| arguments.get(name).and_then(ValueRef::as_bool);
        let is_set = |name: &str| bool(name) == Some(true);
        let request = FindRequest {
            command,
            filter: document("filter"),
            projection: filled("projection"),
            sort: filled("sort"),
            min: filled("min"),
            max: filled("max"),
            variables: document("let"),
            collation: document("collation"),
            hint: arguments.get("hint"),
            first: parse_first_batch(&arguments)?,
            skip: count(&arguments, "skip")?.unwrap_or(0),
            limit: count(&arguments, "limit")?.filter(|limit| *limit > 0),
            return_key: is_set("returnKey"),
            show_record_id: is_set("showRecordId"),
            allow_disk_use: bool("allowDiskUse"),
            no_cursor_timeout: is_set("noCursorTimeout"),
            tailable: is_set("tailable"),
            await_data: is_set("awaitData"),
        };
        if request.await_data && !request.tailable {
            let message = "Cannot set 'awaitData' without also setting 'tailable'";
            return Err(failed_to_parse(message.to_owned()));
        }
        if request.tailable && request.first.single {
            let message = "Cannot use tailable option with the 'singleBatch' option.";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        Ok(request)
    }

    /// Returns the query. `default` has the collation of the collection.
    pub fn find(&self, default: Defaults) -> Result<Find, CommandError> {
        let environment = default.environment(self.variables, self.collation)?;
        let collation = environment.collation.clone();
        let filter = queries::filter(self.filter, &environment)?;
        let projection = self
            .projection
            .map(|projection| Projection::parse_with(projection, &filter, &environment));
        let projection = projection.transpose().or_command_error()?;
        let sort = self.sort.map(Sort::parse).transpose().or_command_error()?;
        Ok(Find {
            projection,
            sort: sort.map(|sort| sort.with_collation(collation)),
            skip: self.skip,
            limit: self.limit,
            hint: queries::hint(self.hint)?,
            min: self.min.map(Document::to_buf),
            max: self.max.map(Document::to_buf),
            return_key: self.return_key,
            show_record_id: self.show_record_id,
            allow_disk_use: self.allow_disk_use.unwrap_or(true),
            ..Find::new(filter)
        })
    }

    /// Returns the query of a view. Fails if a pipeline does not support an argument.
    pub fn view_query(&self) -> Result<ViewQuery<'a>, CommandError> {
        views::check_find(self.command)?;
        let natural = self.sort.filter(|sort| sort.get("$natural").is_some());
        let document = |value: Option<Document<'a>>| value.map(ValueRef::Document);
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        Ok(ViewQuery {
            filter: self.filter,
            sort: self.sort.filter(|_| natural.is_none()),
            skip: number(self.skip),
            limit: self.limit.map_or(0, number),
            projection: self.projection,
            hint: document(natural).or(self.hint),
            variables: self.variables,
            collation: self.collation,
        })
    }
}

fn parse_first_batch(arguments: &Arguments<'_>) -> Result<FirstBatch, CommandError> {
    let batch_size = count(arguments, "batchSize")?;
    let to_return = count(arguments, "ntoreturn")?;
    let limit = batch_size.or(to_return).map_or(FIRST_BATCH_COUNT, |size| {
        usize::try_from(size).unwrap_or(usize::MAX)
    });
    let single = arguments.get("singleBatch") == Some(ValueRef::Bool(true));
    Ok(FirstBatch { limit, single })
}

/// Checks the names and types of all arguments.
fn check_types(command: Document<'_>) -> Result<(), CommandError> {
    for (name, value) in command.iter().skip(1) {
        match ARGUMENTS.iter().find(|(known, _)| *known == name) {
            Some((_, expected)) if expected.accepts(value) => {}
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

/// Returns a number that is not negative, truncated to a whole number.
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
