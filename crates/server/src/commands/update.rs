//! `update`: changes matching documents, or inserts one.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use windrow_access::Action;
use windrow_collection::RetainedImage;
use windrow_document::{ArrayBuf, Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_mql::expression::Variables;
use windrow_mql::sort::Sort;
use windrow_mql::update::{Update, UpdateContext, check_upsert_filter};
use windrow_query::{Find, Hint};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::{Arguments, statements};
use crate::changes::{self, UpdateOperation, UpdateResult};
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{AcceptedArguments, Command, InTransactions};
use crate::context::Context;
use crate::errors::{IntoCommandError, OrCommandError};
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{self, Defaults, ExaminedCounts};
use crate::queryable_encryption;
use crate::views;
use crate::writes::{self, StorageOptions, WriteErrors, WriteRequest};

pub const UPDATE: Command = Command {
    name: "update",
    help: "updates documents of a collection",
    needs: Needs::Computed(requirement),
    kind: Kind::Update,
    class: LatencyClass::Write,
    write_concern: true,
    in_api_version_1: true,
    in_transactions: InTransactions::Allowed,
    retryable: true,
    check: |request| parse_statements(request).map(drop),
    arguments: AcceptedArguments::Only(&[
        "bypassDocumentValidation",
        "bypassEmptyTsReplacement",
        COLLECTION_UUID,
        "let",
        "ordered",
        "updates",
    ]),
    encrypted: Some(queryable_encryption::update),
    run,
    ..Command::EMPTY
};

/// Upserts also insert.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let mut actions = vec![Action::update];
    if upserts(request) {
        actions.push(Action::insert);
    }
    if request.flag("bypassDocumentValidation") {
        actions.push(Action::bypassDocumentValidation);
    }
    request.on_collection(&actions)
}

/// Returns `true` if a statement is an upsert.
fn upserts(request: &AccessRequest<'_>) -> bool {
    let is_upsert = |statement: Document<'_>| {
        let mut fields = statement.iter();
        fields.any(|(name, value)| name == "upsert" && value.is_truthy())
    };
    let sent = request
        .request
        .and_then(|it| it.documents("updates").ok().flatten());
    if let Some(statements) = sent {
        return statements.iter().any(is_upsert);
    }
    let statements = request.body.get("updates").and_then(ValueRef::as_array);
    let mut documents = statements
        .into_iter()
        .flatten()
        .filter_map(ValueRef::as_document);
    documents.any(is_upsert)
}

/// The fields of an update that differ between the commands.
struct UpdateFields {
    /// The name of the update in errors.
    path: &'static str,
    filter: &'static str,
    update: &'static str,
    constants: &'static str,
    /// A further field, which is parsed elsewhere.
    namespace: Option<&'static str>,
}

/// The fields of a statement of `update`.
const STATEMENT: UpdateFields = UpdateFields {
    path: "update.updates",
    filter: "q",
    update: "u",
    constants: "c",
    namespace: None,
};

/// The fields of an update in a bulk write.
const BULK_WRITE: UpdateFields = UpdateFields {
    path: "bulkWrite.update",
    filter: "filter",
    update: "updateMods",
    constants: "constants",
    namespace: Some("update"),
};

/// The fields that have the same names in both.
const COMMON_FIELDS: &[&str] = &[
    "multi",
    "upsert",
    "arrayFilters",
    "collation",
    "hint",
    "sort",
];

impl UpdateFields {
    fn contains(&self, name: &str) -> bool {
        [self.filter, self.update, self.constants].contains(&name)
            || self.namespace == Some(name)
            || COMMON_FIELDS.contains(&name)
    }
}

/// One of `updates`, with checked types.
pub struct UpdateStatement<'a> {
    /// The statement as sent.
    source: Document<'a>,
    filter: Document<'a>,
    update: ValueRef<'a>,
    constants: Option<Document<'a>>,
    many: bool,
    upsert: bool,
    array_filters: Vec<Document<'a>>,
    collation: Option<Document<'a>>,
    hint: Option<Hint>,
    sort: Option<Document<'a>>,
}

/// The counts of the whole command.
#[derive(Default)]
struct UpdateTotals {
    matched: u64,
    modified: u64,
    examined: ExaminedCounts,
    upserted: Vec<Value>,
}

/// Parses the statements of a command.
fn parse_statements(request: &Request) -> Result<Vec<UpdateStatement<'_>>, CommandError> {
    let updates = statements(request, "updates")?;
    updates.iter().map(UpdateStatement::parse).collect()
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let request = WriteRequest::parse(request, context, parse_statements)?;
    let options = UpdateOptions {
        variables: request.variables,
        storage: request.storage,
    };
    let mut totals = UpdateTotals::default();
    let errors = writes::run_each(&request.statements, request.ordered, |index, statement| {
        let started = Instant::now();
        context.state.metrics.count_update(
            UPDATE.name,
            statement.update.as_array().is_some(),
            !statement.array_filters.is_empty(),
        );
        let updated = run_once(context, &request.target, index, statement, options)?;
        statement.record(context, &updated, started.elapsed());
        totals.add(index, &updated);
        Ok(())
    })?;
    let examined = totals.examined;
    examined.record(ExaminedCounts::default(), context.operation);
    context.operation.record("nMatched", totals.matched as i64);
    context
        .operation
        .record("nModified", totals.modified as i64);
    Ok(Reply::ok(totals.into_reply(errors)))
}

impl UpdateTotals {
    fn add(&mut self, number: usize, updated: &UpdateResult) {
        self.matched += updated.tally.matched;
        self.modified += updated.tally.changed;
        self.examined += updated.tally.examined;
        if let Some(inserted) = &updated.inserted {
            self.matched += 1;
            let mut entry = DocumentBuf::new();
            entry.push("index", number as i32);
            entry.push("_id", changes::id(inserted));
            self.upserted.push(Value::from(entry));
        }
    }

    fn into_reply(self, errors: WriteErrors) -> DocumentBuf {
        let mut reply = DocumentBuf::new();
        reply.push("n", self.matched as i32);
        if !self.upserted.is_empty() {
            reply.push("upserted", Value::from(ArrayBuf::from_iter(self.upserted)));
        }
        reply.push("nModified", self.modified as i32);
        errors.add_to(&mut reply);
        reply
    }
}

/// The options of a command that apply to all of its updates.
#[derive(Clone, Copy)]
pub struct UpdateOptions<'a> {
    /// The variables of `let`.
    pub variables: Option<Document<'a>>,
    pub storage: StorageOptions,
}

/// Runs the statement with this index in its command. See [`writes::run_once`].
pub fn run_once(
    context: &Context<'_>,
    target: &Target,
    index: usize,
    statement: &UpdateStatement<'_>,
    options: UpdateOptions<'_>,
) -> Result<UpdateResult, CommandError> {
    let run = |numbers: &[i32]| run_statement(context, target, statement, numbers, options);
    let again = changes::updated_before;
    let database = &target.namespace.database;
    writes::run_once(context, database, index, !statement.many, again, run)
}

/// Runs one statement. `numbers` is its number in a retryable write.
fn run_statement(
    context: &Context<'_>,
    target: &Target,
    statement: &UpdateStatement<'_>,
    numbers: &[i32],
    options: UpdateOptions<'_>,
) -> Result<UpdateResult, CommandError> {
    let storage = options.storage;
    context.state.metrics.updates.fetch_add(1, Relaxed);
    writes::check_changeable(&target.namespace, statement.upsert)?;
    let existing = target.collection(context)?;
    views::refuse_view(context, &target.namespace)?;
    let collation = existing.and_then(|existing| existing.collation());
    let PreparedUpdate {
        find,
        update,
        variables,
    } = statement.prepare(options.variables, Defaults::for_command(context, collation))?;
    let updating = UpdateOperation {
        find: &find,
        update: &update,
        context: UpdateContext {
            filter: Some(&find.filter),
            variables: Some(&variables),
            keeps_zero_timestamps: storage.keeps_zero_timestamps,
            ..changes::update_context(context.times().now)
        },
        many: statement.many,
        upsert: statement.upsert,
        saving: context.saving(storage.validation, numbers, RetainedImage::Id),
    };
    changes::update(context, target, &updating, false)
}

/// A statement with parsed filter and update.
pub struct PreparedUpdate {
    pub find: Find,
    pub update: Update,
    pub variables: Variables,
}

impl<'a> UpdateStatement<'a> {
    /// Parses a statement of `updates`.
    pub fn parse(statement: Document<'a>) -> Result<UpdateStatement<'a>, CommandError> {
        UpdateStatement::parse_with(statement, &STATEMENT)
    }

    /// Parses an update of a bulk write.
    pub fn parse_bulk_write(operation: Document<'a>) -> Result<UpdateStatement<'a>, CommandError> {
        UpdateStatement::parse_with(operation, &BULK_WRITE)
    }

    fn parse_with(
        source: Document<'a>,
        names: &UpdateFields,
    ) -> Result<UpdateStatement<'a>, CommandError> {
        let fields = Arguments::within(names.path, source);
        fields.only_if(|name| names.contains(name))?;
        let missing = |name| fields.missing(name);
        let filter = fields.document(names.filter)?;
        let filter = filter.ok_or_else(|| missing(names.filter))?;
        let update = fields.get(names.update);
        let update = update.ok_or_else(|| missing(names.update))?;
        if !matches!(update.type_of(), Type::Document | Type::Array) {
            let message = "Update argument must be either an object or an array";
            return Err(CommandError::new(ErrorCode::FailedToParse, message));
        }
        check_stages(update)?;
        Ok(UpdateStatement {
            source,
            filter,
            update,
            constants: fields.document(names.constants)?,
            many: fields.bool("multi")?.unwrap_or(false),
            upsert: fields.bool("upsert")?.unwrap_or(false),
            array_filters: array_filters(&fields)?,
            collation: fields.document("collation")?,
            hint: queries::hint(fields.get("hint"))?,
            sort: fields.document("sort")?,
        })
    }

    /// Returns `true` if a document is inserted if none matches.
    pub fn upserts(&self) -> bool {
        self.upsert
    }

    /// Records the result in the log, the profile and the metrics.
    fn record(&self, context: &Context<'_>, updated: &UpdateResult, took: Duration) {
        writes::record(context, took, || self.describe(updated));
    }

    fn describe(&self, updated: &UpdateResult) -> DocumentBuf {
        let mut command = doc! { "q": (self.filter), "u": (self.update) };
        let rest = self.source.iter();
        rest.filter(|(name, _)| !["q", "u", "multi", "upsert"].contains(name))
            .for_each(|(name, value)| writes::push_field(&mut command, name, value));
        command.push("multi", self.many);
        command.push("upsert", self.upsert);
        let tally = &updated.tally;
        let mut details = doc! {
            "type": "update", "command": command,
            "keysExamined": (tally.examined.keys as i64),
            "docsExamined": (tally.examined.documents as i64),
            "nMatched": (tally.matched as i64), "nModified": (tally.changed as i64),
        };
        if updated.inserted.is_some() {
            details.push("upsert", true);
        }
        details
    }

    /// Parses filter, update and sort. `default` has the collation of the collection.
    pub fn prepare(
        &self,
        variables: Option<Document<'_>>,
        default: Defaults,
    ) -> Result<PreparedUpdate, CommandError> {
        let environment = default.environment(variables, self.collation)?;
        let collation = environment.collation.clone();
        let mut variables = Variables::clone(&environment.variables);
        self.add_constants(&mut variables)?;
        let update = Update::parse_with(self.update, &self.array_filters, &variables);
        let update = update.or_command_error()?;
        if self.many && update.is_replacement() {
            let message = "multi update is not supported for replacement-style update";
            return Err(CommandError::new(ErrorCode::FailedToParse, message));
        }
        let filter = queries::filter(Some(self.filter), &environment)?;
        if self.upsert {
            check_upsert_filter(&filter).or_command_error()?;
        }
        let sort = self.sort.filter(|sort| !sort.is_empty()).map(Sort::parse);
        let sort = sort.transpose().or_command_error()?;
        let sort = sort.map(|sort| sort.with_collation(collation));
        if self.many && sort.is_some() {
            let message = "Cannot specify sort with multi=true";
            return Err(CommandError::new(ErrorCode::FailedToParse, message));
        }
        let find = Find {
            hint: self.hint.clone(),
            sort,
            limit: (!self.many).then_some(1),
            ..Find::new(filter)
        };
        Ok(PreparedUpdate {
            find,
            update,
            variables,
        })
    }

    /// Adds the constants in `c` of the statement, which only pipelines can read.
    fn add_constants(&self, variables: &mut Variables) -> Result<(), CommandError> {
        let Some(constants) = self.constants else {
            return Ok(());
        };
        if self.update.type_of() != Type::Array {
            let message = "Constant values may only be specified for pipeline updates";
            return Err(CommandError::new(ErrorCode(51198), message));
        }
        for (name, value) in constants {
            let value = Some(value.to_value());
            variables.set_constant(name, value).or_command_error()?;
        }
        Ok(())
    }
}

/// Parses `arrayFilters`. The error code for a wrong type is specific to updates.
fn array_filters<'a>(fields: &Arguments<'a>) -> Result<Vec<Document<'a>>, CommandError> {
    let code = match fields.get("arrayFilters") {
        None | Some(ValueRef::Array(_)) => return writes::array_filters(fields),
        Some(ValueRef::Document(_)) => 40422,
        Some(_) => 10065,
    };
    let path = fields.path("arrayFilters");
    let message = format!("BSON field '{path}' is not an array");
    Err(CommandError::new(ErrorCode(code), message))
}

/// Checks that the stages of a pipeline are documents with one field, before anything is updated.
fn check_stages(update: ValueRef<'_>) -> Result<(), CommandError> {
    let stages = update
        .as_array()
        .into_iter()
        .flat_map(|stages| stages.iter());
    for stage in stages {
        let Some(stage) = stage.as_document() else {
            let message = "Each element of the 'pipeline' array must be an object";
            return Err(CommandError::new(ErrorCode::TypeMismatch, message));
        };
        if stage.count() != 1 {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(CommandError::new(ErrorCode(40323), message));
        }
    }
    match update {
        ValueRef::Array(_) => check_stage_names(update),
        _ => Ok(()),
    }
}

/// Checks the names of the stages, before anything is updated.
fn check_stage_names(pipeline: ValueRef<'_>) -> Result<(), CommandError> {
    match Update::parse(pipeline, &[]) {
        Err(error) if error.code == UNKNOWN_STAGE => Err(error.into_command_error()),
        _ => Ok(()),
    }
}

const UNKNOWN_STAGE: i32 = 40324;
