//! `distinct`: the distinct values of a field.

use windrow_access::Action;
use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_mql::expression::DBREF_FIELDS;
use windrow_query::Distinct;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, InTransactions, SnapshotReads};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{Defaults, ExaminedCounts};
use crate::queryable_encryption;
use crate::views::{self, ViewQuery};
use crate::{collection_uuid, queries};

pub const DISTINCT: Command = Command {
    name: "distinct",
    help: "returns the distinct values of a field",
    needs: Needs::OnCollection(&[Action::find]),
    kind: Kind::Command,
    class: LatencyClass::Read,
    read_concern: true,
    snapshot_reads: SnapshotReads::InReply,
    is_limited_read: |_| true,
    arguments: AcceptedArguments::Only(&["collation", "hint", "key", "query"]),
    in_transactions: InTransactions::Allowed,
    encrypted: Some(queryable_encryption::run_query),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let source = collection_uuid::source_of_named_collection(request, context)?;
    let request = DistinctRequest::parse(request.body())?;
    let pipeline = match source.view() {
        Some(_) => Some(views::aggregate(context, request.view_query(), &*source)?),
        None => None,
    };
    let distinct = request.distinct(Defaults::for_command(context, source.collation()))?;
    let mut rows = match pipeline {
        Some(pipeline) => queries::open_pipeline(context, &pipeline, &source)?,
        None => queries::open_query(context, distinct.find(), &source)?,
    };
    let values = distinct.collect(&mut rows, context.operation);
    if let Some(front) = rows.planned_find() {
        queries::record_first_query(front, context.operation);
    }
    ExaminedCounts::from_operator(rows.operator())
        .record(ExaminedCounts::default(), context.operation);
    let values = values.or_command_error()?;
    let mut reply = DocumentBuf::new();
    reply.push("values", values);
    Ok(Reply::ok(reply))
}

/// A parsed `distinct`.
pub struct DistinctRequest<'a> {
    key: &'a str,
    filter: Option<Document<'a>>,
    collation: Option<Document<'a>>,
    hint: Option<ValueRef<'a>>,
}

impl<'a> DistinctRequest<'a> {
    /// Parses the arguments of a distinct command.
    pub fn parse(command: Document<'a>) -> Result<DistinctRequest<'a>, CommandError> {
        let arguments = Arguments::within("distinct", command);
        let key = arguments.string("key")?;
        let key = key.ok_or_else(|| arguments.missing("key"))?;
        check_key(key)?;
        Ok(DistinctRequest {
            key,
            filter: arguments.document("query")?,
            collation: arguments.document("collation")?,
            hint: arguments.get("hint"),
        })
    }

    /// Returns the query. `default` has the collation of the collection.
    pub fn distinct(&self, default: Defaults) -> Result<Distinct, CommandError> {
        let environment = default.environment(None, self.collation)?;
        Ok(Distinct {
            key: Path::parse(self.key),
            filter: queries::filter(self.filter, &environment)?,
            hint: queries::hint(self.hint)?,
        })
    }

    /// Returns the query of a view whose documents contain the values.
    pub fn view_query(&self) -> ViewQuery<'a> {
        ViewQuery {
            filter: self.filter,
            hint: self.hint,
            collation: self.collation,
            ..ViewQuery::default()
        }
    }
}

fn check_key(key: &str) -> Result<(), CommandError> {
    let refuse = |code: i32, what: &str| {
        Err(CommandError::new(
            ErrorCode(code),
            format!("{what}: '{key}'"),
        ))
    };
    if key.is_empty() {
        return refuse(40352, "FieldPath cannot be constructed with empty string");
    }
    let is_wrong = |part: &str| part.starts_with('$') && !DBREF_FIELDS.contains(&part);
    if key.split('.').any(is_wrong) {
        return refuse(16410, "FieldPath field names may not start with '$'");
    }
    if key.contains('\0') {
        return refuse(31032, "FieldPath field names may not contain '\\0'");
    }
    if key.ends_with('.') {
        return refuse(40353, "FieldPath must not end with a '.'");
    }
    if key.split('.').any(str::is_empty) {
        return refuse(15998, "FieldPath field names may not be empty strings");
    }
    Ok(())
}
