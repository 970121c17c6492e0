//! `getCmdLineOpts`: the command line of the server.

use windrow_access::Action;
use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const GET_CMD_LINE_OPTS: Command = Command {
    name: "getCmdLineOpts",
    help: "returns the command line of the server",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::getCmdLineOpts]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&[]),
    run,
    ..Command::EMPTY
};

fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let config = &context.state.config;
    Ok(Reply::ok(doc! {
        "argv": (config.arguments.clone()), "parsed": (config.options.clone()),
    }))
}
