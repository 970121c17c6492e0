//! `insert`: inserts the documents of a request, in one buffer.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use windrow_collection::{Error as CollectionError, Kept};
use windrow_document::{ArrayBuf, DocumentBuf, Value};
use windrow_wire::{CommandError, ErrorCode, Reply, Request, RequestDocuments};

use crate::arguments::{Arguments, statements};
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{Accepted, Command, InTransactions};
use crate::context::Context;
use crate::errors::{IntoCommandError, OrCommandError};
use crate::insert_preparation::{self, InsertChunk, PreparedInsert};
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::transaction_context::TransactionContext;
use crate::writes::{self, StorageOptions, WriteErrors, acknowledge, collection_name, writable};
use crate::{namespace, views};

pub const INSERT: Command = Command {
    name: "insert",
    help: "inserts documents into a collection",
    kind: Kind::Insert,
    class: LatencyClass::Write,
    write_concern: true,
    in_api_version_1: true,
    in_transactions: InTransactions::Allowed,
    retryable: true,
    check: |request| statements(request, "documents").map(drop),
    arguments: Accepted::Only(&[
        "bypassDocumentValidation",
        "bypassEmptyTsReplacement",
        COLLECTION_UUID,
        "documents",
        "ordered",
    ]),
    run,
    ..Command::EMPTY
};

/// Maximum number of attempts if the collection is dropped during an insert.
const ATTEMPTS: usize = 10;

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let name = collection_name(request)?;
    let ordered = writes::are_ordered(context, &arguments)?;
    let storing = StorageOptions::parse(&arguments)?;
    let how = InsertOptions { ordered, storing };
    let documents = statements(request, "documents")?;
    writes::check_in_transaction(context, request.database(), name)?;
    let namespace = writable(request.database(), name)?;
    context.operation.set_namespace(&namespace.to_string());
    let target = Target::from_arguments(namespace, &arguments)?;
    writes::check_statement_count(context, documents.count())?;
    let (count, failed) = insert_once(context, &target, &documents, (0, how))?;
    let mut errors = WriteErrors::default();
    failed
        .iter()
        .for_each(|(number, error)| errors.push(*number, error));
    context.operation.record("ninserted", count as i32);
    let mut reply = DocumentBuf::new();
    reply.push("n", count as i32);
    errors.add_to(&mut reply);
    acknowledge(reply, context)
}

/// Fails if documents cannot be inserted into this namespace.
fn can_hold(context: &Context<'_>, target: &Target) -> Result<(), CommandError> {
    if target.uuid().is_some() {
        target.collection(context)?;
    }
    writable(&target.namespace.database, &target.namespace.collection)?;
    namespace::check_length(&target.namespace)?;
    views::refuse(context, &target.namespace)
}

/// The options of an insert.
#[derive(Clone, Copy)]
pub struct InsertOptions {
    /// `true` if the insert stops at the first failure.
    pub ordered: bool,
    pub storing: StorageOptions,
}

/// The indexes of the documents that could not be inserted, with their errors.
pub type InsertFailures = Vec<(usize, CommandError)>;

/// Inserts documents. Returns the number of inserted documents, and the failures. Documents that an
/// earlier attempt of a retryable write has inserted are only counted. `place` is the index of the
/// first document in its command.
pub fn insert_once(
    context: &Context<'_>,
    target: &Target,
    documents: &RequestDocuments<'_>,
    (place, how): (usize, InsertOptions),
) -> Result<(usize, InsertFailures), CommandError> {
    let Some(transaction_context) = context
        .transaction_context
        .filter(|it| it.is_retryable_write())
    else {
        return insert(context, target, documents, how, &|_| 0);
    };
    if let Err(error) = writes::check_can_be_retried(&target.namespace.database) {
        target.collection_or_create(context)?;
        return Ok((0, vec![(0, error)]));
    }
    let mut is_done = Vec::with_capacity(documents.count());
    for number in 0..documents.count() {
        is_done.push(transaction_context.stored_result(place + number)?.is_some());
    }
    if !is_done.contains(&true) {
        let statement = |number: usize| transaction_context.statement(place + number);
        return insert(context, target, documents, how, &statement);
    }
    let (mut count, mut all_failed) = (0, InsertFailures::new());
    for (number, document) in documents.iter().enumerate() {
        if is_done.get(number) == Some(&true) {
            count += 1;
            continue;
        }
        let alone: ArrayBuf = std::iter::once(Value::from(document.to_buf())).collect();
        let alone = RequestDocuments::from_array(alone.as_array(), "insert.documents")?;
        let statement = |_| transaction_context.statement(place + number);
        let (inserted, failed) = insert(context, target, &alone, how, &statement)?;
        count += inserted;
        all_failed.extend(failed.into_iter().map(|(_, error)| (number, error)));
        if how.ordered && !all_failed.is_empty() {
            break;
        }
    }
    Ok((count, all_failed))
}

/// An error of the collection as the failure of each document that would be tried.
fn all_refused(
    documents: &RequestDocuments<'_>,
    how: InsertOptions,
    error: &CommandError,
) -> InsertFailures {
    let tried = if how.ordered { 1 } else { documents.count() };
    (0..tried).map(|number| (number, error.clone())).collect()
}

/// Inserts documents. Returns their number and the failures. `statement` is the statement number of
/// a document in a retryable write.
fn insert(
    context: &Context<'_>,
    target: &Target,
    documents: &RequestDocuments<'_>,
    how: InsertOptions,
    statement: &dyn Fn(usize) -> i32,
) -> Result<(usize, InsertFailures), CommandError> {
    let inserts = &context.state.metrics.inserts;
    inserts.fetch_add(documents.count() as u64, Relaxed);
    // Each document is a statement.
    let begin = || (0..documents.count()).try_for_each(|_| context.begin_retryable_write());
    if let Err(error) = can_hold(context, target).and_then(|()| begin()) {
        return Ok((0, all_refused(documents, how, &error)));
    }
    let prepared = insert_preparation::prepare(
        documents,
        (how.ordered, how.storing.keeps_zero_timestamps),
        &context.state.object_ids,
    );
    let prepared = prepared.or_command_error()?;
    match insert_prepared(context, target, prepared, how, statement) {
        Err(error) if error.code == ErrorCode::DatabaseDifferCase => {
            Ok((0, all_refused(documents, how, &error)))
        }
        inserted => inserted,
    }
}

fn insert_prepared(
    context: &Context<'_>,
    target: &Target,
    prepared: PreparedInsert,
    how: InsertOptions,
    statement: &dyn Fn(usize) -> i32,
) -> Result<(usize, InsertFailures), CommandError> {
    let mut count = 0;
    let mut failed = InsertFailures::new();
    for chunk in &prepared.chunks {
        context.check()?;
        let bytes = prepared.bytes.slice(chunk.range.clone());
        let mut numbers = Vec::new();
        if context
            .transaction_context
            .is_some_and(TransactionContext::is_retryable_write)
        {
            let places = 0..chunk.count;
            numbers.extend(places.map(|it| statement(chunk.number(&prepared.numbers, it))));
        }
        let inserted = match insert_chunk(context, target, bytes, (how, &numbers)) {
            Ok(inserted) => inserted,
            // Documents that were inserted stay, so the client must learn their number.
            Err(error) if count > 0 && !writes::ends_command(&error) => {
                failed.push((chunk.number(&prepared.numbers, 0), error));
                break;
            }
            Err(error) => return Err(error),
        };
        count += inserted.count;
        failed.extend(numbered(inserted.errors, chunk, &prepared.numbers));
        if how.ordered && !failed.is_empty() {
            break;
        }
    }
    if !how.ordered || failed.is_empty() {
        failed.extend(prepared.refused);
        failed.sort_by_key(|(number, _)| *number);
    }
    Ok((count, failed))
}

/// The errors of a batch, with the indexes of their documents in the command.
fn numbered<'p>(
    errors: Vec<(usize, CollectionError)>,
    chunk: &'p InsertChunk,
    numbers: &'p [u32],
) -> impl Iterator<Item = (usize, CommandError)> + 'p {
    errors
        .into_iter()
        .map(|(place, error)| (chunk.number(numbers, place), error.into_command_error()))
}

fn insert_chunk(
    context: &Context<'_>,
    target: &Target,
    documents: Bytes,
    (how, numbers): (InsertOptions, &[i32]),
) -> Result<windrow_collection::Inserted, CommandError> {
    let mut attempts = 0;
    let saving = context.saving(how.storing.validation, numbers, Kept::Id);
    let terms = context.terms(saving);
    loop {
        let collection = target.collection_or_create(context)?;
        attempts += 1;
        match collection.insert_on(documents.clone(), how.ordered, &terms) {
            Err(CollectionError::NamespaceNotFound(_)) if attempts < ATTEMPTS => {}
            other => return other.or_command_error(),
        }
    }
}
