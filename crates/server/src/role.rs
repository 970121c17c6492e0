//! What a server may do that follows another one, as a secondary of a replica set.

use windrow_document::{Document, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Request};

use crate::command::Command;
use crate::common_arguments::{CommonArguments, TransactionPart};
use crate::latency::LatencyClass;
use crate::state::State;

/// Fails if only a primary runs the command: it writes, or its client wants to read from a primary.
pub fn check(
    state: &State,
    request: &Request,
    command: &Command,
    common: &CommonArguments,
) -> Result<(), CommandError> {
    if !state.services.engine.is_following() {
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
    } else {
        return Ok(());
    };
    let error = CommandError::new(code, message);
    Err(error.with("topologyVersion", state.topology_version()))
}

/// Returns whether a client accepts data of a secondary. A `getMore` continues what was accepted.
fn reads_from_secondaries(request: &Request) -> bool {
    let preference = request.get("$readPreference");
    let mode = preference.and_then(ValueRef::as_document);
    let mode = mode.and_then(|preference: Document<'_>| preference.get("mode"));
    let is_primary = mode.is_none_or(|mode| mode.as_str() == Some("primary"));
    !is_primary || request.command() == "getMore"
}
