//! `planCacheClear` and the commands of index filters.

use std::sync::Arc;

use windrow_access::Action;
use windrow_collection::{Collection, CollectionUuid, Namespace};
use windrow_document::{ArrayBuf, Document, Value, ValueRef, doc};
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;
use windrow_query::{Find, IndexFilter, IndexName, Shape, ShapeParts};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::queries::Defaults;
use crate::{namespace, queries, views};

pub const PLAN_CACHE_CLEAR: Command = Command {
    name: "planCacheClear",
    help: "removes cached plans of a collection's queries",
    needs: Needs::OnCollection(&[Action::planCacheWrite]),
    run: clear,
    ..OF_SHAPE
};

pub const PLAN_CACHE_CLEAR_FILTERS: Command = Command {
    name: "planCacheClearFilters",
    help: "removes index filters of a collection's queries",
    needs: Needs::OnCollection(&[Action::planCacheIndexFilter]),
    run: clear_filters,
    ..OF_SHAPE
};

pub const PLAN_CACHE_LIST_FILTERS: Command = Command {
    name: "planCacheListFilters",
    help: "lists the index filters of a collection's queries",
    needs: Needs::OnCollection(&[Action::planCacheIndexFilter]),
    arguments: AcceptedArguments::Only(&[]),
    run: list,
    ..OF_SHAPE
};

pub const PLAN_CACHE_SET_FILTER: Command = Command {
    name: "planCacheSetFilter",
    help: "sets an index filter: the indexes that a query may use",
    needs: Needs::OnCollection(&[Action::planCacheIndexFilter]),
    arguments: AcceptedArguments::Only(&["collation", "indexes", "projection", "query", "sort"]),
    run: set,
    ..OF_SHAPE
};

const OF_SHAPE: Command = Command {
    arguments: AcceptedArguments::Only(&["collation", "projection", "query", "sort"]),
    ..Command::EMPTY
};

/// Returns the collection that the command names, if it exists. Fails if the name is that of a
/// view.
fn find_collection(
    request: &Request,
    context: &Context<'_>,
) -> Result<(Namespace, Option<Arc<Collection>>), CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    views::refuse_view(context, &namespace)?;
    let collection = context.collection(&namespace)?;
    Ok((namespace, collection))
}

/// Those arguments that select queries, as sent.
struct QueryArguments<'a> {
    query: Option<Document<'a>>,
    sort: Option<Document<'a>>,
    projection: Option<Document<'a>>,
    collation: Option<Document<'a>>,
}

impl<'a> QueryArguments<'a> {
    fn parse(body: Document<'a>) -> Result<QueryArguments<'a>, CommandError> {
        let collation = part(body, "collation", "optional")?;
        if collation.is_some_and(Document::is_empty) {
            return Err(bad_value(
                "optional field collation cannot be an empty object",
            ));
        }
        Ok(QueryArguments {
            query: part(body, "query", "required")?,
            sort: part(body, "sort", "optional")?,
            projection: part(body, "projection", "optional")?,
            collation,
        })
    }

    /// Returns a query with the shape. `None` if the arguments contain none. Fails with 2 if they
    /// contain only a part of a shape.
    fn find(&self, default: Defaults) -> Result<Option<Find>, CommandError> {
        let Some(filter) = self.query else {
            let parts = self.sort.or(self.projection).or(self.collation);
            let message = "sort, projection, or collation provided without query";
            return parts.map_or(Ok(None), |_| Err(bad_value(message)));
        };
        let filled = |part: Option<Document<'a>>| part.filter(|part| !part.is_empty());
        let environment = default.environment(None, self.collation)?;
        let collation = environment.collation.clone();
        let filter = queries::filter(Some(filter), &environment)?;
        let projection = filled(self.projection)
            .map(|projection| Projection::parse_with(projection, &filter, &environment));
        let sort = filled(self.sort).map(Sort::parse);
        let sort = sort.transpose().or_command_error()?;
        Ok(Some(Find {
            projection: projection.transpose().or_command_error()?,
            sort: sort.map(|sort| sort.with_collation(collation)),
            ..Find::new(filter)
        }))
    }
}

/// Returns an object in the command. An array counts as an object.
fn part<'a>(
    body: Document<'a>,
    name: &str,
    need: &str,
) -> Result<Option<Document<'a>>, CommandError> {
    match body.get(name) {
        None => Ok(None),
        Some(ValueRef::Document(document)) => Ok(Some(document)),
        Some(ValueRef::Array(array)) => Ok(Some(array.as_document())),
        Some(_) => Err(bad_value(&format!("{need} field {name} must be an object"))),
    }
}

fn bad_value(message: &str) -> CommandError {
    CommandError::new(ErrorCode::BadValue, message)
}

/// The queries that a command selects: those of one collection and one shape.
struct NamedQueries {
    collection: CollectionUuid,
    /// `None` selects all shapes.
    shape: Option<Shape>,
}

/// Parses the queries. Returns `None` without checking the shape if there is no such collection.
fn named_queries(
    request: &Request,
    context: &Context<'_>,
) -> Result<Option<NamedQueries>, CommandError> {
    let (namespace, Some(collection)) = find_collection(request, context)? else {
        return Ok(None);
    };
    let default = Defaults::for_collection(context, &namespace)?;
    let find = QueryArguments::parse(request.body())?.find(default)?;
    Ok(Some(NamedQueries {
        collection: collection.uuid(),
        shape: find.map(|find| find.shape()),
    }))
}

fn clear(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    if let Some(queries) = named_queries(request, context)? {
        let plans = &context.state.planner_settings.plans;
        plans.clear(queries.collection, queries.shape.as_ref());
    }
    Ok(Reply::ok(doc! {}))
}

fn clear_filters(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    if let Some(NamedQueries { collection, shape }) = named_queries(request, context)? {
        let planner_settings = &context.state.planner_settings;
        let restrictions = &planner_settings.restrictions;
        restrictions.clear_filters(collection, shape.as_ref());
        planner_settings.plans.clear(collection, shape.as_ref());
    }
    Ok(Reply::ok(doc! {}))
}

fn list(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let (_, collection) = find_collection(request, context)?;
    let restrictions = &context.state.planner_settings.restrictions;
    let filters = collection.map(|it| restrictions.filters(it.uuid()));
    let filters: ArrayBuf = filters.iter().flatten().map(shown).collect();
    Ok(Reply::ok(doc! { "filters": filters }))
}

fn shown(filter: &IndexFilter) -> Value {
    let mut document = filter.parts.to_document();
    let indexes = filter.indexes.iter().map(|index| match index {
        IndexName::Name(name) => Value::from(name.as_str()),
        IndexName::Key(key) => Value::from(key.clone()),
    });
    document.push("indexes", indexes.collect::<ArrayBuf>());
    document.into()
}

fn set(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let (namespace, Some(collection)) = find_collection(request, context)? else {
        return Err(bad_value("no such collection"));
    };
    let indexes = parse_indexes(request.get("indexes"))?;
    let given = QueryArguments::parse(request.body())?;
    let default = Defaults::for_collection(context, &namespace)?;
    let (Some(query), Some(find)) = (given.query, given.find(default)?) else {
        return Err(bad_value("required field query missing"));
    };
    let or_empty = |part: Option<Document<'_>>| part.unwrap_or(Document::EMPTY).to_buf();
    let filter = IndexFilter {
        shape: find.shape(),
        parts: ShapeParts {
            query: query.to_buf(),
            sort: or_empty(given.sort),
            projection: or_empty(given.projection),
            collation: given.collation.map(Document::to_buf),
        },
        indexes,
    };
    let (uuid, planner_settings) = (collection.uuid(), &context.state.planner_settings);
    planner_settings.plans.clear(uuid, Some(&filter.shape));
    planner_settings.restrictions.set_filter(uuid, filter);
    Ok(Reply::ok(doc! {}))
}

fn parse_indexes(given: Option<ValueRef<'_>>) -> Result<Vec<IndexName>, CommandError> {
    let Some(given) = given else {
        return Err(bad_value("required field indexes missing"));
    };
    let ValueRef::Array(indexes) = given else {
        return Err(bad_value("required field indexes must be an array"));
    };
    if indexes.is_empty() {
        let message = "required field indexes must contain at least one index";
        return Err(bad_value(message));
    }
    indexes.iter().map(parse_index).collect()
}

fn parse_index(index: ValueRef<'_>) -> Result<IndexName, CommandError> {
    match index {
        ValueRef::String("") => Err(bad_value("Index name cannot be empty")),
        ValueRef::String(name) => Ok(IndexName::Name(name.to_owned())),
        ValueRef::Document(key) if key.is_empty() => {
            Err(bad_value("index specification cannot be empty"))
        }
        ValueRef::Document(key) => Ok(IndexName::Key(key.to_buf())),
        _ => Err(bad_value(
            "each item in indexes must be an object or a string",
        )),
    }
}
