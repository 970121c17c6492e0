//! `top`: the number and the total duration of operations on each collection.

use windrow_access::Action;
use windrow_collection::Namespace;
use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::Command;
use crate::context::Context;

pub const TOP: Command = Command {
    name: "top",
    help: "returns the number of uses of each collection, and their duration",
    needs: Needs::OnServer(&[Action::top]),
    admin_only: true,
    run,
    ..Command::EMPTY
};

/// The counts of dropped collections are removed here and not when they are dropped.
fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let engine = &context.state.services.engine;
    context.state.usage.forget(|name| {
        let parts = name.split_once('.');
        let namespace = parts.map(|(database, collection)| Namespace {
            database: database.to_owned(),
            collection: collection.to_owned(),
        });
        let is_there = |namespace: Namespace| {
            // If the catalog cannot be read, the counts are kept. A later command removes them.
            let is_view = || engine.view(&namespace).map_or(true, |view| view.is_some());
            engine.collection(&namespace).is_some() || is_view()
        };
        !namespace.is_some_and(is_there)
    });
    let mut totals = doc! { "note": "all times in microseconds" };
    for (name, spent) in context.state.usage.describe().iter() {
        totals.push(name, spent);
    }
    Ok(Reply::ok(doc! { "totals": totals }))
}
