//! `count`: the number of matching documents.

use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_query::operators::Operator;
use windrow_query::{Count, Hint, Source};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{Defaults, Examined};
use crate::{collection_uuid, queries, views};

pub const COUNT: Command = Command {
    name: "count",
    help: "counts the documents of a collection that match a query",
    kind: Kind::Command,
    class: LatencyClass::Read,
    read_concern: true,
    is_limited_read: |_| true,
    in_api_version_1: true,
    arguments: Accepted::Only(&[
        "collation",
        "fields",
        "hint",
        "limit",
        "query",
        "queryOptions",
        "skip",
    ]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let body = request.body();
    let source = collection_uuid::source_of_named_collection(request, context)?;
    let number = match source.view() {
        Some(_) => count_view(context, body, &source)?,
        None => {
            let count = parse(body, Defaults::for_command(context, source.collation()))?;
            let mut examined = Examined::default();
            let note = |operator: &dyn Operator| examined = Examined::by(operator);
            let number = count.run(&source, context.operation, note);
            examined.record(Examined::default(), context.operation);
            queries::record_plan(&count.find(), &*source, context.operation);
            number.or_command_error()?
        }
    };
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    Ok(Reply::ok(match i32::try_from(number) {
        Ok(small) => doc! { "n": small },
        Err(_) => doc! { "n": number },
    }))
}

fn count_view(
    context: &Context<'_>,
    body: Document<'_>,
    source: &Arc<dyn Source>,
) -> Result<u64, CommandError> {
    // Invalid arguments have the same errors as for a collection.
    let simple = body.iter().filter(|(name, _)| *name != "collation");
    let defaults = Defaults::for_command(context, None);
    parse(simple.collect::<DocumentBuf>().as_document(), defaults)?;
    let mut rows =
        queries::open_pipeline(context, &views::count(context, body, &**source)?, source)?;
    rows.count(context.operation).or_command_error()
}

/// Parses the arguments of a count command.
pub fn parse(body: Document<'_>, default: Defaults) -> Result<Count, CommandError> {
    let arguments = Arguments::within("count", body);
    let environment = default.environment(None, arguments.document("collation")?)?;
    let filter = match arguments.get("query") {
        Some(ValueRef::Null) => None,
        _ => arguments.document("query")?,
    };
    let hint = body.get("hint").map(Hint::parse).transpose();
    // In `find`, a negative limit is a limit and closes the cursor. A count has no cursor, so the
    // sign is ignored.
    let limit = whole(body, "limit")?.unwrap_or(0);
    let limit = limit.checked_abs().ok_or_else(|| {
        let message = format!("Invalid value for limit: {limit}");
        CommandError::new(ErrorCode::BadValue, message)
    })?;
    let limit = limit.unsigned_abs();
    Ok(Count {
        filter: queries::filter(filter, &environment)?,
        skip: arguments.count("skip")?.unwrap_or(0),
        limit: (limit > 0).then_some(limit),
        hint: hint.or_command_error()?.flatten(),
    })
}

/// A number without a fraction.
fn whole(body: Document<'_>, name: &str) -> Result<Option<i64>, CommandError> {
    let Some(value) = body.get(name) else {
        return Ok(None);
    };
    if !value.is_number() {
        let message = format!("{name} value is not a valid number");
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    value.as_whole().map(Some).ok_or_else(|| {
        let message = format!("Expected an integer: {name}: {value}");
        CommandError::new(ErrorCode::FailedToParse, message)
    })
}
