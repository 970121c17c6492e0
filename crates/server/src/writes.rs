//! What the commands that write have in common: where they write, what went wrong with which of
//! their statements, and when they are acknowledged.

use std::time::Duration;

use windrow_collection::{DocumentValidation, Done, Namespace};
use windrow_document::{ArrayBuf, Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_query::Hint;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::collection_uuid::Target;
use crate::context::Context;
use crate::errors::{OrCommandError, refuse};
use crate::generic::Statements;
use crate::namespace::check_collection;
use crate::recorder;

/// The collection that a write command names with its first argument.
pub fn collection_name(request: &Request) -> Result<&str, CommandError> {
    let name = match request.body().first() {
        Some((_, ValueRef::String(name) | ValueRef::Symbol(name))) => name,
        other => {
            let found = other.map_or("missing", |(_, value)| value.type_of().name());
            let message = format!("collection name has invalid type {found}");
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
    };
    check_collection(request.database(), name)?;
    Ok(name)
}

/// The namespace that documents are to be written to, once it is sure that it may hold any.
pub fn writable(database: &str, name: &str) -> Result<Namespace, CommandError> {
    let refuse = |code: ErrorCode| {
        let message = format!("cannot write to '{database}.{name}'");
        Err(CommandError::new(code, message))
    };
    if name.starts_with("system.") && !WRITABLE_SYSTEM.contains(&name) {
        return refuse(ErrorCode::InvalidNamespace);
    }
    if name.contains(".system.") {
        return refuse(ErrorCode::BadValue);
    }
    existing(database, name)
}

/// The namespace whose documents are to be changed; one that no collection can have is not found.
fn existing(database: &str, name: &str) -> Result<Namespace, CommandError> {
    if name.contains('$') {
        return Err(CommandError::new(
            ErrorCode::InvalidNamespace,
            format!("Invalid namespace specified '{database}.{name}'"),
        ));
    }
    Ok(Namespace {
        database: database.to_owned(),
        collection: name.to_owned(),
    })
}

/// Fails where a transaction is to write to a collection of the server's own.
pub fn check_in_transaction(
    context: &Context<'_>,
    database: &str,
    name: &str,
) -> Result<(), CommandError> {
    if context.transaction().is_none() || !name.starts_with("system.") {
        return Ok(());
    }
    let message =
        format!("Cannot write to system collection {database}.{name} within a transaction.");
    Err(CommandError::new(SYSTEM_IN_TRANSACTION, message))
}

/// MongoDB's code of writes to system collections within transactions.
const SYSTEM_IN_TRANSACTION: ErrorCode = ErrorCode(50_791);

/// Fails where the numbers of a command's statements are not as many as those are.
pub fn check_statement_count(context: &Context<'_>, count: usize) -> Result<(), CommandError> {
    let numbered = context.generic.numbered.as_ref();
    match numbered.and_then(|numbered| numbered.statements.as_ref()) {
        Some(Statements::Each(each)) if each.len() != count => Err(CommandError::new(
            ErrorCode::InvalidLength,
            format!(
                "Number of statement ids must match the number of batch entries. Got {} statement \
                 ids but operation batch size is {count}",
                each.len()
            ),
        )),
        _ => Ok(()),
    }
}

/// Fails where a write cannot be sent again, since nobody keeps what is done in the database.
pub fn check_can_be_retried(database: &str) -> Result<(), CommandError> {
    match database {
        "local" => Err(CommandError::new(
            ErrorCode::IllegalOperation,
            "Cannot use retryable writes on the database 'local'",
        )),
        _ => Ok(()),
    }
}

/// The collection that a command writes to, which is noted, and its statements. What is wrong with the
/// collection is told before what is wrong with a statement.
pub fn target<S>(
    request: &Request,
    context: &Context<'_>,
    parsed: Result<Vec<S>, CommandError>,
) -> Result<(Target, Vec<S>), CommandError> {
    let (database, name) = (request.database(), collection_name(request)?);
    check_in_transaction(context, database, name)?;
    let namespace = existing(database, name)?;
    context.operation.set_namespace(&namespace.to_string());
    let target = Target::of(namespace, &Arguments::new(request))?;
    let statements = parsed?;
    check_statement_count(context, statements.len())?;
    Ok((target, statements))
}

/// Whether the first statement that fails ends the command: where it does not say otherwise, and always in
/// a transaction, which has failed with it.
pub fn are_ordered(context: &Context<'_>, arguments: &Arguments<'_>) -> Result<bool, CommandError> {
    let ordered = arguments.bool("ordered")?.unwrap_or(true);
    Ok(ordered || context.transaction().is_some())
}

/// Runs a command's statements, each with its number: all of them, or where they are ordered those up to
/// the first that fails.
pub fn each<S>(
    statements: &[S],
    ordered: bool,
    mut run: impl FnMut(usize, &S) -> Result<(), CommandError>,
) -> Result<WriteErrors, CommandError> {
    let mut errors = WriteErrors::default();
    for (number, statement) in statements.iter().enumerate() {
        match run(number, statement) {
            Ok(()) => {}
            Err(error) if ends_command(&error) => return Err(error),
            Err(error) => errors.push(number, &error),
        }
        if ordered && !errors.is_empty() {
            break;
        }
    }
    Ok(errors)
}

/// Runs one statement; one that has been run before, of a retryable write, only answers again. Such a
/// write is of one document. `place`: the statement's number in the command; `run` is given the numbers
/// by which it is remembered.
pub fn once<T>(
    context: &Context<'_>,
    database: &str,
    (place, of_one): (usize, bool),
    again: impl FnOnce(&Done) -> Result<T, CommandError>,
    run: impl FnOnce(&[i32]) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let Some(joined) = context.joined.filter(|it| it.is_retryable_write()) else {
        return run(&[]);
    };
    check_can_be_retried(database)?;
    if let Some(done) = joined.done(place)? {
        return again(&done);
    }
    match of_one {
        true => {
            context.begin_retryable_write()?;
            run(&[joined.statement(place)])
        }
        false => refuse(
            ErrorCode::InvalidOptions,
            "Cannot use (or request) retryable writes with multi=true",
        ),
    }
}

/// Tells of one statement of a command that has ended, where such is told; `describe`: see
/// [`recorder::Statement::details`].
pub fn record(context: &Context<'_>, took: Duration, describe: impl FnOnce() -> DocumentBuf) {
    if recorder::tells_nothing(context.state, took) {
        return;
    }
    let statement = recorder::Statement {
        client: context.client,
        operation: context.operation,
        took,
        details: describe(),
    };
    recorder::record_statement(context.state, &statement);
}

/// Adds a field of a statement as it is told: a hint by a name stands under `$hint`, as MongoDB keeps it.
pub fn tell(told: &mut DocumentBuf, name: &str, value: ValueRef<'_>) {
    match (name, value) {
        ("hint", ValueRef::String(hint)) => told.push(name, doc! { "$hint": hint }),
        _ => told.push(name, value),
    }
}

/// Collections of which clients change no documents: they say what the server does and knows.
const UNCHANGED_SYSTEM: [&str; 2] = ["system.profile", "system.views"];

/// Fails where documents of the collection may not be changed, or with `upsert` none be inserted.
pub fn check_changeable(namespace: &Namespace, upsert: bool) -> Result<(), CommandError> {
    if UNCHANGED_SYSTEM.contains(&namespace.collection.as_str()) {
        let message = format!("cannot write to '{namespace}'");
        return Err(CommandError::new(ErrorCode::InvalidNamespace, message));
    }
    if upsert {
        writable(&namespace.database, &namespace.collection)?;
    }
    Ok(())
}

/// The `hint` of a statement.
pub fn hint(value: Option<ValueRef<'_>>) -> Result<Option<Hint>, CommandError> {
    let hint = value.map(Hint::parse).transpose().or_command_error()?;
    Ok(hint.flatten())
}

/// The `arrayFilters` of a statement.
pub fn array_filters<'a>(arguments: &Arguments<'a>) -> Result<Vec<Document<'a>>, CommandError> {
    let Some(filters) = arguments.array("arrayFilters")? else {
        return Ok(Vec::new());
    };
    let documents = filters.iter().enumerate().map(|(number, filter)| {
        let name = format!("arrayFilters.{number}");
        let wrong = || arguments.wrong_type(&name, filter.type_of(), &[Type::Document]);
        filter.as_document().ok_or_else(wrong)
    });
    documents.collect()
}

/// The collections of MongoDB's own that clients may write to.
const WRITABLE_SYSTEM: &[&str] = &["system.js", "system.users", "system.roles"];

/// Whether the collection's validator is asked: not with `bypassDocumentValidation`.
pub fn validation(arguments: &Arguments<'_>) -> Result<DocumentValidation, CommandError> {
    let bypassed = arguments.flag("bypassDocumentValidation")?;
    Ok(DocumentValidation::bypassed_if(bypassed))
}

/// How a command stores its documents.
#[derive(Clone, Copy)]
pub struct Storing {
    pub validation: DocumentValidation,
    /// Timestamps of zero at the top level stay what they are; else they become the time.
    pub keeps_zero_timestamps: bool,
}

impl Storing {
    pub fn parse(arguments: &Arguments<'_>) -> Result<Storing, CommandError> {
        Ok(Storing {
            validation: validation(arguments)?,
            keeps_zero_timestamps: arguments.bool("bypassEmptyTsReplacement")?.unwrap_or(false),
        })
    }
}

/// The statements of a command that failed, in order.
#[derive(Debug, Default)]
pub struct WriteErrors {
    all: Vec<Value>,
    bytes: usize,
    messages_bytes: usize,
}

impl WriteErrors {
    /// As in MongoDB: those that come after so many bytes of messages have an empty one, but for the first
    /// two.
    const MESSAGES_BYTES_MAX: usize = 1 << 20;
    /// What does not fit so many bytes has its number and code alone, so that the reply stays a document.
    const BYTES_MAX: usize = 8 << 20;
    /// The same for the first.
    const FIRST_BYTES_MAX: usize = 14 << 20;

    /// `{index, code, …, errmsg}`
    pub fn push(&mut self, index: usize, error: &CommandError) {
        let mut entry = DocumentBuf::new();
        entry.push("index", index as i32);
        entry.push("code", error.code.number());
        let room = match self.is_empty() {
            true => Self::FIRST_BYTES_MAX,
            false => Self::BYTES_MAX.saturating_sub(self.bytes),
        };
        if error.extra.as_bytes().len() <= room {
            for (name, value) in error.extra.iter() {
                entry.push(name, value);
            }
        }
        let is_told = self.all.len() < 2 || self.messages_bytes < Self::MESSAGES_BYTES_MAX;
        let message = match is_told && entry.as_bytes().len() + error.message.len() <= room {
            true => &error.message,
            false => "",
        };
        entry.push("errmsg", message);
        self.messages_bytes += message.len();
        self.bytes += entry.as_bytes().len();
        self.all.push(Value::from(entry));
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds itself to a reply, where there are any.
    pub fn add_to(self, reply: &mut DocumentBuf) {
        if !self.all.is_empty() {
            reply.push("writeErrors", Value::from(ArrayBuf::from_iter(self.all)));
        }
    }
}

/// Waits until what was written is as durable as the client wants it, and replies.
pub fn acknowledge(reply: DocumentBuf, context: &Context<'_>) -> Result<Reply, CommandError> {
    sync_if_wanted(context)?;
    Ok(Reply::ok(reply))
}

/// Waits for the disk where the write concern asks for it.
pub fn sync_if_wanted(context: &Context<'_>) -> Result<(), CommandError> {
    if context.generic.write_concern.synced {
        context.operation.wait_on_purpose();
        context.state.services.engine.sync().or_command_error()?;
    }
    Ok(())
}

/// Whether an error ends the whole command, not only the statement that met it: the operation was
/// killed, is over its time, or its transaction cannot go on.
pub fn ends_command(error: &CommandError) -> bool {
    matches!(
        error.code,
        ErrorCode::Interrupted
            | ErrorCode::WriteConflict
            | ErrorCode::LockTimeout
            | ErrorCode::IncompleteTransactionHistory
            | ErrorCode(40_638)
            | ErrorCode::SnapshotUnavailable
            | ErrorCode::TransactionTooLarge
            | ErrorCode::TransactionTooLargeForCache
            | ErrorCode::InterruptedAtShutdown
            | ErrorCode::MaxTimeMSExpired
            | ErrorCode::ClientMarkedKilled
            | ErrorCode::ClientDisconnect
    )
}
