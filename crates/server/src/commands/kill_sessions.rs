//! `killSessions`: ends sessions and interrupts their operations.

use windrow_access::{Action, UserName};
use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{Needs, store};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Join, Routing};
use crate::context::Context;
use crate::sessions::{SessionId, UserDigest, parse_list};

pub const KILL_SESSIONS: Command = Command {
    name: "killSessions",
    help: "ends logical sessions and interrupts their operations; without arguments all sessions of the user",
    routing: Routing::Each(Join::One),
    needs: Needs::Login,
    run,
    ..OF_SESSIONS
};

pub const KILL_ALL_SESSIONS: Command = Command {
    name: "killAllSessions",
    help: "ends all logical sessions and interrupts their operations",
    routing: Routing::Each(Join::One),
    needs: Needs::OnServer(&[Action::killAnySession]),
    run: all,
    ..OF_SESSIONS
};

pub const KILL_ALL_SESSIONS_BY_PATTERN: Command = Command {
    name: "killAllSessionsByPattern",
    help: "ends the logical sessions that match patterns and interrupts their operations; without patterns all sessions",
    routing: Routing::Each(Join::One),
    needs: Needs::OnServer(&[Action::killAnySession]),
    run: by_pattern,
    ..OF_SESSIONS
};

/// Unknown arguments are ignored, as in MongoDB.
const OF_SESSIONS: Command = Command {
    arguments: AcceptedArguments::Any,
    ..Command::EMPTY
};

fn all(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let users = list(request)?;
    let users: Result<Vec<_>, _> = users.into_iter().map(parse_user).collect();
    let users = users?;
    let engine = context.state.users_engine()?;
    for name in &users {
        if store::user(&engine, name)?.is_none() {
            let UserName { user, database } = name;
            let message = format!("Could not find user \"{user}\" for db \"{database}\"");
            return Err(CommandError::new(ErrorCode::UserNotFound, message));
        }
    }
    let digests: Vec<UserDigest> = users.iter().map(UserDigest::new).collect();
    kill_where(context, |session| {
        digests.is_empty() || digests.contains(&session.user)
    });
    Ok(Reply::ok(DocumentBuf::new()))
}

fn by_pattern(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let patterns = list(request)?;
    if patterns.is_empty() {
        return all(request, context);
    }
    let mut sessions = Vec::new();
    for pattern in patterns.iter() {
        let named = pattern
            .as_document()
            .and_then(|pattern| pattern.get("lsid"));
        let Some(session) = named.and_then(ValueRef::as_document) else {
            let message = "only patterns with 'lsid' are supported";
            return Err(CommandError::new(ErrorCode::NotImplemented, message));
        };
        let place = "KillAllSessionsByPattern.lsid";
        if session.get("uid").is_none() {
            return Err(Arguments::within(place, session).missing("uid"));
        }
        sessions.push(SessionId::parse(session, place)?);
    }
    for session in sessions {
        // The administrator names the user of the session.
        let session = if context.authority.is_unrestricted() {
            session.with_user(UserDigest::NOBODY)
        } else {
            session
        };
        kill(session, context);
    }
    Ok(Reply::ok(DocumentBuf::new()))
}

/// Returns the elements of the command's array that are not null.
fn list(request: &Request) -> Result<Vec<ValueRef<'_>>, CommandError> {
    let (arguments, name) = (Arguments::new(request), request.command());
    let array = arguments
        .array(name)?
        .ok_or_else(|| arguments.missing(name))?;
    let is_one = |value: &ValueRef<'_>| *value != ValueRef::Null;
    Ok(array.iter().filter(is_one).collect())
}

/// Returns the name and the database of a user.
fn parse_user(user: ValueRef<'_>) -> Result<UserName, CommandError> {
    let place = "KillAllSessionsUser";
    let Some(user) = user.as_document() else {
        let found = user.type_of().name();
        let message =
            format!("BSON field '{place}' is the wrong type '{found}', expected 'object'");
        return Err(CommandError::new(ErrorCode::TypeMismatch, message));
    };
    let fields = Arguments::within(place, user);
    fields.only(&["user", "db"])?;
    let part = |name: &str| fields.string(name)?.ok_or_else(|| fields.missing(name));
    Ok(UserName::new(part("user")?, part("db")?))
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let sessions = parse_list(list(request)?, "killSessions")?;
    let sessions = context.own_sessions(sessions)?;
    if sessions.is_empty() {
        let own = context.authority.digest();
        let is_own =
            |session: SessionId| context.authority.is_unrestricted() || session.user == own;
        kill_where(context, is_own);
    }
    // The session of this command may be among them. The command itself is not interrupted.
    sessions
        .into_iter()
        .for_each(|session| kill(session, context));
    Ok(Reply::ok(DocumentBuf::new()))
}

/// Kills the sessions for which `is_meant` returns `true`.
fn kill_where(context: &Context<'_>, is_meant: impl Fn(SessionId) -> bool) {
    let sessions = context.state.sessions.all().into_iter();
    let meant = sessions.filter(|session| is_meant(*session));
    meant.for_each(|session| kill(session, context));
}

fn kill(session: SessionId, context: &Context<'_>) {
    let state = context.state;
    state
        .operations
        .kill_where(ErrorCode::Interrupted, |operation| {
            operation.session == Some(session) && operation.id != context.operation.id
        });
    state.session_transactions.abort(session);
    state.cursors.kill_session(session);
    state.sessions.end(session);
}
