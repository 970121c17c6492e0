//! Executes a command as an operation: lists it, waits for a slot, joins its transaction, waits
//! until its writes are acknowledged, and records its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use windrow_wire::{CommandError, Reply};

use super::Call;
use super::record_end::record_end;
use super::run_command::run_command;
use crate::acknowledgment;
use crate::commands::secret_arguments;
use crate::common_arguments::TransactionPart;
use crate::latency::LatencyClass;
use crate::operations::{Operation, RunningOperation, Starter};
use crate::recorder;
use crate::state::State;
use crate::time_limits::time_limit;
use crate::transaction_admission;

/// The interval at which a wait checks if the operation must stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Runs a command after a wait, as an operation that is listed, limited and recorded.
pub(super) fn execute(call: Call<'_>, wait: Duration) -> Result<Reply, CommandError> {
    call.state.metrics.count(call.command.kind);
    let running = start(call);
    let operation = &running.operation;
    let outcome = run_in_slot(call, operation, wait).and_then(|reply| {
        let Call {
            state,
            request,
            command,
            common,
            ..
        } = call;
        acknowledgment::wait(state, request, command, common, operation, reply)
    });
    record_end(call, operation, &outcome);
    Ok(acknowledgment::reduce(outcome?, call.command, call.common))
}

/// Registers the operation of a command.
fn start(call: Call<'_>) -> RunningOperation<'_> {
    let Call {
        state,
        client,
        request,
        command,
        common,
        authority,
        ..
    } = call;
    let time_limit = time_limit(state, request, command, common);
    let time_limit = state.fail_points.limit(time_limit);
    let starter = Starter {
        kind: command.kind,
        secret_arguments,
        user: authority.user(),
        data_set: state.data_set.as_ref().map(|data_set| data_set.id),
    };
    let running = state
        .operations
        .start(request, client, starter, common.session, time_limit);
    let operation = &running.operation;
    operation.set_record_threshold(recorder::record_threshold(state));
    if command.ends_with_client || (command.is_limited_read)(request.body()) {
        operation.end_with_client();
    }
    running
}

/// Runs a command after a wait, once the limit of operations allows it.
fn run_in_slot(
    call: Call<'_>,
    operation: &Arc<Operation>,
    wait: Duration,
) -> Result<Reply, CommandError> {
    let _slot = needs_slot(call)
        .then(|| call.state.operation_slots.take(operation))
        .transpose()?;
    pause(call.state, operation, wait)?;
    run_numbered(call, operation)
}

/// Returns `true` for reads and writes, unless they continue a transaction: other operations may
/// wait for it.
fn needs_slot(call: Call<'_>) -> bool {
    let numbered = call.common.numbered.as_ref();
    let continues = numbered.is_some_and(|it| it.part == TransactionPart::Continuation);
    matches!(call.command.class, LatencyClass::Read | LatencyClass::Write) && !continues
}

/// Waits as a fail point demands, while the operation may continue. Fails at once if a fail point
/// has set its time limit to zero.
fn pause(state: &State, operation: &Operation, waits: Duration) -> Result<(), CommandError> {
    if operation.time_left().is_some_and(|left| left.is_zero()) {
        operation.check()?;
    }
    let began = Instant::now();
    while let Some(left) = waits
        .checked_sub(began.elapsed())
        .filter(|it| !it.is_zero())
    {
        operation.check()?;
        state.stop.wait(left.min(CHECK_INTERVAL));
    }
    Ok(())
}

/// Runs a command, within its transaction or retryable write if it has a transaction number.
fn run_numbered(call: Call<'_>, operation: &Arc<Operation>) -> Result<Reply, CommandError> {
    let Call {
        state,
        request,
        command,
        common,
        ..
    } = call;
    let Some(numbered) = &common.numbered else {
        return run_command(call, operation, None);
    };
    let transaction =
        transaction_admission::join(state, request, command, common, numbered, operation)?;
    let allowed = transaction_admission::check_reads(command, &transaction);
    let outcome = allowed.and_then(|()| run_command(call, operation, Some(&transaction)));
    transaction.leave(state, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::access::{Authority, Requirement};
    use crate::client::Client;
    use crate::command::Command;
    use crate::common_arguments::CommonArguments;
    use crate::connection::request_for_tests;
    use crate::log::Log;
    use crate::state::Services;
    use windrow_document::doc;
    use windrow_wire::ErrorCode;

    #[test]
    fn a_panic_is_a_reply() {
        let broken = Command {
            run: |_, _| panic!("broken"),
            ..Command::EMPTY
        };
        let broken: &'static Command = Box::leak(Box::new(broken));
        let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
        let state = State::new(Config::default(), services, 27017);
        let request = request_for_tests(&doc! { "ping": 1, "$db": "a" });
        let call = Call {
            state: &state,
            client: &Client::for_tests(),
            request: &request,
            command: broken,
            counts: None,
            common: &CommonArguments::default(),
            authority: &Authority::Unrestricted,
            requirement: &Requirement::Nothing,
        };
        let error = execute(call, Duration::ZERO).unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownError);
        assert_eq!(crate::metrics::int(&state.metrics.panics), 1);
        assert!(state.operations.all().is_empty());
    }
}
