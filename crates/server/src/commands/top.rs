//! `top`: the number and the total duration of operations on each collection.

use windrow_access::Action;
use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{Command, Join, Routing};
use crate::context::Context;

pub const TOP: Command = Command {
    name: "top",
    help: "returns the number of uses of each collection, and their duration",
    routing: Routing::Each(Join::Fields("totals")),
    needs: Needs::OnServer(&[Action::top]),
    admin_only: true,
    run,
    ..Command::EMPTY
};

fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let state = context.state;
    state.usage.forget_dropped(&state.services.engine);
    let mut totals = doc! { "note": "all times in microseconds" };
    for (name, spent) in state.usage.describe().iter() {
        totals.push(name, spent);
    }
    Ok(Reply::ok(doc! { "totals": totals }))
}
