//! `listIndexes`: the indexes of a collection.

use windrow_document::{Document, DocumentBuf};
use windrow_index::Definition;
use windrow_wire::{CommandError, Reply, Request};

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
    let missing = || format!("ns does not exist: {namespace}");
    let collection = views::collection(context, &namespace, missing)?;
    // Those that are being built are shown too, as in MongoDB.
    let indexes = collection.indexes();
    let options = collection.options();
    let listed = indexes
        .iter()
        .map(|one| specification(&one.definition, options.as_document()));
    listed::reply(request, context, &namespace.to_string(), listed.collect())
}

/// How long its documents live a clustered collection says in its options.
fn specification(definition: &Definition, options: Document<'_>) -> DocumentBuf {
    let mut specification = definition.specification.clone();
    let expires = options.get("expireAfterSeconds");
    if let Some(expires) = expires.filter(|_| definition.clustered) {
        specification.push("expireAfterSeconds", expires);
    }
    specification
}
