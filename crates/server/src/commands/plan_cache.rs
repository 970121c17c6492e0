//! `planCacheClear` and the commands of index filters.

use std::sync::Arc;

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, Collation, Document, DocumentBuf, Value, ValueRef, doc};
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Find, IndexFilter, IndexName, Shape};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{collation, namespace, queries, views};

pub const PLAN_CACHE_CLEAR: Command = Command {
    name: "planCacheClear",
    help: "forgets the plans of a collection's queries",
    run: clear,
    ..OF_SHAPE
};

pub const PLAN_CACHE_CLEAR_FILTERS: Command = Command {
    name: "planCacheClearFilters",
    help: "takes the index filters of a collection's queries away",
    run: clear_filters,
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
fn look(request: &Request, context: &Context<'_>) -> Result<Namespace, CommandError> {
    let namespace = namespace::named(request)?;
    context.operation.set_namespace(&namespace.to_string());
    views::refuse(context, &namespace)?;
    Ok(namespace)
}

/// A query of the shape that is given; None where none is. Error 2 for parts of a shape without it.
fn parse_shape(
    arguments: &Arguments<'_>,
    default: Option<Arc<Collation>>,
) -> Result<Option<Find>, CommandError> {
    let filled = |name: &str| -> Result<Option<Document<'_>>, CommandError> {
        let document = arguments.document(name)?;
        Ok(document.filter(|document| !document.is_empty()))
    };
    let filter = arguments.document("query")?;
    let (sort, projection) = (filled("sort")?, filled("projection")?);
    let own = arguments.document("collation")?;
    let Some(filter) = filter else {
        return match sort.or(projection) {
            Some(_) => Err(bad_value("sort or projection provided without query")),
            None => Ok(None),
        };
    };
    let collation = collation::of(own, default)?;
    let environment = queries::environment(None, collation.clone())?;
    let filter = queries::filter(Some(filter), &environment)?;
    let projection =
        projection.map(|projection| Projection::parse_with(projection, &filter, &environment));
    let sort = sort.map(Sort::parse).transpose().or_command_error()?;
    Ok(Some(Find {
        projection: projection.transpose().or_command_error()?,
        sort: sort.map(|sort| sort.with_collation(collation)),
        ..Find::of(filter)
    }))
}

fn bad_value(message: &str) -> CommandError {
    CommandError::new(ErrorCode::BadValue, message)
}

/// The collection that is named, and the shape of the query; None where none is given.
fn shape(
    request: &Request,
    context: &Context<'_>,
) -> Result<(Namespace, Option<Shape>), CommandError> {
    let namespace = look(request, context)?;
    let default = collation::default_of(context, &namespace);
    let find = parse_shape(&Arguments::new(request), default)?;
    Ok((namespace, find.map(|find| find.shape())))
}

fn clear(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let (namespace, shape) = shape(request, context)?;
    let plans = &context.state.guidance.plans;
    plans.clear(&namespace.to_string(), shape.as_ref());
    Ok(Reply::ok(doc! {}))
}

fn clear_filters(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let (namespace, shape) = shape(request, context)?;
    let (namespace, guidance) = (namespace.to_string(), &context.state.guidance);
    guidance
        .restrictions
        .clear_filters(&namespace, shape.as_ref());
    guidance.plans.clear(&namespace, shape.as_ref());
    Ok(Reply::ok(doc! {}))
}

fn list(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = look(request, context)?;
    let filters = context
        .state
        .guidance
        .restrictions
        .filters(&namespace.to_string());
    let filters: ArrayBuf = filters.iter().map(shown).collect();
    Ok(Reply::ok(doc! { "filters": filters }))
}

fn shown(filter: &IndexFilter) -> Value {
    let mut document = doc! {
        "query": (filter.query.clone()),
        "sort": (filter.sort.clone()),
        "projection": (filter.projection.clone()),
    };
    if let Some(collation) = &filter.collation {
        document.push("collation", collation.clone());
    }
    let indexes = filter.indexes.iter().map(|index| match index {
        IndexName::Name(name) => Value::from(name.as_str()),
        IndexName::Key(key) => Value::from(key.clone()),
    });
    document.push("indexes", indexes.collect::<ArrayBuf>());
    document.into()
}

fn set(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = look(request, context)?;
    let arguments = Arguments::new(request);
    let default = collation::default_of(context, &namespace);
    let Some(find) = parse_shape(&arguments, default)? else {
        return Err(bad_value("required field query missing"));
    };
    let given = |name: &str| -> Result<DocumentBuf, CommandError> {
        let document = arguments.document(name)?;
        Ok(document.unwrap_or(Document::EMPTY).to_buf())
    };
    let filter = IndexFilter {
        shape: find.shape(),
        query: given("query")?,
        sort: given("sort")?,
        projection: given("projection")?,
        collation: arguments.document("collation")?.map(Document::to_buf),
        indexes: parse_indexes(&arguments)?,
    };
    let (namespace, guidance) = (namespace.to_string(), &context.state.guidance);
    guidance.plans.clear(&namespace, Some(&filter.shape));
    guidance.restrictions.set_filter(&namespace, filter);
    Ok(Reply::ok(doc! {}))
}

fn parse_indexes(arguments: &Arguments<'_>) -> Result<Vec<IndexName>, CommandError> {
    let indexes = arguments.array("indexes")?;
    let indexes = indexes.filter(|indexes| !indexes.is_empty());
    let indexes = indexes.ok_or_else(|| bad_value("required field indexes missing or empty"))?;
    let read = |index: ValueRef<'_>| match index {
        ValueRef::String(name) if !name.is_empty() => Some(IndexName::Name(name.to_owned())),
        ValueRef::Document(key) if !key.is_empty() => Some(IndexName::Key(key.to_buf())),
        _ => None,
    };
    let all: Option<Vec<IndexName>> = indexes.iter().map(read).collect();
    all.ok_or_else(|| bad_value("each item in indexes must be the name or the key of an index"))
}
