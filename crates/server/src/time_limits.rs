//! The time limits of commands.

use std::time::Duration;

use windrow_wire::Request;

use crate::command::Command;
use crate::common_arguments::CommonArguments;
use crate::metrics::Kind;
use crate::state::State;

/// Returns the time limit of a command: its own, or the default of reads.
pub fn time_limit(
    state: &State,
    request: &Request,
    command: &Command,
    common: &CommonArguments,
) -> Option<Duration> {
    if has_time_limit(request) {
        // The `maxTimeMS` of a getMore is the time that its cursor waits for data. The command
        // reads it itself.
        return common.time_limit.filter(|_| command.kind != Kind::GetMore);
    }
    if (command.is_limited_read)(request.body()) {
        return state.cluster_parameters.read_limit();
    }
    None
}

/// Returns `true` if a request sets a time limit itself.
pub fn has_time_limit(request: &Request) -> bool {
    let limit = request.get("maxTimeMS");
    limit.is_some_and(|limit| !limit.is_nullish())
}
