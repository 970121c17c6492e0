//! `insert`: inserts the documents of a request, in one buffer.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use windrow_access::Action;
use windrow_collection::{Error as CollectionError, InsertOrder, RetainedImage};
use windrow_document::{ArrayBuf, DocumentBuf, Value};
use windrow_wire::{CommandError, ErrorCode, Reply, Request, RequestDocuments};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::{Arguments, statements};
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{AcceptedArguments, Command, InTransactions};
use crate::context::Context;
use crate::errors::{IntoCommandError, OrCommandError};
use crate::insert_preparation::{self, PreparedInsert};
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queryable_encryption;
use crate::transaction_context::TransactionContext;
use crate::writes::{self, StorageOptions, WriteErrors, writable};
use crate::{namespace, views};

pub const INSERT: Command = Command {
    name: "insert",
    help: "inserts documents into a collection",
    needs: Needs::Computed(requirement),
    kind: Kind::Insert,
    class: LatencyClass::Write,
    write_concern: true,
    in_api_version_1: true,
    in_transactions: InTransactions::Allowed,
    retryable: true,
    check: |request| statements(request, "documents").map(drop),
    arguments: AcceptedArguments::Only(&[
        "bypassDocumentValidation",
        "bypassEmptyTsReplacement",
        COLLECTION_UUID,
        "documents",
        "ordered",
    ]),
    encrypted: Some(queryable_encryption::insert),
    run,
    ..Command::EMPTY
};

fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let mut actions = vec![Action::insert];
    if request.flag("bypassDocumentValidation") {
        actions.push(Action::bypassDocumentValidation);
    }
    request.on_collection(&actions)
}

/// Maximum number of attempts if the collection is dropped during an insert.
const ATTEMPTS: usize = 10;

/// A parsed `insert`.
struct InsertRequest<'a> {
    target: Target,
    options: InsertOptions,
    documents: RequestDocuments<'a>,
}

impl<'a> InsertRequest<'a> {
    /// Parses a request and records the use of its collection.
    fn parse(
        request: &'a Request,
        context: &Context<'_>,
    ) -> Result<InsertRequest<'a>, CommandError> {
        let arguments = Arguments::new(request);
        let database = request.database();
        let name = namespace::collection_name(database, request.body(), ErrorCode::BadValue)?;
        let options = InsertOptions {
            ordered: writes::are_ordered(context, &arguments)?,
            storage: StorageOptions::parse(&arguments)?,
        };
        let documents = statements(request, "documents")?;
        writes::check_in_transaction(context, database, name)?;
        let namespace = writable(database, name)?;
        context.operation.set_namespace(&namespace.to_string());
        let target = Target::from_arguments(namespace, &arguments)?;
        writes::check_statement_count(context, documents.count())?;
        Ok(InsertRequest {
            target,
            options,
            documents,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let InsertRequest {
        target,
        options,
        documents,
    } = InsertRequest::parse(request, context)?;
    let inserted = insert_once(context, &target, &documents, 0, options)?;
    let mut errors = WriteErrors::default();
    for failure in &inserted.failures {
        errors.push(failure.index, &failure.error);
    }
    let count = inserted.count as i32;
    context.operation.record("ninserted", count);
    let mut reply = DocumentBuf::new();
    reply.push("n", count);
    errors.add_to(&mut reply);
    Ok(Reply::ok(reply))
}

/// Fails if documents cannot be inserted into this namespace.
fn check_insertable(context: &Context<'_>, target: &Target) -> Result<(), CommandError> {
    if target.uuid().is_some() {
        target.collection(context)?;
    }
    writable(&target.namespace.database, &target.namespace.collection)?;
    namespace::check_length(&target.namespace)?;
    views::refuse_view(context, &target.namespace)
}

/// The options of an insert.
#[derive(Clone, Copy)]
pub struct InsertOptions {
    /// `true` if the insert stops at the first failure.
    pub ordered: bool,
    pub storage: StorageOptions,
}

/// The result of an insert.
#[derive(Default)]
pub struct InsertResult {
    /// The number of inserted documents.
    pub count: usize,
    /// The documents that could not be inserted, in order.
    pub failures: Vec<InsertFailure>,
}

/// A document that could not be inserted.
pub struct InsertFailure {
    /// The index of the document.
    pub index: usize,
    pub error: CommandError,
}

/// Inserts documents. Documents that an earlier attempt of a retryable write has inserted are only
/// counted. `first` is the index of the first document in its command.
pub fn insert_once(
    context: &Context<'_>,
    target: &Target,
    documents: &RequestDocuments<'_>,
    first: usize,
    options: InsertOptions,
) -> Result<InsertResult, CommandError> {
    let Some(write) = context
        .transaction_context
        .filter(|it| it.is_retryable_write())
    else {
        return insert(context, target, documents, options, &|_| 0);
    };
    if let Err(error) = writes::check_can_be_retried(&target.namespace.database) {
        target.collection_or_create(context)?;
        return Ok(InsertResult {
            count: 0,
            failures: vec![InsertFailure { index: 0, error }],
        });
    }
    let mut is_done = Vec::with_capacity(documents.count());
    for index in 0..documents.count() {
        is_done.push(write.stored_result(first + index)?.is_some());
    }
    if !is_done.contains(&true) {
        let statement = |index: usize| write.statement(first + index);
        return insert(context, target, documents, options, &statement);
    }
    let mut result = InsertResult::default();
    for (index, document) in documents.iter().enumerate() {
        if is_done.get(index) == Some(&true) {
            result.count += 1;
            continue;
        }
        let single: ArrayBuf = std::iter::once(Value::from(document.to_buf())).collect();
        let single = RequestDocuments::from_array(single.as_array(), "insert.documents")?;
        let statement = |_| write.statement(first + index);
        let inserted = insert(context, target, &single, options, &statement)?;
        result.count += inserted.count;
        let failures = inserted.failures.into_iter();
        result
            .failures
            .extend(failures.map(|failure| InsertFailure { index, ..failure }));
        if options.ordered && !result.failures.is_empty() {
            break;
        }
    }
    Ok(result)
}

/// Returns the result if an error of the collection is the failure of each document that would be
/// tried.
fn refuse_all(
    documents: &RequestDocuments<'_>,
    options: InsertOptions,
    error: &CommandError,
) -> InsertResult {
    let tried = if options.ordered {
        1
    } else {
        documents.count()
    };
    let failure = |index| InsertFailure {
        index,
        error: error.clone(),
    };
    InsertResult {
        count: 0,
        failures: (0..tried).map(failure).collect(),
    }
}

/// Inserts documents. `statement` returns the statement number of a document in a retryable write.
fn insert(
    context: &Context<'_>,
    target: &Target,
    documents: &RequestDocuments<'_>,
    options: InsertOptions,
    statement: &dyn Fn(usize) -> i32,
) -> Result<InsertResult, CommandError> {
    let inserts = &context.state.metrics.inserts;
    inserts.fetch_add(documents.count() as u64, Relaxed);
    // Each document is a statement.
    let begin = || (0..documents.count()).try_for_each(|_| context.begin_retryable_write());
    if let Err(error) = check_insertable(context, target).and_then(|()| begin()) {
        return Ok(refuse_all(documents, options, &error));
    }
    let prepared = insert_preparation::prepare(
        documents,
        options.ordered,
        options.storage.keeps_zero_timestamps,
        &context.state.object_ids,
    );
    let prepared = prepared.or_command_error()?;
    match insert_prepared(context, target, prepared, options, statement) {
        Err(error) if error.code == ErrorCode::DatabaseDifferCase => {
            Ok(refuse_all(documents, options, &error))
        }
        inserted => inserted,
    }
}

fn insert_prepared(
    context: &Context<'_>,
    target: &Target,
    prepared: PreparedInsert,
    options: InsertOptions,
    statement: &dyn Fn(usize) -> i32,
) -> Result<InsertResult, CommandError> {
    let is_retryable = context
        .transaction_context
        .is_some_and(TransactionContext::is_retryable_write);
    let mut result = InsertResult::default();
    for chunk in &prepared.chunks {
        context.check()?;
        let bytes = prepared.bytes.slice(chunk.range.clone());
        let index = |place: usize| chunk.number(&prepared.numbers, place);
        let mut numbers = Vec::new();
        if is_retryable {
            numbers.extend((0..chunk.count).map(|place| statement(index(place))));
        }
        let inserted = match insert_chunk(context, target, bytes, options, &numbers) {
            Ok(inserted) => inserted,
            // Documents that were inserted stay, so the client must learn their number.
            Err(error) if result.count > 0 && !writes::ends_command(&error) => {
                let index = index(0);
                result.failures.push(InsertFailure { index, error });
                break;
            }
            Err(error) => return Err(error),
        };
        result.count += inserted.count;
        let errors = inserted.errors.into_iter();
        result.failures.extend(errors.map(|refused| InsertFailure {
            index: index(refused.index),
            error: refused.error.into_command_error(),
        }));
        if options.ordered && !result.failures.is_empty() {
            break;
        }
    }
    if !options.ordered || result.failures.is_empty() {
        let refused = prepared.refused.into_iter();
        let refused = refused.map(|(index, error)| InsertFailure { index, error });
        result.failures.extend(refused);
        result.failures.sort_by_key(|failure| failure.index);
    }
    Ok(result)
}

/// Inserts the documents of a chunk. `numbers` are their statement numbers in a retryable write.
fn insert_chunk(
    context: &Context<'_>,
    target: &Target,
    documents: Bytes,
    options: InsertOptions,
    numbers: &[i32],
) -> Result<windrow_collection::InsertResult, CommandError> {
    let order = if options.ordered {
        InsertOrder::Ordered
    } else {
        InsertOrder::Unordered
    };
    let mut attempts = 0;
    let saving = context.saving(options.storage.validation, numbers, RetainedImage::Id);
    let write_options = context.write_options(saving);
    loop {
        let collection = target.collection_or_create(context)?;
        attempts += 1;
        match collection.insert_with(documents.clone(), order, &write_options) {
            Err(CollectionError::NamespaceNotFound(_)) if attempts < ATTEMPTS => {}
            other => return other.or_command_error(),
        }
    }
}
