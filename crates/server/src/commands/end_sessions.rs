//! `endSessions`: ends sessions and closes their cursors.

use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::command::{Command, Join, Routing};
use crate::context::Context;
use crate::sessions::parse_array;

pub const END_SESSIONS: Command = Command {
    name: "endSessions",
    help: "ends logical sessions",
    routing: Routing::Each(Join::One),
    needs: Needs::Nothing,
    in_api_version_1: true,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let list = request.get("endSessions").unwrap_or(ValueRef::Null);
    for session in context.own_sessions(parse_array(list, "endSessions")?)? {
        context.state.session_transactions.abort(session);
        context.state.cursors.kill_session(session);
        context.state.sessions.end(session);
    }
    Ok(Reply::ok(DocumentBuf::new()))
}
