//! `distinct`: the distinct values of a field.

use windrow_document::path::Path;
use windrow_document::{Document, DocumentBuf, ValueRef};
use windrow_mql::expression::DBREF_FIELDS;
use windrow_query::{Distinct, Hint};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command, InTransactions, SnapshotReads};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{Defaults, Examined};
use crate::{collection_uuid, queries, views};

pub const DISTINCT: Command = Command {
    name: "distinct",
    help: "returns the distinct values of a field",
    kind: Kind::Command,
    class: LatencyClass::Read,
    read_concern: true,
    snapshot_reads: SnapshotReads::InReply,
    is_limited_read: |_| true,
    arguments: Accepted::Only(&["collation", "hint", "key", "query"]),
    in_transactions: InTransactions::Allowed,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let body = request.body();
    let source = collection_uuid::source_of_named_collection(request, context)?;
    let default = Defaults::for_command(context, source.collation());
    let of_view = match source.view() {
        Some(_) => Some(views::distinct(context, body, &*source)?),
        None => None,
    };
    let distinct = parse(body, default)?;
    let mut rows = match of_view {
        Some(pipeline) => queries::open_pipeline(context, &pipeline, &source)?,
        None => queries::open_query(context, distinct.find(), &source)?,
    };
    let values = distinct.collect(&mut rows, context.operation);
    if let Some(front) = rows.front() {
        queries::record_first_query(front, context.operation);
    }
    Examined::by(rows.operator()).record(Examined::default(), context.operation);
    let values = values.or_command_error()?;
    let mut reply = DocumentBuf::new();
    reply.push("values", values);
    Ok(Reply::ok(reply))
}

/// Parses the arguments of a distinct command.
pub fn parse(body: Document<'_>, default: Defaults) -> Result<Distinct, CommandError> {
    let arguments = Arguments::within("distinct", body);
    let key = match arguments.get("key") {
        Some(ValueRef::Null) => None,
        _ => arguments.string("key")?,
    };
    let key = key.ok_or_else(|| arguments.missing("key"))?;
    check_key(key)?;
    let environment = default.environment(None, arguments.document("collation")?)?;
    let filter = match arguments.get("query") {
        Some(ValueRef::Null) => None,
        _ => arguments.document("query")?,
    };
    let hint = body.get("hint").map(Hint::parse).transpose();
    Ok(Distinct {
        key: Path::parse(key),
        filter: queries::filter(filter, &environment)?,
        hint: hint.or_command_error()?.flatten(),
    })
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
