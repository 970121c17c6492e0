//! `startSession`: creates a logical session.

use windrow_document::doc;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{Command, Routing};
use crate::context::Context;
use crate::sessions::TIMEOUT_MINUTES;

pub const START_SESSION: Command = Command {
    name: "startSession",
    help: "starts a logical session",
    routing: Routing::Here,
    needs: Needs::Login,
    run,
    ..Command::EMPTY
};

fn run(_: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let session = context.state.sessions.start(context.authority.digest())?;
    Ok(Reply::ok(
        doc! { "id": (session.to_document()), "timeoutMinutes": TIMEOUT_MINUTES },
    ))
}
