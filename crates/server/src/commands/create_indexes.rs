//! `createIndexes`: builds indexes while others read and write.
//!
//! The build has a thread of its own and the command waits for it. A client that goes away leaves
//! its build running; `killOp` and `maxTimeMS` end it; a server that stops leaves it to its next
//! start.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use windrow_collection::Collection;
use windrow_document::{Collation, DocumentBuf, Type};
use windrow_index::Definition;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::generic::is_generic;
use crate::index_builds::{self, Build};
use crate::{namespace, views};

/// Unknown arguments are checked here, since MongoDB has a code of its own for them.
pub const CREATE_INDEXES: Command = Command {
    name: "createIndexes",
    help: "builds indexes on a collection, which is made where there is none",
    write_concern: true,
    in_api_version_1: true,
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

/// Indexes of a collection, the one on `_id` included.
const INDEXES_MAX: usize = 64;

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::named(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let engine = &context.state.services.engine;
    let existing = engine.collection(&namespace);
    let collation = existing.as_ref().and_then(|existing| existing.collation());
    let definitions = parse(request, collation.as_ref())?;
    namespace::check_creation(&namespace)?;
    views::refuse(context, &namespace)?;
    let names: Vec<String> = definitions.iter().map(|one| one.name.clone()).collect();
    // What is wrong with them is told before a collection is made for them.
    let new = windrow_index::conflict::new_ones(&known(existing.as_deref()), definitions)
        .or_command_error()?;
    check_count(existing.as_deref(), &new)?;
    let is_created = existing.is_none();
    let collection = match existing {
        Some(collection) => collection,
        None => engine.collection_or_create(&namespace).or_command_error()?,
    };
    index_builds::wait_ready(&collection, &names, context.operation)?;
    if new.is_empty() {
        let count = collection.indexes().len();
        return Ok(reply(None, count, count, names.len()));
    }
    let build = Build {
        engine: engine.clone(),
        collection,
        definitions: new,
        log: context.state.services.log.clone(),
        context: context.client.name(),
    };
    let metrics = &context.state.metrics;
    metrics.index_builds.fetch_add(1, Relaxed);
    let built = index_builds::run(build, context.operation)
        .inspect_err(|_| _ = metrics.index_builds_failed.fetch_add(1, Relaxed))?;
    let passed_over = names.len() - built.created.len();
    Ok(reply(
        Some(is_created),
        built.before,
        built.after,
        passed_over,
    ))
}

fn reply(is_created: Option<bool>, before: usize, after: usize, passed_over: usize) -> Reply {
    let mut reply = DocumentBuf::new();
    if let Some(is_created) = is_created {
        reply.push("createdCollectionAutomatically", is_created);
    }
    reply.push("numIndexesBefore", before as i32);
    reply.push("numIndexesAfter", after as i32);
    if is_created.is_none() {
        reply.push("note", "all indexes already exist");
    } else if passed_over > 0 {
        reply.push("note", "index already exists");
    }
    Reply::ok(reply)
}

fn known(collection: Option<&Collection>) -> Vec<Arc<Definition>> {
    let indexes = collection.map(Collection::indexes).unwrap_or_default();
    indexes.iter().map(|one| one.definition.clone()).collect()
}

fn check_count(existing: Option<&Collection>, new: &[Definition]) -> Result<(), CommandError> {
    let before = existing.map_or(1, |collection| collection.indexes().len());
    if before + new.len() > INDEXES_MAX {
        let message = format!(
            "add index fails, too many indexes: {} and {before} others, the limit is {INDEXES_MAX}",
            new.len()
        );
        return Err(CommandError::new(ErrorCode::CannotCreateIndex, message));
    }
    Ok(())
}

/// `collation`: the collection's, which its indexes have where they say nothing.
fn parse(
    request: &Request,
    collation: Option<&Arc<Collation>>,
) -> Result<Vec<Definition>, CommandError> {
    check_names(request)?;
    let arguments = Arguments::new(request);
    arguments.flag("ignoreUnknownIndexOptions")?;
    if arguments.get("commitQuorum").is_some() {
        let message = "Standalones don't support commitQuorum";
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    let indexes = arguments.array("indexes")?.ok_or_else(|| {
        let message = "The 'indexes' field is a required argument of the createIndexes command";
        CommandError::new(ErrorCode::FailedToParse, message)
    })?;
    if indexes.is_empty() {
        let message = "Must specify at least one index to create";
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    let mut definitions = Vec::new();
    for index in indexes.iter() {
        let specification = index
            .as_document()
            .ok_or_else(|| arguments.wrong_type("indexes", index.type_of(), &[Type::Document]))?;
        definitions.push(Definition::parse_within(specification, collation).or_command_error()?);
    }
    Ok(definitions)
}

fn check_names(request: &Request) -> Result<(), CommandError> {
    let known = ["commitQuorum", "ignoreUnknownIndexOptions", "indexes"];
    let mut names = request.body().iter().skip(1).map(|(name, _)| name);
    match names.find(|name| !known.contains(name) && !is_generic(name)) {
        None => Ok(()),
        Some(name) => Err(CommandError::new(
            ErrorCode::BadValue,
            format!("Invalid field specified for createIndexes command: {name}"),
        )),
    }
}
