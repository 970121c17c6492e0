//! `find`: the documents that match.

use windrow_collection::Namespace;
use windrow_document::{Document, Type, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::{Accepted, Command};
use crate::context::Context;
use crate::cursors::{self, CursorOptions, CursorOwner, FIRST_BATCH_COUNT, FirstBatch};
use crate::errors::OrCommandError;
use crate::metrics::Kind;
use crate::scan::{Scan, Search};

pub const FIND: Command = Command {
    name: "find",
    help: "finds documents in a collection",
    kind: Kind::Query,
    read_concern: true,
    in_api_version_1: true,
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let body = request.body();
    let Some((_, ValueRef::String(name))) = body.first() else {
        return Err(CommandError::new(
            ErrorCode::FailedToParse,
            "collection name has invalid type",
        ));
    };
    crate::namespace::check_collection(request.database(), name)?;
    let document = |field: &str| {
        body.get(field)
            .and_then(ValueRef::as_document)
            .unwrap_or(Document::EMPTY)
    };
    let number = |field: &str| body.get(field).and_then(crate::arguments::truncated);
    let filter = Filter::parse(document("filter")).or_command_error()?;
    let projection = match document("projection") {
        empty if empty.is_empty() => None,
        projection => Some(Projection::parse(projection, &filter).or_command_error()?),
    };
    let sort = match document("sort") {
        empty if empty.is_empty() => None,
        sort => Some(Sort::parse(sort).or_command_error()?),
    };
    let limit = number("limit")
        .filter(|limit| *limit > 0)
        .map(|limit| limit as u64);
    let skip = number("skip").unwrap_or(0).max(0) as u64;
    let search = Search {
        filter,
        projection,
        sort,
        skip,
        limit,
    };
    let namespace = Namespace {
        database: request.database().to_owned(),
        collection: name.to_owned(),
    };
    let text = namespace.to_string();
    context.operation.set_namespace(&text);
    let Some(collection) = context.state.services.engine.collection(&namespace) else {
        let cursor = doc! { "id": 0i64, "ns": (text), "firstBatch": [] };
        return Ok(Reply::ok(doc! { "cursor": cursor }));
    };
    let reader = collection.reader().or_command_error()?;
    let source = Scan::open(&reader, search, context.operation)?;
    let owner = CursorOwner {
        namespace: text,
        session: context.generic.session,
        options: CursorOptions::default(),
        command: body.to_buf(),
    };
    let single = body
        .get("singleBatch")
        .is_some_and(|it| it.type_of() == Type::Bool && it.is_truthy());
    let limit = number("batchSize").map_or(FIRST_BATCH_COUNT, |size| size.max(0) as usize);
    cursors::reply(
        context,
        owner,
        Box::new(source),
        FirstBatch { limit, single },
    )
}
