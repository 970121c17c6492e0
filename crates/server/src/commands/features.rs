//! `features`: the process-specific part of generated ObjectIds.

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{Command, Routing};
use crate::context::Context;

pub const FEATURES: Command = Command {
    name: "features",
    help: "returns the machine part of the server's ObjectIds",
    routing: Routing::Here,
    needs: Needs::Nothing,
    run,
    ..Command::EMPTY
};

fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let [_, _, _, _, a, b, c, ..] = context.state.process_id.0;
    Ok(Reply::ok(
        doc! { "oidMachine": (i32::from_be_bytes([0, a, b, c])) },
    ))
}
