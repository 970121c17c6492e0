//! `findAndModify`: changes or removes one document, and returns its old or new version.

use windrow_access::Action;
use windrow_collection::{Change, RetainedImage, StatementResult};
use windrow_document::{Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_mql::Meta;
use windrow_mql::expression::Variables;
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_mql::update::{Update, UpdateContext, check_upsert_filter};
use windrow_query::{ExplainedCommand, Find, ReturnedDocument, check_size};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::changes::{self, UpdateOperation, UpdateResult};
use crate::collection_uuid::Target;
use crate::command::{AcceptedArguments, Command, InTransactions};
use crate::common_arguments::is_generic;
use crate::context::{Context, StatementOptions};
use crate::errors::OrCommandError;
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::namespace;
use crate::queries::{self, Defaults, ExaminedCounts};
use crate::queryable_encryption;
use crate::retries::{self, FindAndModifyOptions};
use crate::transaction_context;
use crate::views;
use crate::writes::{self, StorageOptions};

pub const FIND_AND_MODIFY: Command = Command {
    name: "findAndModify",
    aliases: &["findandmodify"],
    help: "updates or removes one document and returns it",
    needs: Needs::Computed(requirement),
    kind: Kind::Command,
    class: LatencyClass::Write,
    write_concern: true,
    in_api_version_1: true,
    // The arguments are checked in this file, because the error code differs from that of other
    // commands.
    arguments: AcceptedArguments::Any,
    in_transactions: InTransactions::Allowed,
    retryable: true,
    encrypted: Some(queryable_encryption::find_and_modify),
    run,
    ..Command::EMPTY
};

/// Returns the requirement: the command reads, and updates or removes.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let mut actions = vec![Action::find];
    if request.flag("remove") {
        actions.push(Action::remove);
    } else {
        actions.push(Action::update);
        if request.flag("upsert") {
            actions.push(Action::insert);
        }
        if request.flag("bypassDocumentValidation") {
            actions.push(Action::bypassDocumentValidation);
        }
    }
    request.on_collection(&actions)
}

const FIELDS: &[&str] = &[
    "query",
    "sort",
    "remove",
    "update",
    "new",
    "fields",
    "upsert",
    "arrayFilters",
    "bypassDocumentValidation",
    "bypassEmptyTsReplacement",
    "collation",
    "hint",
    "let",
];

/// A parsed `findAndModify`.
pub struct FindAndModifyRequest {
    pub find: Find,
    environment: Environment,
    /// The update. `None` removes the document.
    update: Option<Update>,
    upsert: bool,
    new: bool,
    fields: Option<Projection>,
    storage: StorageOptions,
    /// `true` if the update is a pipeline.
    by_pipeline: bool,
    has_array_filters: bool,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let body = request.body();
    let namespace =
        namespace::without_dollar(request.database(), body, ErrorCode::InvalidNamespace)?;
    context.operation.set_namespace(&namespace.to_string());
    writes::check_statement_count(context, 1)?;
    let default = Defaults::for_collection(context, &namespace)?;
    let request = FindAndModifyRequest::parse(body, default)?;
    context.state.metrics.count_update(
        FIND_AND_MODIFY.name,
        request.by_pipeline,
        request.has_array_filters,
    );
    let done = context
        .transaction_context
        .map(|it| it.stored_single_result());
    let done = done.transpose()?.flatten();
    let outcome = match &done {
        // A retry returns the whole document, as in MongoDB.
        Some(done) => request.stored_outcome(done)?,
        None => {
            context.begin_retryable_write()?;
            request.modify(context, &Target::named(namespace))?
        }
    };
    let mut reply = DocumentBuf::new();
    reply.push("lastErrorObject", outcome.last_error);
    reply.push("value", outcome.value.map_or(Value::Null, Value::from));
    if done.is_some() {
        let number = context
            .transaction_context
            .map_or(transaction_context::SINGLE_STATEMENT, |it| it.statement(0));
        reply.push("retriedStmtId", number);
    }
    Ok(Reply::ok(reply))
}

/// The result of a `findAndModify`.
struct FindAndModifyOutcome {
    /// `lastErrorObject` of the reply.
    last_error: DocumentBuf,
    /// The returned document.
    value: Option<DocumentBuf>,
}

impl FindAndModifyRequest {
    fn modify(
        &self,
        context: &Context<'_>,
        target: &Target,
    ) -> Result<FindAndModifyOutcome, CommandError> {
        let namespace = &target.namespace;
        views::refuse_view(context, namespace)?;
        writes::check_changeable(namespace, self.upsert)?;
        writes::check_in_transaction(context, &namespace.database, &namespace.collection)?;
        match &self.update {
            Some(update) => self.update(context, target, update),
            None => self.remove(context, target),
        }
    }

    fn update(
        &self,
        context: &Context<'_>,
        target: &Target,
        update: &Update,
    ) -> Result<FindAndModifyOutcome, CommandError> {
        let updating = UpdateOperation {
            find: &self.find,
            update,
            context: UpdateContext {
                filter: Some(&self.find.filter),
                variables: Some(&self.environment.variables),
                keeps_zero_timestamps: self.storage.keeps_zero_timestamps,
                ..changes::update_context(context.times().now)
            },
            many: false,
            upsert: self.upsert,
            saving: self.saving(context),
        };
        let UpdateResult {
            tally,
            before,
            after,
            inserted,
        } = changes::update(context, target, &updating, true)?;
        tally
            .examined
            .record(ExaminedCounts::default(), context.operation);
        context.operation.record("nMatched", tally.matched as i64);
        context.operation.record("nModified", tally.changed as i64);
        if inserted.is_some() {
            context.operation.record("upsert", true);
        }
        let n = i32::from(tally.matched > 0 || inserted.is_some());
        let mut last_error = doc! { "n": n, "updatedExisting": (tally.matched > 0) };
        if let Some(inserted) = &inserted {
            last_error.push("upserted", changes::id(inserted));
        }
        let value = if self.new { inserted.or(after) } else { before };
        let value = self.project(value)?;
        Ok(FindAndModifyOutcome { last_error, value })
    }

    /// Returns the options for storing the write. The command is one statement of a retryable
    /// write, and the document that it returns is stored for a retry.
    fn saving(&self, context: &Context<'_>) -> StatementOptions<'static> {
        let image = if self.new {
            RetainedImage::After
        } else {
            RetainedImage::Before
        };
        context.saving(
            self.storage.validation,
            &[transaction_context::SINGLE_STATEMENT],
            image,
        )
    }

    /// Returns the result for a retry of a command that was executed before.
    fn stored_outcome(&self, done: &StatementResult) -> Result<FindAndModifyOutcome, CommandError> {
        let options = FindAndModifyOptions {
            removes: self.removes(),
            upserts: self.upsert,
            new: self.new,
        };
        let value = retries::as_modification(done, options)?;
        let mut last_error = doc! { "n": 1 };
        match done {
            StatementResult::Deleted(_) => {}
            StatementResult::Updated(_) => last_error.push("updatedExisting", true),
            StatementResult::Inserted(document) => {
                last_error.push("updatedExisting", false);
                last_error.push("upserted", changes::id(document));
            }
        }
        let value = value.cloned();
        Ok(FindAndModifyOutcome { last_error, value })
    }

    fn remove(
        &self,
        context: &Context<'_>,
        target: &Target,
    ) -> Result<FindAndModifyOutcome, CommandError> {
        let mut removed = None;
        let mut decide = |document: Document<'_>| {
            removed = Some(document.to_buf());
            Ok(Change::Delete)
        };
        match target.collection(context)? {
            Some(collection) => {
                let tally = changes::change_one(
                    context,
                    &collection,
                    &self.find,
                    self.saving(context),
                    &mut decide,
                )?;
                tally
                    .examined
                    .record(ExaminedCounts::default(), context.operation);
                context.operation.record("ndeleted", tally.changed as i64);
            }
            None => {
                let nothing = target.source(context)?;
                self.find.clone().open(&nothing).or_command_error()?;
            }
        }
        let last_error = doc! { "n": (i32::from(removed.is_some())) };
        let value = self.project(removed)?;
        Ok(FindAndModifyOutcome { last_error, value })
    }

    fn project(&self, document: Option<DocumentBuf>) -> Result<Option<DocumentBuf>, CommandError> {
        let (Some(fields), Some(document)) = (&self.fields, &document) else {
            return Ok(document);
        };
        let projected = fields.apply(document.as_document(), &Meta::default());
        let projected = projected.or_command_error()?;
        check_size(projected.as_document()).or_command_error()?;
        Ok(Some(projected))
    }

    /// Returns `true` if the document is removed.
    fn removes(&self) -> bool {
        self.update.is_none()
    }

    /// Returns the stages that explain shows above the plan of the query.
    pub fn wrapping(&self) -> ExplainedCommand {
        let returns = if self.new {
            ReturnedDocument::After
        } else {
            ReturnedDocument::Before
        };
        let write = if self.removes() {
            ExplainedCommand::Delete { returns }
        } else {
            ExplainedCommand::Update {
                upserts: self.upsert,
                returns,
            }
        };
        match &self.fields {
            Some(fields) => ExplainedCommand::Projected(fields.clone(), Box::new(write)),
            None => write,
        }
    }

    /// Parses the arguments of a findAndModify command. `default` has the collation of the
    /// collection.
    pub fn parse(
        body: Document<'_>,
        default: Defaults,
    ) -> Result<FindAndModifyRequest, CommandError> {
        check_names(body)?;
        let arguments = Arguments::within("findAndModify", body);
        let flags = Flags::parse(&arguments)?;
        let array_filters = writes::array_filters(&arguments)?;
        flags.check(&arguments)?;
        let storage = StorageOptions::parse(&arguments)?;
        let environment =
            default.environment(arguments.document("let")?, arguments.document("collation")?)?;
        let collation = environment.collation.clone();
        let variables = &environment.variables;
        let update = parse_update(&arguments, flags.remove, &array_filters, variables)?;
        let query = arguments.document("query")?;
        // MongoDB ignores the sort if the query finds at most one document, as for an `_id` with
        // the collation of its index.
        let is_one = arguments.present("collation").is_none() && query.is_some_and(is_of_id);
        let sort = arguments.document("sort")?.filter(|_| !is_one);
        let filter = queries::filter(query, &environment)?;
        if flags.upsert {
            check_upsert_filter(&filter).or_command_error()?;
        }
        let hint = queries::hint(arguments.get("hint"));
        let fields = parse_fields(arguments.document("fields")?, &filter, &environment)?;
        // The matched array index is that of the old version. The new version may not have it.
        if flags.new && fields.as_ref().is_some_and(Projection::is_positional) {
            let message = "cannot use a positional projection and return the new document";
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        Ok(FindAndModifyRequest {
            fields,
            find: Find {
                sort: parse_sort(sort)?.map(|sort| sort.with_collation(collation)),
                hint: hint?,
                limit: Some(1),
                ..Find::new(filter)
            },
            update,
            upsert: flags.upsert,
            new: flags.new,
            storage,
            by_pipeline: arguments
                .get("update")
                .is_some_and(|it| it.as_array().is_some()),
            has_array_filters: !array_filters.is_empty(),
            environment,
        })
    }
}

/// Returns `true` if a query is an equality on `_id` only.
fn is_of_id(query: Document<'_>) -> bool {
    let mut fields = query.iter();
    let is_value = |value: ValueRef<'_>| match value {
        ValueRef::Document(inner) => !inner.first().is_some_and(|(name, _)| name.starts_with('$')),
        ValueRef::Regex { .. } => false,
        _ => true,
    };
    matches!((fields.next(), fields.next()), (Some(("_id", value)), None) if is_value(value))
}

fn check_names(body: Document<'_>) -> Result<(), CommandError> {
    let mut names = body.iter().skip(1).map(|(name, _)| name);
    match names.find(|name| !FIELDS.contains(name) && !is_generic(name)) {
        Some(name) => Err(CommandError::new(
            ErrorCode(51177),
            format!("BSON field '{name}' is an unknown field of findAndModify."),
        )),
        None => Ok(()),
    }
}

#[derive(Clone, Copy)]
struct Flags {
    remove: bool,
    upsert: bool,
    new: bool,
}

impl Flags {
    fn parse(arguments: &Arguments<'_>) -> Result<Flags, CommandError> {
        // MongoDB also accepts other types here, by their truth value.
        let flag = |name: &str| arguments.get(name).is_some_and(ValueRef::is_truthy);
        Ok(Flags {
            remove: arguments.flag("remove")?,
            upsert: flag("upsert"),
            new: flag("new"),
        })
    }

    fn check(self, arguments: &Arguments<'_>) -> Result<(), CommandError> {
        let has = |name: &str| arguments.get(name).is_some();
        let what = match self {
            Flags { remove: false, .. } if !has("update") => {
                "Either an update or remove=true must be specified"
            }
            Flags { remove: false, .. } => return Ok(()),
            _ if has("update") => "Cannot specify both an update and remove=true",
            Flags { upsert: true, .. } => "Cannot specify both upsert=true and remove=true",
            Flags { new: true, .. } => {
                "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
            }
            _ if has("arrayFilters") => "Cannot specify arrayFilters and remove=true",
            _ => return Ok(()),
        };
        Err(CommandError::new(ErrorCode::FailedToParse, what))
    }
}

fn parse_update(
    arguments: &Arguments<'_>,
    remove: bool,
    array_filters: &[Document<'_>],
    variables: &Variables,
) -> Result<Option<Update>, CommandError> {
    let Some(update) = arguments.get("update").filter(|_| !remove) else {
        return Ok(None);
    };
    if !matches!(update.type_of(), Type::Document | Type::Array) {
        let message = "Update argument must be either an object or an array";
        return Err(CommandError::new(ErrorCode::FailedToParse, message));
    }
    let update = Update::parse_with(update, array_filters, variables);
    update.map(Some).or_command_error()
}

fn parse_sort(sort: Option<Document<'_>>) -> Result<Option<Sort>, CommandError> {
    let sort = sort.filter(|sort| !sort.is_empty()).map(Sort::parse);
    sort.transpose().or_command_error()
}

fn parse_fields(
    fields: Option<Document<'_>>,
    filter: &Filter,
    environment: &Environment,
) -> Result<Option<Projection>, CommandError> {
    let fields = fields.filter(|fields| !fields.is_empty());
    let fields = fields.map(|fields| Projection::parse_with(fields, filter, environment));
    let fields = fields.transpose().or_command_error()?;
    match &fields {
        Some(fields) if fields.dependencies().sort_key => {
            let message = "Cannot use a $meta sortKey projection in findAndModify commands.";
            Err(CommandError::new(ErrorCode::BadValue, message))
        }
        _ => Ok(fields),
    }
}
