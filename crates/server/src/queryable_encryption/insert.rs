//! `insert` of documents with encrypted fields: each document is a transaction.

use windrow_collection::StatementResult;
use windrow_document::{ArrayBuf, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::collections::EncryptedCollection;
use super::payloads;
use super::transaction::{StatementOutcome, run_in_transaction};
use crate::arguments::{Arguments, statements};
use crate::command::{Command, ENCRYPTION_INFORMATION};
use crate::context::Context;
use crate::insert_preparation::with_id_in_front;
use crate::writes::{self, StorageOptions};

/// Runs an `insert`.
pub fn insert(
    command: &Command,
    request: &Request,
    context: &Context<'_>,
    _: fn(&str) -> Option<&'static Command>,
) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let target = EncryptedCollection::from_command(context, request.database(), request.body())?;
    let ordered = writes::are_ordered(context, &arguments)?;
    let keeps_zero = StorageOptions::parse(&arguments)?.keeps_zero_timestamps;
    let documents = statements(request, "documents")?;
    writes::check_statement_count(context, documents.count())?;
    let documents: Vec<Document<'_>> = documents.iter().collect();
    let mut count = 0;
    let errors = writes::run_each(&documents, ordered, |index, document| {
        let before = context
            .transaction_context
            .map(|it| it.stored_result(index));
        if before.transpose()?.flatten().is_none() {
            let ids = &context.state.object_ids;
            let document = with_id_in_front(*document, ids, keeps_zero);
            insert_one(
                command,
                request,
                context,
                &target,
                index,
                document.as_document(),
            )?;
        }
        count += 1;
        Ok(())
    })?;
    context.operation.record("ninserted", count);
    let mut reply = doc! { "n": count };
    errors.add_to(&mut reply);
    Ok(Reply::ok(reply))
}

fn insert_one(
    command: &Command,
    request: &Request,
    context: &Context<'_>,
    target: &EncryptedCollection,
    index: usize,
    document: Document<'_>,
) -> Result<(), CommandError> {
    target.collection(context)?;
    let found = payloads::collect(document, &target.fields)?;
    let number = context.transaction_context.map(|it| it.statement(index));
    run_in_transaction(context, number.unwrap_or_default(), &|context| {
        let stored = payloads::store(context, target, document, &found)?;
        let stored = payloads::with_tags(stored)?;
        let id = doc! { "_id": (document.get("_id").unwrap_or(ValueRef::Null)) };
        let body = body_of_one(request, stored);
        let reply = (command.run)(&request.with_body(body)?, context)?;
        check_reply(&reply)?;
        Ok(StatementOutcome {
            value: (),
            result: Some(StatementResult::Inserted(id)),
        })
    })
}

/// Returns the body of the request for one document.
fn body_of_one(request: &Request, document: DocumentBuf) -> DocumentBuf {
    let mut body = DocumentBuf::new();
    for (name, value) in request.body() {
        if !matches!(name, "documents" | ENCRYPTION_INFORMATION) {
            body.push(name, value);
        }
    }
    let one: ArrayBuf = std::iter::once(Value::from(document)).collect();
    body.push("documents", Value::Array(one));
    body
}

/// Fails with the first error of a write.
fn check_reply(reply: &Reply) -> Result<(), CommandError> {
    let reply = reply.to_document();
    let errors = reply.get("writeErrors").and_then(ValueRef::as_array);
    let error = errors.and_then(|errors| errors.get(0)?.as_document());
    let Some(error) = error else {
        return Ok(());
    };
    let code = error.get("code").and_then(ValueRef::as_whole).unwrap_or(1);
    let message = error.get("errmsg").and_then(ValueRef::as_str);
    let mut failure = CommandError::new(ErrorCode(code as i32), message.unwrap_or_default());
    for (name, value) in error {
        if !matches!(name, "index" | "code" | "errmsg") {
            failure.extra.push(name, value);
        }
    }
    Err(failure)
}
