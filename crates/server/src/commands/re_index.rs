//! `reIndex`: drops the indexes of a collection and builds them anew, but for the one on `_id`, by
//! which its documents are known. Who reads or writes meanwhile does so without them.

use std::sync::atomic::Ordering::Relaxed;

use windrow_document::{Value, doc};
use windrow_index::Definition;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::index_builds::{self, Build};
use crate::{namespace, views};

pub const RE_INDEX: Command = Command {
    name: "reIndex",
    help: "drops the indexes of a collection and builds them anew",
    arguments: Accepted::Only(&[]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::named(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let engine = &context.state.services.engine;
    let missing = || format!("collection does not exist: {namespace}");
    let collection = views::collection(context, &namespace, missing)?;
    let before = collection.indexes();
    if before.iter().any(|index| !index.is_ready()) {
        return Err(CommandError::new(
            ErrorCode::BackgroundOperationInProgressForNamespace,
            format!("cannot reIndex {namespace} while an index of it is built"),
        ));
    }
    let others = before.iter().filter(|one| !one.definition.is_of_ids());
    let definitions: Vec<Definition> = others.map(|one| (*one.definition).clone()).collect();
    for definition in &definitions {
        collection.drop_index(&definition.name).or_command_error()?;
        let cursors = &context.state.cursors;
        cursors.end_using(&namespace.to_string(), &definition.name);
    }
    if !definitions.is_empty() {
        let build = Build {
            engine: engine.clone(),
            collection: collection.clone(),
            definitions,
            log: context.state.services.log.clone(),
            context: context.client.name(),
        };
        let metrics = &context.state.metrics;
        metrics.index_builds.fetch_add(1, Relaxed);
        index_builds::run(build, context.operation)
            .inspect_err(|_| _ = metrics.index_builds_failed.fetch_add(1, Relaxed))?;
    }
    let after = collection.indexes();
    let described = after
        .iter()
        .map(|index| Value::from(index.definition.specification.clone()));
    let described: Vec<Value> = described.collect();
    Ok(Reply::ok(doc! {
        "nIndexesWas": (before.len() as i32), "nIndexes": (described.len() as i32),
        "indexes": described,
    }))
}
