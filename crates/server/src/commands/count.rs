//! `count`: the number of matching documents.

use std::sync::Arc;

use windrow_access::Action;
use windrow_document::{Document, ValueRef, doc};
use windrow_query::operators::Operator;
use windrow_query::{Count, Source};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::latency::LatencyClass;
use crate::metrics::Kind;
use crate::queries::{Defaults, ExaminedCounts};
use crate::queryable_encryption;
use crate::views::{self, ViewQuery};
use crate::{collection_uuid, queries};

pub const COUNT: Command = Command {
    name: "count",
    help: "counts the documents of a collection that match a query",
    needs: Needs::OnCollection(&[Action::find]),
    kind: Kind::Command,
    class: LatencyClass::Read,
    read_concern: true,
    is_limited_read: |_| true,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&[
        "collation",
        "fields",
        "hint",
        "limit",
        "query",
        "queryOptions",
        "skip",
    ]),
    encrypted: Some(queryable_encryption::run_query),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let source = collection_uuid::source_of_named_collection(request, context)?;
    let request = CountRequest::parse(request.body())?;
    let number = if source.view().is_some() {
        count_view(context, request, &source)?
    } else {
        let count = request.count(Defaults::for_command(context, source.collation()))?;
        let mut examined = ExaminedCounts::default();
        let record = |operator: &dyn Operator| examined = ExaminedCounts::from_operator(operator);
        let number = count.run(&source, context.operation, record);
        examined.record(ExaminedCounts::default(), context.operation);
        queries::record_plan(&count.find(), &*source, context.operation);
        number.or_command_error()?
    };
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    Ok(Reply::ok(match i32::try_from(number) {
        Ok(small) => doc! { "n": small },
        Err(_) => doc! { "n": number },
    }))
}

fn count_view(
    context: &Context<'_>,
    request: CountRequest<'_>,
    source: &Arc<dyn Source>,
) -> Result<u64, CommandError> {
    // Invalid arguments have the same errors as for a collection.
    let simple = CountRequest {
        collation: None,
        ..request
    };
    simple.count(Defaults::for_command(context, None))?;
    let aggregate = views::aggregate(context, request.view_query(), &**source)?;
    let mut rows = queries::open_pipeline(context, &aggregate, source)?;
    rows.count(context.operation).or_command_error()
}

/// A parsed `count`.
#[derive(Clone, Copy)]
pub struct CountRequest<'a> {
    filter: Option<Document<'a>>,
    collation: Option<Document<'a>>,
    hint: Option<ValueRef<'a>>,
    skip: u64,
    limit: u64,
}

impl<'a> CountRequest<'a> {
    /// Parses the arguments of a count command.
    pub fn parse(command: Document<'a>) -> Result<CountRequest<'a>, CommandError> {
        let arguments = Arguments::within("count", command);
        // In `find`, a negative limit is a limit and closes the cursor. A count has no cursor, so
        // the sign is ignored.
        let limit = whole(&arguments, "limit")?.unwrap_or(0);
        let limit = limit.checked_abs().ok_or_else(|| {
            let message = format!("Invalid value for limit: {limit}");
            CommandError::new(ErrorCode::BadValue, message)
        })?;
        Ok(CountRequest {
            filter: arguments.document("query")?,
            collation: arguments.document("collation")?,
            hint: arguments.get("hint"),
            skip: arguments.count("skip")?.unwrap_or(0),
            limit: limit.unsigned_abs(),
        })
    }

    /// Returns the count. `default` has the collation of the collection.
    pub fn count(&self, default: Defaults) -> Result<Count, CommandError> {
        let environment = default.environment(None, self.collation)?;
        Ok(Count {
            filter: queries::filter(self.filter, &environment)?,
            skip: self.skip,
            limit: (self.limit > 0).then_some(self.limit),
            hint: queries::hint(self.hint)?,
        })
    }

    /// Returns the query of a view whose documents are counted.
    pub fn view_query(&self) -> ViewQuery<'a> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        ViewQuery {
            filter: self.filter,
            skip: number(self.skip),
            limit: number(self.limit),
            hint: self.hint,
            collation: self.collation,
            ..ViewQuery::default()
        }
    }
}

/// Returns a number without a fraction.
fn whole(arguments: &Arguments<'_>, name: &str) -> Result<Option<i64>, CommandError> {
    let Some(value) = arguments.get(name) else {
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
