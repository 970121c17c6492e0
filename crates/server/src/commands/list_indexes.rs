//! `listIndexes`: the indexes of a collection.

use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::{listed, namespace, views};

/// Arguments are not checked, as in MongoDB.
pub const LIST_INDEXES: Command = Command {
    name: "listIndexes",
    help: "lists the indexes of a collection",
    in_api_version_1: true,
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::named(request)?;
    context.operation.set_namespace(&namespace.to_string());
    views::refuse(context, &namespace)?;
    let engine = &context.state.services.engine;
    let collection = engine.collection(&namespace).ok_or_else(|| {
        let message = format!("ns does not exist: {namespace}");
        CommandError::new(ErrorCode::NamespaceNotFound, message)
    })?;
    // Those that are being built are shown too, as in MongoDB.
    let indexes = collection.indexes();
    let listed = indexes
        .iter()
        .map(|one| one.definition.specification.clone());
    listed::reply(request, context, &namespace.to_string(), listed.collect())
}
