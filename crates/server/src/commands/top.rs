//! `top`: how often each collection has been used, and how long that took.

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::command::{Accepted, Command};
use crate::context::Context;

pub const TOP: Command = Command {
    name: "top",
    help: "tells how often each collection has been used, and how long that took",
    admin_only: true,
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let mut totals = doc! { "note": "all times in microseconds" };
    for (name, spent) in context.state.usage.describe().iter() {
        totals.push(name, spent);
    }
    Ok(Reply::ok(doc! { "totals": totals }))
}
