//! `whatsmyuri`: the address of the client.

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{Command, Routing};
use crate::context::Context;

pub const WHATS_MY_URI: Command = Command {
    name: "whatsmyuri",
    help: "returns the address of the client",
    routing: Routing::Here,
    needs: Needs::Nothing,
    run,
    ..Command::EMPTY
};

fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    Ok(Reply::ok(
        doc! { "you": (context.client.address.to_string()) },
    ))
}
