//! `logout`: logs the user of the connection out.

use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::access::events::{self, Event};
use crate::auditing;
use crate::command::{Command, Routing};
use crate::context::Context;

pub const LOGOUT: Command = Command {
    name: "logout",
    help: "logs the connection out, if its user is one of the database",
    routing: Routing::Here,
    needs: Needs::Nothing,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    if let Some(user) = context.client.login.log_out(request.database()) {
        events::record(
            context.state,
            context.client,
            &Event::Logout { user: &user },
        );
        let reason = format!("Explicit logout from {}", request.database());
        auditing::record_logout(context.state, context.client, &user, &reason);
    }
    Ok(Reply::ok(DocumentBuf::new()))
}
