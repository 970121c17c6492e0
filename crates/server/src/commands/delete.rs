//! `delete`: removes matching documents.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use windrow_access::Action;
use windrow_collection::{Change, DocumentValidation, RetainedImage};
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_query::{Find, Hint};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::{Arguments, statements};
use crate::changes::{self, Tally};
use crate::collection_uuid::{COLLECTION_UUID, Target};
use crate::command::{AcceptedArguments, Command, InTransactions};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{self, Defaults, ExaminedCounts};
use crate::queryable_encryption;
use crate::views;
use crate::writes::{self, WriteRequest};

pub const DELETE: Command = Command {
    name: "delete",
    help: "deletes documents of a collection",
    needs: Needs::OnCollection(&[Action::remove]),
    kind: Kind::Delete,
    class: LatencyClass::Write,
    write_concern: true,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&[
        "bypassDocumentValidation",
        COLLECTION_UUID,
        "deletes",
        "let",
        "ordered",
    ]),
    in_transactions: InTransactions::Allowed,
    retryable: true,
    check: |request| parse_statements(request).map(drop),
    encrypted: Some(queryable_encryption::run_query),
    run,
    ..Command::EMPTY
};

/// The fields of a statement.
const FIELDS: &[&str] = &["q", "limit", "collation", "hint"];

/// The fields of a delete in a bulk write.
const BULK_WRITE_FIELDS: &[&str] = &["delete", "filter", "multi", "collation", "hint"];

/// One of `deletes`, with checked types.
pub struct DeleteStatement<'a> {
    /// The statement as sent.
    source: Document<'a>,
    filter: Document<'a>,
    one: bool,
    collation: Option<Document<'a>>,
    hint: Option<Hint>,
}

/// Parses the statements of a command.
fn parse_statements(request: &Request) -> Result<Vec<DeleteStatement<'_>>, CommandError> {
    let deletes = statements(request, "deletes")?;
    deletes.iter().map(DeleteStatement::parse).collect()
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let request = WriteRequest::parse(request, context, parse_statements)?;
    let (mut count, mut examined) = (0, ExaminedCounts::default());
    let errors = writes::run_each(&request.statements, request.ordered, |index, statement| {
        let started = Instant::now();
        let tally = run_once(
            context,
            &request.target,
            index,
            statement,
            request.variables,
        )?;
        statement.record(context, &tally, started.elapsed());
        count += tally.changed;
        examined += tally.examined;
        Ok(())
    })?;
    examined.record(ExaminedCounts::default(), context.operation);
    context.operation.record("ndeleted", count as i64);
    let mut reply = DocumentBuf::new();
    reply.push("n", count as i32);
    errors.add_to(&mut reply);
    Ok(Reply::ok(reply))
}

/// Runs the statement with this index in its command, with the command's `let`. See
/// [`writes::run_once`].
pub fn run_once(
    context: &Context<'_>,
    target: &Target,
    index: usize,
    statement: &DeleteStatement<'_>,
    variables: Option<Document<'_>>,
) -> Result<Tally, CommandError> {
    let before = Tally {
        matched: 1,
        changed: 1,
        ..Tally::default()
    };
    let run = |numbers: &[i32]| run_statement(context, target, statement, numbers, variables);
    let database = &target.namespace.database;
    writes::run_once(context, database, index, statement.one, |_| Ok(before), run)
}

/// Runs one statement. `numbers` is its number in a retryable write.
fn run_statement(
    context: &Context<'_>,
    target: &Target,
    statement: &DeleteStatement<'_>,
    numbers: &[i32],
    variables: Option<Document<'_>>,
) -> Result<Tally, CommandError> {
    context.state.metrics.deletes.fetch_add(1, Relaxed);
    writes::check_changeable(&target.namespace, false)?;
    let existing = target.collection(context)?;
    views::refuse_view(context, &target.namespace)?;
    let collation = existing.as_ref().and_then(|existing| existing.collation());
    let find = statement.find(variables, Defaults::for_command(context, collation))?;
    let Some(collection) = existing else {
        let nothing = target.source(context)?;
        return find
            .open(&nothing)
            .map(|_| Tally::default())
            .or_command_error();
    };
    let mut decide = |_: Document<'_>| Ok(Change::Delete);
    let change = if statement.one {
        changes::change_one
    } else {
        changes::change_all
    };
    let saving = context.saving(DocumentValidation::Enabled, numbers, RetainedImage::Id);
    change(context, &collection, &find, saving, &mut decide)
}

impl<'a> DeleteStatement<'a> {
    /// Parses a statement of `deletes`.
    pub fn parse(statement: Document<'a>) -> Result<DeleteStatement<'a>, CommandError> {
        let fields = Arguments::within("delete.deletes", statement);
        fields.only(FIELDS)?;
        let filter = fields.document("q")?.ok_or_else(|| fields.missing("q"))?;
        let limit = fields.get("limit").ok_or_else(|| fields.missing("limit"))?;
        Ok(DeleteStatement {
            source: statement,
            filter,
            one: read_limit(limit)?,
            collation: fields.document("collation")?,
            hint: queries::hint(fields.get("hint"))?,
        })
    }

    /// Parses a delete of a bulk write.
    pub fn parse_bulk_write(operation: Document<'a>) -> Result<DeleteStatement<'a>, CommandError> {
        let fields = Arguments::within("bulkWrite.delete", operation);
        fields.only(BULK_WRITE_FIELDS)?;
        let filter = fields.document("filter")?;
        Ok(DeleteStatement {
            source: operation,
            filter: filter.ok_or_else(|| fields.missing("filter"))?,
            one: !fields.bool("multi")?.unwrap_or(false),
            collation: fields.document("collation")?,
            hint: queries::hint(fields.get("hint"))?,
        })
    }

    /// Records the result in the log, the profile and the metrics.
    fn record(&self, context: &Context<'_>, tally: &Tally, took: Duration) {
        writes::record(context, took, || {
            let mut command = DocumentBuf::new();
            for (name, value) in self.source {
                writes::push_field(&mut command, name, value);
            }
            doc! {
                "type": "remove", "command": command,
                "keysExamined": (tally.examined.keys as i64),
                "docsExamined": (tally.examined.documents as i64),
                "ndeleted": (tally.changed as i64),
            }
        });
    }

    /// Returns the query for the documents to delete. `default` has the collation of the
    /// collection.
    pub fn find(
        &self,
        variables: Option<Document<'_>>,
        default: Defaults,
    ) -> Result<Find, CommandError> {
        let environment = default.environment(variables, self.collation)?;
        let filter = queries::filter(Some(self.filter), &environment)?;
        Ok(Find {
            hint: self.hint.clone(),
            limit: self.one.then_some(1),
            ..Find::new(filter)
        })
    }
}

/// Parses `limit`: `true` for 1, `false` for 0.
fn read_limit(limit: ValueRef<'_>) -> Result<bool, CommandError> {
    match limit.as_f64() {
        Some(1.0) => Ok(true),
        Some(0.0) => Ok(false),
        _ => Err(CommandError::new(
            ErrorCode::FailedToParse,
            format!("The limit field in delete objects must be 0 or 1. Got {limit}"),
        )),
    }
}
