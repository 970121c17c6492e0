//! The events of the audit log on commands that clients may run, or may not.

use windrow_document::{ValueRef, doc};
use windrow_wire::{ErrorCode, Request};

use crate::access::Needs;
use crate::auditing::record_result;
use crate::client::Client;
use crate::command::Command;
use crate::commands::secret_arguments;
use crate::parameters::AUDIT_SUCCESS;
use crate::shown_command::shown_command;
use crate::state::State;

/// Records that a client may run a command, or may not. That it may is only recorded if
/// `auditAuthorizationSuccess` is on.
pub fn record_check(
    state: &State,
    client: &Client,
    request: &Request,
    command: &Command,
    is_allowed: bool,
) {
    if state.audit.is_none() || is_allowed && !state.parameters.flag(AUDIT_SUCCESS) {
        return;
    }
    let param = || {
        doc! {
            "command": (command.name), "ns": (namespace(request, command)),
            "args": (shown_command(request.body(), request.database(), secret_arguments)),
        }
    };
    let result = if is_allowed {
        0
    } else {
        ErrorCode::Unauthorized.number()
    };
    record_result(state, client, "authCheck", param, result);
}

/// Returns the namespace that a command names, or its database.
fn namespace(request: &Request, command: &Command) -> String {
    let named = |argument| request.get(argument).and_then(ValueRef::as_str);
    let is_of_collection = match command.needs {
        Needs::OnCollection(_) => true,
        // The others name users and roles.
        Needs::Computed(_) => !["User", "Role", "Info"]
            .iter()
            .any(|end| command.name.ends_with(end)),
        _ => false,
    };
    match (named(request.command()), named("collection")) {
        (Some(name), _) if ["renameCollection", "dataSize"].contains(&command.name) => {
            name.to_owned()
        }
        (Some(name), _) if is_of_collection => format!("{}.{name}", request.database()),
        (None, Some(name)) => format!("{}.{name}", request.database()),
        _ => request.database().to_owned(),
    }
}
