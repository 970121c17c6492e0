//! `createSearchIndexes`: builds search indexes on a collection.

use windrow_access::Action;
use windrow_collection::Collection;
use windrow_document::{Document, Type, Value, ValueRef, doc};
use windrow_index::search::SearchDefinition;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::clock::now_millis;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, search_indexes, views};

pub const CREATE_SEARCH_INDEXES: Command = Command {
    name: "createSearchIndexes",
    help: "builds search indexes for $search",
    needs: Needs::OnCollection(&[Action::createSearchIndexes]),
    write_concern: true,
    arguments: AcceptedArguments::Only(&["indexes"]),
    run,
    ..Command::EMPTY
};

/// The name of an index without a name.
const DEFAULT_NAME: &str = "default";

/// Maximum number of search indexes of a collection.
const INDEXES_MAX: usize = 64;

/// The path of the indexes in errors.
const PATH: &str = "createSearchIndexes.indexes";

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let definitions = parse(request, context)?;
    let missing = || format!("Collection '{namespace}' does not exist.");
    let collection = views::collection(context, &namespace, missing)?;
    check_new(&collection, &definitions)?;
    let created = definitions.iter().map(|one| {
        let described = doc! { "id": (one.id.to_string()), "name": one.name.as_str() };
        Value::from(described)
    });
    let reply = doc! { "indexesCreated": (created.collect::<Vec<Value>>()) };
    search_indexes::build(context, &collection, definitions)?;
    Ok(Reply::ok(reply))
}

fn parse(request: &Request, context: &Context<'_>) -> Result<Vec<SearchDefinition>, CommandError> {
    let arguments = Arguments::new(request);
    let indexes = arguments.array("indexes")?;
    let indexes = indexes.ok_or_else(|| arguments.missing("indexes"))?;
    if indexes.is_empty() {
        let message = "Must specify at least one search index to create";
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    let one = |index: ValueRef<'_>| match index {
        ValueRef::Document(index) => search_index(index, context),
        other => Err(arguments.wrong_type("indexes", other.type_of(), &[Type::Document])),
    };
    indexes.iter().map(one).collect()
}

fn search_index(
    index: Document<'_>,
    context: &Context<'_>,
) -> Result<SearchDefinition, CommandError> {
    let arguments = Arguments::within(PATH, index);
    arguments.only(&["definition", "name", "type"])?;
    match arguments.string("type")? {
        None | Some("search") => {}
        Some("vectorSearch") => {
            let message = "search indexes of type vectorSearch are not supported";
            return Err(CommandError::new(ErrorCode::NotImplemented, message));
        }
        Some(other) => {
            let message = format!("'{PATH}.type' must be search or vectorSearch, not {other}");
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
    }
    let name = arguments.string("name")?.unwrap_or(DEFAULT_NAME);
    let definition = search_indexes::definition(&arguments)?;
    let id = context.state.object_ids.next_now();
    SearchDefinition::parse(name, id, 0, now_millis(), definition).or_command_error()
}

/// Fails if an index of the request has the name of another one, or if there are too many.
fn check_new(
    collection: &Collection,
    definitions: &[SearchDefinition],
) -> Result<(), CommandError> {
    let known = collection.search_indexes();
    let known = known
        .iter()
        .filter_map(|index| search_indexes::search_definition(index));
    let mut names: Vec<&str> = known.map(|one| one.name.as_str()).collect();
    for one in definitions {
        if names.contains(&one.name.as_str()) {
            let message = format!("search index '{}' already exists", one.name);
            return Err(CommandError::new(ErrorCode::IndexAlreadyExists, message));
        }
        names.push(&one.name);
    }
    if names.len() > INDEXES_MAX {
        let message = format!(
            "the collection would have {} search indexes, the limit is {INDEXES_MAX}",
            names.len()
        );
        return Err(CommandError::new(ErrorCode::CannotCreateIndex, message));
    }
    Ok(())
}
