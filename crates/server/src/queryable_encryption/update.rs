//! `update` and `findAndModify` of documents with encrypted fields. Both run as a `findAndModify`,
//! which returns which document has changed. Then its tags are set: those of all its encrypted
//! values.

use windrow_collection::{Image, RetainedImage, StatementResult};
use windrow_document::{Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_queryable_encryption::SAFE_CONTENT;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::collections::EncryptedCollection;
use super::payloads;
use super::rewrite::{Rewriter, run_query};
use super::state::{FoundPayload, reader_of};
use super::transaction::{StatementOutcome, run_in_transaction};
use crate::arguments::{Arguments, statements};
use crate::command::{Command, ENCRYPTION_INFORMATION};
use crate::context::Context;
use crate::errors::{OrCommandError, refuse};
use crate::transaction_context::SINGLE_STATEMENT;
use crate::writes;

/// MongoDB's error codes.
const SEVERAL_UPDATES: ErrorCode = ErrorCode(6_371_502);
const MULTI_UPDATE: ErrorCode = ErrorCode(6_371_503);
const PIPELINE_UPDATE: ErrorCode = ErrorCode(6_371_517);
const NEW_VERSION: ErrorCode = ErrorCode(6_371_402);
const FIELDS: ErrorCode = ErrorCode(6_371_408);
const PIPELINE_MODIFICATION: ErrorCode = ErrorCode(6_439_901);

type FindCommand = fn(&str) -> Option<&'static Command>;

/// Runs an `update`.
pub fn update(
    command: &Command,
    request: &Request,
    context: &Context<'_>,
    find_command: FindCommand,
) -> Result<Reply, CommandError> {
    let updates = statements(request, "updates")?;
    writes::check_statement_count(context, updates.count())?;
    let Some(statement) = updates.get(0).filter(|_| updates.count() == 1) else {
        return refuse(
            SEVERAL_UPDATES,
            "an update of encrypted documents has one statement",
        );
    };
    let fields = Arguments::within("update.updates", statement);
    if fields.bool("multi")?.unwrap_or(false) {
        let message = "an update of encrypted documents changes one document, not 'multi'";
        return refuse(MULTI_UPDATE, message);
    }
    if fields
        .get("u")
        .is_some_and(|it| it.type_of() == Type::Array)
    {
        return refuse(PIPELINE_UPDATE, ONLY_DOCUMENTS);
    }
    let retried = context.transaction_context.map(|it| it.is_done(0));
    if retried.transpose()? == Some(true) {
        // The command returns the result of the first execution.
        return run_query(command, request, context, find_command);
    }
    let body = modification_of(request, statement);
    let number = context.transaction_context.map(|it| it.statement(0));
    let storing = ResultStorage {
        number: number.unwrap_or_default(),
        image: RetainedImage::Id,
    };
    let changed = match modify(context, request, body, find_command, storing) {
        Ok((_, changed)) => changed,
        Err(error) if writes::ends_command(&error) => return Err(error),
        Err(error) => {
            let mut errors = writes::WriteErrors::default();
            errors.push(0, &error);
            let mut reply = doc! { "n": 0, "nModified": 0 };
            errors.add_to(&mut reply);
            return Ok(Reply::ok(reply));
        }
    };
    Ok(Reply::ok(changed.into_update_reply()))
}

const ONLY_DOCUMENTS: &str =
    "an update of encrypted documents has modifiers or a replacement, not a pipeline";

/// Returns the `findAndModify` that does the same as a statement of an `update`.
fn modification_of(request: &Request, statement: Document<'_>) -> DocumentBuf {
    let mut body = DocumentBuf::new();
    let name = request
        .body()
        .first()
        .map_or(ValueRef::Null, |(_, name)| name);
    body.push("findAndModify", name);
    for (name, value) in statement {
        let argument = match name {
            "q" => "query",
            "u" => "update",
            "multi" => continue,
            other => other,
        };
        body.push(argument, value);
    }
    for (name, value) in request.body().iter().skip(1) {
        if !matches!(name, "updates" | "ordered" | "collectionUUID") {
            body.push(name, value);
        }
    }
    body
}

/// Runs a `findAndModify`.
pub fn find_and_modify(
    command: &Command,
    request: &Request,
    context: &Context<'_>,
    find_command: FindCommand,
) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    if arguments.get("new").is_some_and(ValueRef::is_truthy) {
        let message = "findAndModify with encryption only supports new: false";
        return refuse(NEW_VERSION, message);
    }
    if arguments
        .document("fields")?
        .is_some_and(|fields| !fields.is_empty())
    {
        return refuse(
            FIELDS,
            "findAndModify of encrypted documents has no 'fields'",
        );
    }
    let update = arguments.get("update");
    if update.is_some_and(|it| it.type_of() == Type::Array) {
        return refuse(PIPELINE_MODIFICATION, ONLY_DOCUMENTS);
    }
    writes::check_statement_count(context, 1)?;
    let before = context
        .transaction_context
        .map(|it| it.stored_single_result());
    let is_done = before.transpose()?.flatten().is_some();
    // A removal changes no counters.
    if is_done || update.is_none() {
        return run_query(command, request, context, find_command);
    }
    let body = request.body().to_buf();
    let storing = ResultStorage {
        number: SINGLE_STATEMENT,
        image: RetainedImage::Before,
    };
    let (reply, _) = modify(context, request, body, find_command, storing)?;
    Ok(reply)
}

/// The options by which the result is stored for a retry.
#[derive(Clone, Copy)]
struct ResultStorage {
    /// The number of the statement.
    number: i32,
    /// The version of the document that a retry returns.
    image: RetainedImage,
}

/// The effect of an update on the document that it found.
#[derive(Default)]
struct ModifiedDocument {
    is_found: bool,
    is_changed: bool,
    /// The `_id` of an inserted document.
    inserted: Option<Value>,
}

impl ModifiedDocument {
    fn into_update_reply(self) -> DocumentBuf {
        let n = i32::from(self.is_found || self.inserted.is_some());
        let mut reply = doc! { "n": n };
        if let Some(id) = self.inserted {
            reply.push(
                "upserted",
                windrow_document::array![{ "index": 0, "_id": id }],
            );
        }
        reply.push("nModified", i32::from(self.is_changed));
        reply
    }
}

/// Runs a `findAndModify` with an update, in a transaction. Returns its reply.
fn modify(
    context: &Context<'_>,
    request: &Request,
    body: DocumentBuf,
    find_command: FindCommand,
    storing: ResultStorage,
) -> Result<(Reply, ModifiedDocument), CommandError> {
    let run = find_command("findAndModify").map(|command| command.run);
    let Some(run) = run else {
        return refuse(
            ErrorCode::CommandNotFound,
            "no such command: 'findAndModify'",
        );
    };
    let body = body.as_document();
    let target = EncryptedCollection::from_command(context, request.database(), body)?;
    target.collection(context)?;
    let update = NewVersion::parse(body, &target)?;
    run_in_transaction(context, storing.number, &|context| {
        let mut rewriter = Rewriter::new(context, &target)?;
        let mut plain = DocumentBuf::new();
        for (name, value) in body {
            match (name, value) {
                (ENCRYPTION_INFORMATION, _) => {}
                ("query", ValueRef::Document(query)) => plain.push(name, rewriter.filter(query)?),
                ("update", _) => plain.push(name, update.stored(context, &target)?),
                _ => plain.push(name, value),
            }
        }
        let reply = run(&request.with_body(plain)?, context)?;
        finish(context, request, &target, run, reply, storing.image)
    })
}

/// Sets the tags of the document that a `findAndModify` has changed.
fn finish(
    context: &Context<'_>,
    request: &Request,
    target: &EncryptedCollection,
    run: crate::command::Run,
    reply: Reply,
    image: RetainedImage,
) -> Result<StatementOutcome<(Reply, ModifiedDocument)>, CommandError> {
    let fields = reply.to_document();
    let old = fields.get("value").and_then(ValueRef::as_document);
    let last = fields
        .get("lastErrorObject")
        .and_then(ValueRef::as_document);
    let inserted = last.and_then(|last| last.get("upserted"));
    let Some(id) = inserted.or_else(|| old?.get("_id")) else {
        return Ok(StatementOutcome {
            value: (reply, ModifiedDocument::default()),
            result: None,
        });
    };
    let new = set_tags(context, request, target, run, id)?;
    let result = match (inserted, image) {
        (Some(id), _) => StatementResult::Inserted(doc! { "_id": id }),
        (None, RetainedImage::Before) => {
            StatementResult::Updated(old.map(|old| Image::Before(old.to_buf())))
        }
        (None, _) => StatementResult::Updated(None),
    };
    let is_found = inserted.is_none();
    let modified = ModifiedDocument {
        is_found,
        is_changed: is_found && old.map(Document::as_bytes) != Some(new.as_bytes()),
        inserted: inserted.map(ValueRef::to_value),
    };
    Ok(StatementOutcome {
        value: (reply, modified),
        result: Some(result),
    })
}

/// Sets the tags of a document to those of its encrypted values. Returns its new version.
fn set_tags(
    context: &Context<'_>,
    request: &Request,
    target: &EncryptedCollection,
    run: crate::command::Run,
    id: ValueRef<'_>,
) -> Result<DocumentBuf, CommandError> {
    let document = read(context, target, id)?;
    let tags = Value::Array(payloads::tags(document.as_document())?);
    let present = document.get(SAFE_CONTENT);
    let has_none = tags.as_ref().as_array().is_some_and(|tags| tags.is_empty());
    if present == Some(tags.as_ref()) || has_none && present.is_none() {
        return Ok(document);
    }
    let body = doc! {
        "findAndModify": (target.namespace.collection.as_str()), "query": { "_id": id },
        "update": { "$set": { SAFE_CONTENT: tags } }, "$db": (request.database()),
    };
    run(&request.with_body(body)?, context)?;
    read(context, target, id)
}

/// Returns the document with this `_id`, as the transaction sees it.
fn read(
    context: &Context<'_>,
    target: &EncryptedCollection,
    id: ValueRef<'_>,
) -> Result<DocumentBuf, CommandError> {
    let collection = target.collection(context)?;
    let found = reader_of(context, &collection)?
        .find(id)
        .or_command_error()?;
    match found {
        Some((_, bytes)) => Ok(Document::from_validated(&bytes).to_buf()),
        None => refuse(
            ErrorCode::InternalError,
            "an updated document has disappeared",
        ),
    }
}

/// The update of a command, with the payloads in it.
struct NewVersion<'u> {
    update: Document<'u>,
    /// `true` if it replaces the document.
    replaces: bool,
    found: Vec<FoundPayload>,
}

impl<'u> NewVersion<'u> {
    fn parse(
        body: Document<'u>,
        target: &EncryptedCollection,
    ) -> Result<NewVersion<'u>, CommandError> {
        let update = body.get("update").and_then(ValueRef::as_document);
        let update = update.unwrap_or(Document::EMPTY);
        let replaces = !update
            .first()
            .is_some_and(|(name, _)| name.starts_with('$'));
        let mut found = Vec::new();
        if replaces {
            found = payloads::collect(update, &target.fields)?;
        } else {
            for (operator, operand) in update {
                let Some(operand) = operand.as_document() else {
                    continue;
                };
                let all = payloads::collect(operand, &target.fields)?;
                if operator != "$set" && !all.is_empty() {
                    let message = format!("{operator} cannot have encrypted values, only $set can");
                    return refuse(ErrorCode::BadValue, message);
                }
                found.extend(all);
            }
        }
        Ok(NewVersion {
            update,
            replaces,
            found,
        })
    }

    /// Returns the update with encrypted values in place of payloads. A replacement has its tags.
    fn stored(
        &self,
        context: &Context<'_>,
        target: &EncryptedCollection,
    ) -> Result<DocumentBuf, CommandError> {
        if self.replaces {
            let stored = payloads::store(context, target, self.update, &self.found)?;
            return payloads::with_tags(stored);
        }
        let mut update = DocumentBuf::new();
        for (operator, operand) in self.update {
            match operand {
                ValueRef::Document(operand) if operator == "$set" => {
                    let stored = payloads::store(context, target, operand, &self.found)?;
                    update.push(operator, stored);
                }
                _ => update.push(operator, operand),
            }
        }
        Ok(update)
    }
}
