//! The kind of a failed request. It is determined from the request alone, because the request may
//! have failed before it was parsed.

use windrow_document::ValueRef;
use windrow_wire::Request;

use crate::change_stream::opens_stream;
use crate::commands::find;
use crate::error_labels::FailureKind;
use crate::state::State;

/// Returns the kind of a failed request, which determines its error labels.
pub(crate) fn failure_kind(state: &State, request: &Request) -> FailureKind {
    let is_numbered = request.get("txnNumber").is_some();
    let is_within = request.get("autocommit").is_some();
    let ends = || find(request.command()).is_some_and(|command| command.ends_transaction);
    if is_numbered && !is_within {
        FailureKind::RetryableWrite
    } else if is_numbered && ends() {
        FailureKind::EndOfTransaction
    } else if is_numbered {
        FailureKind::InTransaction
    } else if reads_stream(state, request) {
        FailureKind::ChangeStream
    } else {
        FailureKind::Other
    }
}

/// Returns `true` if the request opens a change stream, or continues one that is not open any more.
/// An error during a `getMore` closes its cursor, so `getMore` itself reports that it was a change
/// stream.
fn reads_stream(state: &State, request: &Request) -> bool {
    match request.get("getMore").and_then(ValueRef::as_whole) {
        None => opens_stream(request.body()),
        Some(id) => {
            let idle = state.cursors.idle();
            let cursor = idle.iter().find(|cursor| cursor.id == id);
            cursor.is_some_and(|cursor| opens_stream(cursor.owner.command.as_document()))
        }
    }
}
