//! `killSessions`: ends sessions and interrupts what they do.

use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::command::Command;
use crate::context::Context;
use crate::sessions::{SessionId, parse_list};

pub const KILL_SESSIONS: Command = Command {
    name: "killSessions",
    help: "ends logical sessions, all of the user's where none is named, and interrupts what they do",
    in_api_version_1: true,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let list = request.get("killSessions").unwrap_or(ValueRef::Null);
    let mut sessions = parse_list(list, "killSessions")?;
    if sessions.is_empty() {
        sessions = context.state.sessions.all();
    }
    // The session of this command itself may be among them; the command goes on.
    sessions
        .into_iter()
        .for_each(|session| kill(session, context));
    Ok(Reply::ok(DocumentBuf::new()))
}

fn kill(session: SessionId, context: &Context<'_>) {
    let state = context.state;
    state
        .operations
        .kill_where(ErrorCode::Interrupted, |operation| {
            operation.session == Some(session) && operation.id != context.operation.id
        });
    state.cursors.kill_session(session);
    state.sessions.end(session);
}
