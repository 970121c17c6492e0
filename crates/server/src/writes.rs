//! Common parts of writing commands: their namespaces, the errors of their statements, and the
//! acknowledgement.

use std::time::Duration;

use windrow_collection::{DocumentValidation, Namespace, StatementResult};
use windrow_document::{ArrayBuf, Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Request};

use crate::arguments::Arguments;
use crate::collection_uuid::Target;
use crate::common_arguments::StatementNumbers;
use crate::context::Context;
use crate::errors::refuse;
use crate::namespace;
use crate::recorder;

/// Returns the namespace of documents to insert. Fails if it cannot contain any.
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

/// Returns the namespace of documents to change. An invalid name is not refused: no collection has
/// it.
fn existing(database: &str, name: &str) -> Result<Namespace, CommandError> {
    if name.contains('$') {
        return Err(CommandError::new(
            ErrorCode::InvalidNamespace,
            format!("Invalid namespace specified '{database}.{name}'"),
        ));
    }
    Ok(namespace::new(database, name))
}

/// Fails if a transaction writes to an internal collection.
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

/// MongoDB's error code for writes to system collections in transactions.
const SYSTEM_IN_TRANSACTION: ErrorCode = ErrorCode(50_791);

/// Fails if the number of statement numbers differs from the number of statements.
pub fn check_statement_count(context: &Context<'_>, count: usize) -> Result<(), CommandError> {
    let numbered = context.common.numbered.as_ref();
    match numbered.and_then(|numbered| numbered.statements.as_ref()) {
        Some(StatementNumbers::Each(each)) if each.len() != count => Err(CommandError::new(
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

/// Fails if a write cannot be retried, because results in this database are not stored.
pub fn check_can_be_retried(database: &str) -> Result<(), CommandError> {
    match database {
        "local" => Err(CommandError::new(
            ErrorCode::IllegalOperation,
            "Cannot use retryable writes on the database 'local'",
        )),
        _ => Ok(()),
    }
}

/// A parsed `update` or `delete` with statements of type `S`.
pub struct WriteRequest<'a, S> {
    /// The collection that it writes to.
    pub target: Target,
    /// See [`are_ordered`].
    pub ordered: bool,
    pub storage: StorageOptions,
    /// The variables of `let`.
    pub variables: Option<Document<'a>>,
    pub statements: Vec<S>,
}

impl<'a, S> WriteRequest<'a, S> {
    /// Parses a request and records the use of its collection. Errors of the collection come before
    /// those of the statements, which `parse_statements` parses.
    pub fn parse(
        request: &'a Request,
        context: &Context<'_>,
        parse_statements: impl FnOnce(&'a Request) -> Result<Vec<S>, CommandError>,
    ) -> Result<WriteRequest<'a, S>, CommandError> {
        let arguments = Arguments::new(request);
        let database = request.database();
        let name = namespace::collection_name(database, request.body(), ErrorCode::BadValue)?;
        let ordered = are_ordered(context, &arguments)?;
        let storage = StorageOptions::parse(&arguments)?;
        let variables = arguments.document("let")?;
        check_in_transaction(context, database, name)?;
        let namespace = existing(database, name)?;
        context.operation.set_namespace(&namespace.to_string());
        let target = Target::from_arguments(namespace, &arguments)?;
        let statements = parse_statements(request)?;
        check_statement_count(context, statements.len())?;
        Ok(WriteRequest {
            target,
            ordered,
            storage,
            variables,
            statements,
        })
    }
}

/// Returns `true` if the first failing statement ends the command: by default, and always in a
/// transaction, which fails with it.
pub fn are_ordered(context: &Context<'_>, arguments: &Arguments<'_>) -> Result<bool, CommandError> {
    let ordered = arguments.bool("ordered")?.unwrap_or(true);
    Ok(ordered || context.transaction().is_some())
}

/// Runs the statements of a command, each with its index: all of them, or if they are ordered those
/// up to the first failure.
pub fn run_each<S>(
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

/// Runs one statement. A retry of a statement that was executed before only returns its result.
/// Only statements that change one document (`is_single`) can be retried. `index` is that of the
/// statement in the command. `run` gets the numbers under which the result is stored.
pub fn run_once<T>(
    context: &Context<'_>,
    database: &str,
    index: usize,
    is_single: bool,
    again: impl FnOnce(&StatementResult) -> Result<T, CommandError>,
    run: impl FnOnce(&[i32]) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let Some(transaction_context) = context
        .transaction_context
        .filter(|it| it.is_retryable_write())
    else {
        return run(&[]);
    };
    check_can_be_retried(database)?;
    if let Some(done) = transaction_context.stored_result(index)? {
        return again(&done);
    }
    if !is_single {
        let message = "Cannot use (or request) retryable writes with multi=true";
        return refuse(ErrorCode::InvalidOptions, message);
    }
    context.begin_retryable_write()?;
    run(&[transaction_context.statement(index)])
}

/// Records a statement that has ended, if it is recorded at all: not if it has tags. See
/// `recorder::EndedStatement::details` for `describe`.
pub fn record(context: &Context<'_>, took: Duration, describe: impl FnOnce() -> DocumentBuf) {
    if context.hides_arguments || recorder::is_unrecorded(context.state, took) {
        return;
    }
    let statement = recorder::EndedStatement {
        client: context.client,
        operation: context.operation,
        took,
        details: describe(),
    };
    recorder::record_statement(context.state, &statement);
}

/// Adds a field of a statement to its record. A hint by name is stored as `$hint`, as in MongoDB.
pub fn push_field(record: &mut DocumentBuf, name: &str, value: ValueRef<'_>) {
    match (name, value) {
        ("hint", ValueRef::String(hint)) => record.push(name, doc! { "$hint": hint }),
        _ => record.push(name, value),
    }
}

/// Internal collections whose documents clients cannot change.
const UNCHANGED_SYSTEM: [&str; 2] = ["system.profile", "system.views"];

/// Fails if documents of the collection cannot be changed or, with `upsert`, inserted.
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

/// Returns the `arrayFilters` of a statement.
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

/// System collections that clients can write to.
const WRITABLE_SYSTEM: &[&str] = &["system.js", "system.users", "system.roles"];

/// Returns the validation of documents. With `bypassDocumentValidation`, the validator of the
/// collection is not evaluated.
pub fn validation(arguments: &Arguments<'_>) -> Result<DocumentValidation, CommandError> {
    let bypassed = arguments.flag("bypassDocumentValidation")?;
    Ok(DocumentValidation::from_bypass(bypassed))
}

/// The options by which a command stores its documents.
#[derive(Clone, Copy)]
pub struct StorageOptions {
    pub validation: DocumentValidation,
    /// `true` if zero timestamps at the top level are kept. Otherwise they become the current time.
    pub keeps_zero_timestamps: bool,
}

impl StorageOptions {
    pub fn parse(arguments: &Arguments<'_>) -> Result<StorageOptions, CommandError> {
        Ok(StorageOptions {
            validation: validation(arguments)?,
            keeps_zero_timestamps: arguments.bool("bypassEmptyTsReplacement")?.unwrap_or(false),
        })
    }
}

/// The failed statements of a command, in order.
#[derive(Debug, Default)]
pub struct WriteErrors {
    all: Vec<Value>,
    bytes: usize,
    messages_bytes: usize,
}

impl WriteErrors {
    /// Maximum bytes of all messages, as in MongoDB. Further messages are empty, except for the
    /// first two.
    const MESSAGES_BYTES_MAX: usize = 1 << 20;
    /// Maximum bytes of all errors. Further errors only have their index and code, so that the
    /// reply fits in a document.
    const BYTES_MAX: usize = 8 << 20;
    /// Maximum bytes of the first error.
    const FIRST_BYTES_MAX: usize = 14 << 20;

    /// Adds `{index, code, …, errmsg}`.
    pub fn push(&mut self, index: usize, error: &CommandError) {
        let mut entry = DocumentBuf::new();
        entry.push("index", index as i32);
        entry.push("code", error.code.number());
        let room = if self.is_empty() {
            Self::FIRST_BYTES_MAX
        } else {
            Self::BYTES_MAX.saturating_sub(self.bytes)
        };
        if error.extra.as_bytes().len() <= room {
            for (name, value) in error.extra.iter() {
                entry.push(name, value);
            }
        }
        let has_message = self.all.len() < 2 || self.messages_bytes < Self::MESSAGES_BYTES_MAX;
        let message = if has_message && entry.as_bytes().len() + error.message.len() <= room {
            &error.message
        } else {
            ""
        };
        entry.push("errmsg", message);
        self.messages_bytes += message.len();
        self.bytes += entry.as_bytes().len();
        self.all.push(Value::from(entry));
    }

    /// Returns `true` if no statement has failed.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds the errors to a reply, if there are any.
    pub fn add_to(self, reply: &mut DocumentBuf) {
        if !self.all.is_empty() {
            reply.push("writeErrors", Value::from(ArrayBuf::from_iter(self.all)));
        }
    }
}

/// Returns `true` if an error ends the whole command and not only its statement: the operation was
/// killed, exceeded its time limit, or its transaction cannot continue.
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
