//! `dropIndexes`: drops indexes by name, by key, or all of them.

use windrow_access::Action;
use windrow_collection::Collection;
use windrow_document::{Array, Document, ValueRef, doc};
use windrow_index::Definition;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::collection_uuid::Target;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, views};

/// Other arguments are ignored, as in MongoDB.
pub const DROP_INDEXES: Command = Command {
    name: "dropIndexes",
    aliases: &["deleteIndexes"],
    help: "drops indexes of a collection: by name, names, key, or \"*\" for all except that on _id",
    needs: Needs::OnCollection(&[Action::dropIndex]),
    write_concern: true,
    in_api_version_1: true,
    arguments: AcceptedArguments::Any,
    run,
    ..Command::EMPTY
};

/// MongoDB's error code for the clustered index.
const CLUSTERED: ErrorCode = ErrorCode(5_979_800);

/// A parsed `dropIndexes`.
struct DropIndexesRequest<'a> {
    target: Target,
    selector: IndexSelector<'a>,
}

/// The indexes to drop.
enum IndexSelector<'a> {
    /// All except that on `_id`.
    All,
    Name(&'a str),
    Names(Array<'a>),
    Key(Document<'a>),
    /// A value that is neither a name nor a key, which MongoDB ignores.
    Nothing,
}

impl<'a> DropIndexesRequest<'a> {
    fn parse(request: &'a Request) -> Result<DropIndexesRequest<'a>, CommandError> {
        let namespace = namespace::from_request(request)?;
        let arguments = Arguments::new(request);
        Ok(DropIndexesRequest {
            target: Target::from_arguments(namespace, &arguments)?,
            selector: match arguments.get("index") {
                Some(ValueRef::String("*")) => IndexSelector::All,
                Some(ValueRef::String(name)) => IndexSelector::Name(name),
                Some(ValueRef::Array(names)) => IndexSelector::Names(names),
                Some(ValueRef::Document(key)) => IndexSelector::Key(key),
                _ => IndexSelector::Nothing,
            },
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let DropIndexesRequest { target, selector } = DropIndexesRequest::parse(request)?;
    let namespace = target.namespace.clone();
    context.operation.set_namespace(&namespace.to_string());
    let missing = || format!("ns not found {namespace}");
    let collection = match target.collection(context)? {
        Some(collection) => collection,
        None => views::collection(context, &namespace, missing)?,
    };
    let _ddl_guard = context.exclude(&collection)?;
    let before = collection.index_count() as i32;
    // All names are resolved before the first index is dropped.
    for name in selector.names(&collection)? {
        collection.drop_index(&name).or_command_error()?;
        let cursors = &context.state.cursors;
        cursors.end_using(&namespace.to_string(), &name);
        context.audit("dropIndex", || {
            doc! { "ns": (namespace.to_string()), "indexName": (name.as_str()) }
        });
        let attr = doc! { "namespace": (namespace.to_string()), "indexes": name };
        let log = &context.state.services.log;
        log.info(
            "COMMAND",
            51_806,
            &context.client.name(),
            "CMD: dropIndexes",
            attr,
        );
    }
    let mut reply = doc! { "nIndexesWas": before };
    if matches!(selector, IndexSelector::All) {
        reply.push("msg", "non-_id indexes dropped for collection");
    }
    Ok(Reply::ok(reply))
}

impl IndexSelector<'_> {
    /// Returns the names of the selected indexes.
    fn names(&self, collection: &Collection) -> Result<Vec<String>, CommandError> {
        match *self {
            IndexSelector::All => Ok(all_but_ids(collection)),
            IndexSelector::Names(names) if selects_all(names) => Ok(all_but_ids(collection)),
            IndexSelector::Name(name) => Ok(vec![by_name(collection, name)?]),
            IndexSelector::Names(names) => by_names(collection, names),
            IndexSelector::Key(key) => Ok(vec![by_key(collection, key)?]),
            IndexSelector::Nothing => Ok(Vec::new()),
        }
    }
}

fn all_but_ids(collection: &Collection) -> Vec<String> {
    let indexes = collection.indexes();
    let others = indexes.iter().filter(|one| !one.definition.is_of_ids());
    others.map(|one| one.definition.name.clone()).collect()
}

/// Returns `true` if the only name of the list is "*".
fn selects_all(names: Array<'_>) -> bool {
    names.iter().eq([ValueRef::String("*")])
}

fn by_names(collection: &Collection, all: Array<'_>) -> Result<Vec<String>, CommandError> {
    let mut names: Vec<String> = Vec::new();
    for one in all.iter() {
        let name = one.as_str().ok_or_else(|| {
            let message = "dropIndexes accepts several indexes only by name";
            CommandError::new(ErrorCode::TypeMismatch, message)
        })?;
        let name = by_name(collection, name)?;
        if names.contains(&name) {
            return Err(not_found(format!("index not found with name [{name}]")));
        }
        names.push(name);
    }
    Ok(names)
}

fn by_name(collection: &Collection, name: &str) -> Result<String, CommandError> {
    let indexes = collection.indexes();
    let found = indexes.iter().find(|one| one.definition.name == name);
    let found = found.ok_or_else(|| not_found(format!("index not found with name [{name}]")))?;
    if found.definition.is_of_ids() {
        return Err(id_index_error(&found.definition));
    }
    Ok(name.to_owned())
}

fn by_key(collection: &Collection, key: Document<'_>) -> Result<String, CommandError> {
    let indexes = collection.indexes();
    let mut found = indexes.iter().filter(|one| {
        windrow_document::order::compare_documents(one.definition.key_pattern(), key).is_eq()
    });
    match (found.next(), found.next()) {
        (None, _) => Err(not_found(format!("can't find index with key: {key}"))),
        (Some(one), None) if one.definition.is_of_ids() => Err(id_index_error(&one.definition)),
        (Some(one), None) => Ok(one.definition.name.clone()),
        (Some(one), Some(other)) => Err(CommandError::new(
            ErrorCode::AmbiguousIndexKeyPattern,
            format!(
                "{} indexes and more have the key {key}; drop one by name: '{}', '{}'",
                2, one.definition.name, other.definition.name
            ),
        )),
    }
}

fn not_found(message: String) -> CommandError {
    CommandError::new(ErrorCode::IndexNotFound, message)
}

fn id_index_error(definition: &Definition) -> CommandError {
    if definition.clustered {
        CommandError::new(CLUSTERED, "It is illegal to drop the clusteredIndex")
    } else {
        CommandError::new(ErrorCode::InvalidOptions, "cannot drop _id index")
    }
}
