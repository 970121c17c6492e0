//! `getCmdLineOpts`: the command line of the server.

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::command::{Accepted, Command};
use crate::context::Context;

pub const GET_CMD_LINE_OPTS: Command = Command {
    name: "getCmdLineOpts",
    help: "returns the command line of the server",
    admin_only: true,
    arguments: Accepted::Only(&[]),
    run,
    ..Command::EMPTY
};

fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let config = &context.state.config;
    Ok(Reply::ok(doc! {
        "argv": (config.arguments.clone()), "parsed": (config.options.clone()),
    }))
}
