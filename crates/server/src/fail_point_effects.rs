//! Applies the effects of fail points to commands. See [`crate::fail_points`].

use std::time::Duration;

use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply};

use crate::error_labels::{FailureKind, label, with_label_for, with_transient_label};
use crate::fail_points::{Effect, FailPointCommand};
use crate::state::State;

/// Returns the reply to a command, or its error with error labels. `run` runs the command after a
/// wait. `failure` is the kind of its failure.
pub(crate) fn apply(
    state: &State,
    subject: &FailPointCommand<'_>,
    effect: &Effect,
    failure: FailureKind,
    run: impl FnOnce(Duration) -> Result<Reply, CommandError>,
) -> Result<Reply, CommandError> {
    if effect.error.is_some() || effect.closes_connection {
        state.stop.wait(effect.waits);
    }
    if effect.closes_connection {
        // The connection is closed, so the error is not sent.
        state.connections.close(subject.client.id);
        let message = "the fail point has closed the connection";
        return Err(CommandError::new(ErrorCode::HostUnreachable, message));
    }
    let Some(error) = effect.error.clone() else {
        let reply = run(effect.waits)?;
        return Ok(match &effect.concern_error {
            None => reply,
            Some(error) => with_concern_error(reply, error, effect, failure),
        });
    };
    // The command does not reach its cursor, which would determine the kind of the failure.
    let failure = match (subject.request.command(), failure) {
        ("getMore", FailureKind::ChangeStream) => FailureKind::Other,
        _ => failure,
    };
    Err(match &effect.labels {
        Some(labels) => error.with_labels(labels),
        None if failure.is_within_transaction() => {
            with_transient_label(with_label_for(error, failure))
        }
        None => with_label_for(error, failure),
    })
}

fn with_concern_error(
    reply: Reply,
    error: &DocumentBuf,
    effect: &Effect,
    failure: FailureKind,
) -> Reply {
    let mut fields = doc! { "writeConcernError": (error.clone()) };
    let code = error.get("code").and_then(ValueRef::as_whole);
    let code = code.and_then(|code| i32::try_from(code).ok());
    let label = code
        .filter(|_| failure != FailureKind::InTransaction)
        .and_then(|code| label(ErrorCode(code), failure));
    let own = || label.map(str::to_owned).into_iter().collect();
    let labels = effect.labels.clone().unwrap_or_else(own);
    if !labels.is_empty() {
        fields.push("errorLabels", labels);
    }
    reply.with_fields(fields.as_document())
}
