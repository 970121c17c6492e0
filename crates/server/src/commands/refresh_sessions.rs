//! `refreshSessions`: extends the lifetime of sessions.

use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{Command, Join, Routing};
use crate::context::Context;
use crate::sessions::parse_array;

pub const REFRESH_SESSIONS: Command = Command {
    name: "refreshSessions",
    help: "extends the lifetime of logical sessions",
    routing: Routing::Each(Join::One),
    needs: Needs::Login,
    in_api_version_1: true,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let list = request.get("refreshSessions").unwrap_or(ValueRef::Null);
    for session in context.own_sessions(parse_array(list, "refreshSessions")?)? {
        context.state.sessions.touch(session)?;
    }
    Ok(Reply::ok(DocumentBuf::new()))
}
