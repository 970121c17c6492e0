//! The checks before a command is executed: of the client's privileges, and of the request.

use windrow_wire::{CommandError, ErrorCode, Request};

use crate::access::events::{self, Event};
use crate::access::{AccessRequest, Authority, Requirement};
use crate::authorization_audit::record_check;
use crate::client::Client;
use crate::command::Command;
use crate::commands::secret_arguments;
use crate::common_arguments::CommonArguments;
use crate::error_labels::with_transient_label;
use crate::role;
use crate::shown_command::shown_command;
use crate::state::State;

/// Fails with Unauthorized if the client may not run the command. Returns the privileges that were
/// checked.
pub(super) fn check_access(
    state: &State,
    client: &Client,
    request: &Request,
    command: &Command,
    authority: &Authority,
) -> Result<Requirement, CommandError> {
    if command.needs.is_free() {
        return Ok(Requirement::Nothing);
    }
    if authority.is_unrestricted() {
        record_check(state, client, request, command, true);
        return Ok(Requirement::Nothing);
    }
    let access = AccessRequest::new(state, request, authority.identity());
    let message = if matches!(authority, Authority::Nobody) {
        format!("Command {} requires authentication", command.name)
    } else {
        let requirement = command.needs.requirement(&access);
        let is_enough = authority.user().is_some() || requirement != Requirement::Nothing;
        if is_enough && authority.meets(&requirement) {
            record_check(state, client, request, command, true);
            return Ok(requirement);
        }
        let database = request.database();
        let shown = shown_command(request.body(), database, secret_arguments);
        format!("not authorized on {database} to execute command {shown}")
    };
    let refused = Event::AuthCheck {
        command: command.name,
        database: request.database(),
        user: authority.user(),
        error: &message,
    };
    events::record(state, client, &refused);
    record_check(state, client, request, command, false);
    Err(CommandError::new(ErrorCode::Unauthorized, message))
}

/// Returns the common arguments of a request. Fails if they are invalid, or if this server does not
/// run the command now, because of its role or because it stops.
pub(super) fn check_request(
    state: &State,
    request: &Request,
    command: &Command,
    authority: &Authority,
) -> Result<CommonArguments, CommandError> {
    command.check_arguments(request.body(), request.sequence_names())?;
    let common = CommonArguments::parse(request, command, state.replica_set.is_some());
    let mut common = common.map_err(|error| match request.get("startTransaction") {
        Some(_) => with_transient_label(error),
        None => error,
    })?;
    if let Some(session) = common.session {
        let session = authority.session(session)?;
        common.set_session(session);
        if !matches!(authority, Authority::Nobody) {
            state.sessions.touch(session)?;
        }
    }
    role::check(state, request, command, &common)?;
    if state.stop.is_requested() {
        let message = "The server is in quiesce mode and will shut down";
        return Err(CommandError::new(ErrorCode::ShutdownInProgress, message));
    }
    Ok(common)
}
