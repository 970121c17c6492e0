//! `reIndex`: rebuilds the indexes of a collection from its documents, except that on `_id`.
//! Concurrent reads and writes use the old entries. The new entries replace them in one step.

use windrow_access::Action;
use windrow_document::{Value, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, views};

pub const RE_INDEX: Command = Command {
    name: "reIndex",
    help: "rebuilds the indexes of a collection",
    needs: Needs::OnCollection(&[Action::reIndex]),
    arguments: AcceptedArguments::Only(&[]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let engine = &context.state.services.engine;
    let missing = || format!("collection does not exist: {namespace}");
    let collection = views::collection(context, &namespace, missing)?;
    let before = collection.indexes();
    if before.iter().any(|index| !index.is_ready()) {
        return Err(CommandError::new(
            ErrorCode::BackgroundOperationInProgressForNamespace,
            format!("cannot reIndex {namespace} while one of its indexes is being built"),
        ));
    }
    let others = before.iter().filter(|one| !one.definition.is_of_ids());
    let names: Vec<String> = others.map(|one| one.definition.name.clone()).collect();
    engine
        .rebuild(&collection, &names, context.operation)
        .or_command_error()?;
    let plans = &context.state.planner_settings.plans;
    plans.clear(collection.uuid(), None);
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
