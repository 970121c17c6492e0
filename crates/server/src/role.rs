//! The commands that a server refuses while it follows another one or cannot extend the log. It
//! then behaves as a secondary of a replica set.

use windrow_document::{Document, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Request};

use crate::command::Command;
use crate::common_arguments::{CommonArguments, ReadConcern, TransactionPart};
use crate::latency::LatencyClass;
use crate::state::State;

/// Fails if only a primary runs the command: it writes, or its client reads from primaries only.
pub fn check(
    state: &State,
    request: &Request,
    command: &Command,
    common: &CommonArguments,
) -> Result<(), CommandError> {
    if state.is_writable() {
        return Ok(());
    }
    let is_read = (command.is_limited_read)(request.body());
    let part = common.numbered.as_ref().map(|numbered| numbered.part);
    let is_write = command.write_concern && !is_read && !command.ends_transaction;
    let (code, message) = if is_write || matches!(part, Some(TransactionPart::Start)) {
        (ErrorCode::NotWritablePrimary, "not primary")
    } else if (is_read || command.class == LatencyClass::Read) && !reads_from_secondaries(request) {
        let message = "not primary and secondaryOk=false";
        (ErrorCode::NotPrimaryNoSecondaryOk, message)
    } else if common.read_concern == ReadConcern::Linearizable {
        let message = "cannot satisfy linearizable read concern on non-primary node";
        (ErrorCode::NotWritablePrimary, message)
    } else {
        return Ok(());
    };
    Err(CommandError::new(code, message))
}

/// The errors by which clients of a replica set learn that a server is not the primary.
const STATE_CHANGES: [ErrorCode; 5] = [
    ErrorCode::PrimarySteppedDown,
    ErrorCode::NotWritablePrimary,
    ErrorCode::InterruptedDueToReplStateChange,
    ErrorCode::NotPrimaryNoSecondaryOk,
    ErrorCode::NotPrimaryOrSecondary,
];

/// Adds the version of the topology to an error that tells of a changed state. Without it, clients
/// cannot know if the error is older than what they know.
pub fn with_topology_version(state: &State, error: CommandError) -> CommandError {
    if state.replica_set.is_some() && STATE_CHANGES.contains(&error.code) {
        error.with("topologyVersion", state.topology_version())
    } else {
        error
    }
}

/// Returns whether a client accepts data of a secondary. A `getMore` continues what was accepted.
fn reads_from_secondaries(request: &Request) -> bool {
    let preference = request.get("$readPreference");
    let mode = preference.and_then(ValueRef::as_document);
    let mode = mode.and_then(|preference: Document<'_>| preference.get("mode"));
    let is_primary = mode.is_none_or(|mode| mode.as_str() == Some("primary"));
    !is_primary || request.command() == "getMore"
}
