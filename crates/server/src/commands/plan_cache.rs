//! `planCacheClear` and the commands of index filters. A plan is chosen anew for each query, so there
//! is nothing to clear; and since no filter can be set, none is ever listed.

use windrow_document::{Document, ValueRef, array, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::{namespace, queries, views};

pub const PLAN_CACHE_CLEAR: Command = Command {
    name: "planCacheClear",
    help: "forgets the plans of a collection's queries",
    run: clear,
    ..OF_SHAPE
};

pub const PLAN_CACHE_CLEAR_FILTERS: Command = Command {
    name: "planCacheClearFilters",
    help: "takes the index filters of a collection's queries away",
    run: clear,
    ..OF_SHAPE
};

pub const PLAN_CACHE_LIST_FILTERS: Command = Command {
    name: "planCacheListFilters",
    help: "lists the index filters of a collection's queries",
    run: list,
    ..Command::EMPTY
};

pub const PLAN_CACHE_SET_FILTER: Command = Command {
    name: "planCacheSetFilter",
    help: "limits the indexes that a query may use",
    arguments: Accepted::Only(&["collation", "indexes", "projection", "query", "sort"]),
    run: set,
    ..Command::EMPTY
};

const OF_SHAPE: Command = Command {
    arguments: Accepted::Only(&["collation", "projection", "query", "sort"]),
    ..Command::EMPTY
};

/// Notes the collection, which must not be a view.
fn look(request: &Request, context: &Context<'_>) -> Result<(), CommandError> {
    let namespace = namespace::named(request)?;
    context.operation.set_namespace(&namespace.to_string());
    views::refuse(context, &namespace)
}

/// Checks the query of a shape; true where one is given. Error 2 for parts of a shape without it.
fn has_shape(arguments: &Arguments<'_>) -> Result<bool, CommandError> {
    let filter = arguments.document("query")?;
    let parts = [
        arguments.document("sort")?,
        arguments.document("projection")?,
    ];
    let parts = parts.into_iter().flatten().any(|part| !part.is_empty());
    arguments.document("collation")?;
    match filter {
        None if parts => Err(bad_value("sort or projection provided without query")),
        None => Ok(false),
        Some(filter) => {
            queries::filter(Some(filter), &queries::environment(None, None)?)?;
            Ok(true)
        }
    }
}

fn bad_value(message: &str) -> CommandError {
    CommandError::new(ErrorCode::BadValue, message)
}

fn clear(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    look(request, context)?;
    has_shape(&Arguments::new(request))?;
    Ok(Reply::ok(doc! {}))
}

fn list(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    look(request, context)?;
    Ok(Reply::ok(doc! { "filters": (array![]) }))
}

fn set(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    look(request, context)?;
    let arguments = Arguments::new(request);
    if !has_shape(&arguments)? {
        return Err(bad_value("required field query missing"));
    }
    let indexes = arguments.array("indexes")?;
    let indexes = indexes.filter(|indexes| !indexes.is_empty());
    let indexes = indexes.ok_or_else(|| bad_value("required field indexes missing or empty"))?;
    let is_index = |index: ValueRef<'_>| match index {
        ValueRef::String(name) => !name.is_empty(),
        other => other
            .as_document()
            .is_some_and(|key: Document<'_>| !key.is_empty()),
    };
    if !indexes.iter().all(is_index) {
        let message = "each item in indexes must be the name or the key of an index";
        return Err(bad_value(message));
    }
    let message = "index filters are not supported: a query's hint says which index it uses";
    Err(CommandError::new(ErrorCode::NotImplemented, message))
}
