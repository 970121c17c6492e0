//! Runs the function of a command. An interrupt of the operation ends it, and a panic becomes an
//! error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};

use windrow_mql::interrupt::with_interrupt;
use windrow_wire::limits::COMMAND_BYTES_MAX;
use windrow_wire::{CommandError, ErrorCode, Reply};

use super::Call;
use crate::commands::find;
use crate::context::Context;
use crate::latency::LatencyClass;
use crate::log::Severity;
use crate::operations::Operation;
use crate::queryable_encryption::encrypted_or_plain;
use crate::snapshot_reads;
use crate::transaction_context::TransactionContext;

/// The id of the log line about a panic. MongoDB has no such event.
const COMMAND_PANICKED: i32 = 9_000_002;

/// Runs the function of a command, at its snapshot. A panic becomes an error.
pub(super) fn run_command(
    call: Call<'_>,
    operation: &Arc<Operation>,
    transaction_context: Option<&TransactionContext>,
) -> Result<Reply, CommandError> {
    let Call {
        state,
        client,
        command,
        common,
        authority,
        requirement,
        ..
    } = call;
    let panicked = || handle_panic(call, operation);
    let snapshot = catch_panic(|| snapshot_reads::open(state, command, common), panicked)?;
    let context = Context {
        state,
        client,
        authority,
        requirement,
        operation,
        common,
        transaction_context,
        own_transaction: None,
        hides_arguments: false,
        snapshot: snapshot.as_ref(),
        times: &OnceLock::new(),
    };
    let run = || {
        with_interrupt(operation.clone(), || {
            encrypted_or_plain(command, call.request, &context, find)
        })
    };
    let outcome = catch_panic(run, panicked).map(|reply| match &snapshot {
        Some(snapshot) => snapshot_reads::with_snapshot_time(reply, command, snapshot),
        None => reply,
    });
    let outcome = match command.class {
        // A write has happened, so its reply must be returned.
        LatencyClass::Write => outcome,
        _ => outcome.and_then(checked_size),
    };
    outcome.map_err(|error| with_interrupt_reason(error, operation))
}

/// Fails if a reply is larger than a document may be, such as the explanation of a thousand stages.
fn checked_size(reply: Reply) -> Result<Reply, CommandError> {
    let bytes = reply.bytes();
    if bytes <= COMMAND_BYTES_MAX {
        return Ok(reply);
    }
    let message = format!(
        "BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {COMMAND_BYTES_MAX}(16MB)"
    );
    Err(CommandError::new(ErrorCode::BSONObjectTooLarge, message))
}

/// Replaces the error of an interrupted operation by the reason of the interrupt.
fn with_interrupt_reason(error: CommandError, operation: &Operation) -> CommandError {
    match error.code {
        ErrorCode::Interrupted => operation.check().err().unwrap_or(error),
        _ => error,
    }
}

/// Runs a function. If it panics, returns the error of `panicked`.
fn catch_panic<T>(
    run: impl FnOnce() -> Result<T, CommandError>,
    panicked: impl FnOnce() -> CommandError,
) -> Result<T, CommandError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(panicked()))
}

/// Handles a panic of a command: the client gets an error, and all others continue.
fn handle_panic(call: Call<'_>, operation: &Operation) -> CommandError {
    let Call {
        state,
        client,
        command,
        ..
    } = call;
    state.metrics.panics.fetch_add(1, Relaxed);
    let mut attr = operation.slow_attributes();
    attr.push("opid", operation.id);
    let log = &state.services.log;
    log.write(
        Severity::Error,
        "COMMAND",
        COMMAND_PANICKED,
        &client.name(),
        "Command panicked",
        attr,
    );
    let message = format!(
        "internal error in {}: the server's log has the details",
        command.name
    );
    CommandError::new(ErrorCode::UnknownError, message)
}
