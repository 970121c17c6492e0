//! Records the end of a command in the metrics, the log, the profile and the trace.

use std::sync::atomic::Ordering::Relaxed;

use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::Call;
use crate::access::Authority;
use crate::auditing::record_direct_writes;
use crate::command::Command;
use crate::command_spans::record_span;
use crate::operations::Operation;
use crate::recorder::{self, EndedCommand};
use crate::state::State;
use crate::time_limits::has_time_limit;
use crate::usage::CommandUse;

/// Records the end of a command.
pub(super) fn record_end(
    call: Call<'_>,
    operation: &Operation,
    outcome: &Result<Reply, CommandError>,
) {
    let Call {
        state,
        client,
        request,
        command,
        counts,
        authority,
        ..
    } = call;
    if let Err(error) = outcome {
        count_killed(state, request, command, error);
    }
    record_direct_writes(state, client, request);
    operation.count_work(&state.metrics);
    let took = operation.work_duration();
    state.metrics.record_latency(command.class, took);
    if let Some(counts) = counts {
        counts.latency.add(took);
    }
    if !matches!(authority, Authority::Nobody) {
        let used = CommandUse {
            connection: client.id,
            namespace: &operation.namespace(),
            kind: command.kind,
            class: command.class,
            took,
        };
        state.usage.record(&state.services.engine, used);
    }
    let ended = EndedCommand {
        client,
        operation,
        took,
        outcome,
    };
    recorder::record(state, &ended);
    record_span(state, command.name, &ended);
}

/// Counts an operation that was interrupted.
fn count_killed(state: &State, request: &Request, command: &Command, error: &CommandError) {
    let metrics = &state.metrics;
    let is_read = (command.is_limited_read)(request.body());
    let has_default = is_read && !has_time_limit(request);
    let counter = match error.code {
        ErrorCode::MaxTimeMSExpired if has_default => &metrics.killed_by_default_limit,
        ErrorCode::MaxTimeMSExpired => &metrics.killed_by_limit,
        ErrorCode::ClientDisconnect => &metrics.killed_by_disconnect,
        _ => return,
    };
    counter.fetch_add(1, Relaxed);
}
