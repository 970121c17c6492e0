//! `killSessions`: ends sessions and interrupts what they do.

use windrow_document::{Array, DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
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

/// There are no users to tell sessions apart by: whoever is named, all sessions are meant.
pub const KILL_ALL_SESSIONS: Command = Command {
    name: "killAllSessions",
    help: "ends all logical sessions and interrupts what they do",
    run: all,
    ..Command::EMPTY
};

pub const KILL_ALL_SESSIONS_BY_PATTERN: Command = Command {
    name: "killAllSessionsByPattern",
    help: "ends the logical sessions of patterns, or all, and interrupts what they do",
    run: by_pattern,
    ..Command::EMPTY
};

fn all(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    if let Some(user) = patterns(request)?.iter().next() {
        return Err(no_such_user(user)?);
    }
    let sessions = context.state.sessions.all().into_iter();
    sessions.for_each(|session| kill(session, context));
    Ok(Reply::ok(DocumentBuf::new()))
}

fn by_pattern(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let patterns = patterns(request)?;
    if patterns.is_empty() {
        return all(request, context);
    }
    let mut sessions = Vec::new();
    for pattern in patterns.iter() {
        let named = pattern
            .as_document()
            .and_then(|pattern| pattern.get("lsid"));
        let Some(session) = named.and_then(ValueRef::as_document) else {
            let message = "of patterns of sessions only those with lsid are supported";
            return Err(CommandError::new(ErrorCode::NotImplemented, message));
        };
        let place = "KillAllSessionsByPattern.lsid";
        if session.get("uid").is_none() {
            return Err(Arguments::within(place, session).missing("uid"));
        }
        sessions.push(SessionId::parse(session, place)?);
    }
    sessions
        .into_iter()
        .for_each(|session| kill(session, context));
    Ok(Reply::ok(DocumentBuf::new()))
}

fn patterns(request: &Request) -> Result<Array<'_>, CommandError> {
    let list = request.get(request.command()).and_then(ValueRef::as_array);
    let message = format!("{} must be an array", request.command());
    // MongoDB's own code for an element that is not the array it should be.
    list.ok_or_else(|| CommandError::new(ErrorCode(10_065), message))
}

/// The error of a user who is named: there are none.
fn no_such_user(user: ValueRef<'_>) -> Result<CommandError, CommandError> {
    let place = "KillAllSessionsUser";
    let Some(user) = user.as_document() else {
        let found = user.type_of().name();
        let message =
            format!("BSON field '{place}' is the wrong type '{found}', expected 'object'");
        return Err(CommandError::new(ErrorCode::TypeMismatch, message));
    };
    let fields = Arguments::within(place, user);
    let part = |name: &str| fields.string(name)?.ok_or_else(|| fields.missing(name));
    let message = format!(
        "Could not find user \"{}\" for db \"{}\"",
        part("user")?,
        part("db")?
    );
    Ok(CommandError::new(ErrorCode::UserNotFound, message))
}

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
    state.histories.abort(session);
    state.cursors.kill_session(session);
    state.sessions.end(session);
}
