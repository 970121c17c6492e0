//! Finds the command of a request, and its counters.

use std::sync::atomic::Ordering::Relaxed;

use windrow_wire::{CommandError, ErrorCode, Request};

use crate::command::Command;
use crate::commands::{COMMANDS, find};
use crate::metrics::CommandCounts;
use crate::namespace;
use crate::parameters::TEST_COMMANDS;
use crate::state::State;

/// Returns the command of a request. Fails if there is none, or if it does not run on the database.
pub(super) fn find_command(
    state: &State,
    request: &Request,
) -> Result<&'static Command, CommandError> {
    let name = request.command();
    let command = find_enabled(state, name).ok_or_else(|| {
        CommandError::new(
            ErrorCode::CommandNotFound,
            format!("no such command: '{name}'"),
        )
    })?;
    namespace::check_database(request.database())?;
    if command.admin_only && request.database() != "admin" {
        let message = format!(
            "{} may only be run against the admin database.",
            command.name
        );
        return Err(CommandError::new(ErrorCode::Unauthorized, message));
    }
    Ok(command)
}

/// Returns the counters of the requested command. Counts an unknown command, and returns `None`.
pub(crate) fn counts<'a>(state: &'a State, request: &Request) -> Option<&'a CommandCounts> {
    let Some(command) = find_enabled(state, request.command()) else {
        state.metrics.unknown_commands.fetch_add(1, Relaxed);
        return None;
    };
    let all = COMMANDS.iter().map(|command| command.name);
    let all = all.filter(|name| find_enabled(state, name).is_some());
    state.metrics.command_counts(all, command.name)
}

/// Returns the command with this name or alias, if the server has it.
fn find_enabled(state: &State, name: &str) -> Option<&'static Command> {
    find(name).filter(|command| !command.for_tests || state.parameters.flag(TEST_COMMANDS))
}
