//! Transactions of the server itself: a document and the counters of its values change together.

use std::sync::Arc;
use std::time::Duration;

use windrow_collection::{DocumentValidation, Origin, RetainedImage, StatementResult};
use windrow_wire::{CommandError, ErrorCode};

use crate::context::Context;
use crate::errors::OrCommandError;

/// The pauses after conflicts grow from the first to the second.
const PAUSE_MIN: Duration = Duration::from_micros(200);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// The result of a statement.
pub struct StatementOutcome<T> {
    pub value: T,
    /// The result to store for a retry. `None` if the statement changed nothing: then nothing is
    /// committed.
    pub result: Option<StatementResult>,
}

/// Runs a statement in the transaction of the client, or in one of its own, which is repeated after
/// conflicts with others. `number` is that of the statement in a retryable write.
pub fn run_in_transaction<T>(
    context: &Context<'_>,
    number: i32,
    run: &dyn Fn(&Context<'_>) -> Result<StatementOutcome<T>, CommandError>,
) -> Result<T, CommandError> {
    if context.transaction().is_some() {
        return Ok(run(context)?.value);
    }
    context.begin_retryable_write()?;
    let mut pause = PAUSE_MIN;
    loop {
        context.check()?;
        match attempt(context, number, run) {
            Err(error) if is_conflict(&error) => {
                std::thread::sleep(pause);
                pause = (2 * pause).min(PAUSE_MAX);
            }
            outcome => return outcome,
        }
    }
}

fn attempt<T>(
    context: &Context<'_>,
    number: i32,
    run: &dyn Fn(&Context<'_>) -> Result<StatementOutcome<T>, CommandError>,
) -> Result<T, CommandError> {
    let saving = context.saving(DocumentValidation::Enabled, &[], RetainedImage::Id);
    let origin = saving.statements.map_or(Origin::NO_SESSION, |it| it.origin);
    let transaction = Arc::new(context.state.services.engine.begin(origin));
    let inner = Context {
        transaction_context: None,
        own_transaction: Some(&transaction),
        ..*context
    };
    let done = run(&inner)?;
    let Some(result) = done.result else {
        transaction.abort();
        return Ok(done.value);
    };
    if saving.statements.is_some() {
        transaction
            .record_result(number, result)
            .or_command_error()?;
    }
    transaction.commit().or_command_error()?;
    Ok(done.value)
}

/// Returns `true` for errors after which a new transaction can succeed.
fn is_conflict(error: &CommandError) -> bool {
    matches!(
        error.code,
        ErrorCode::WriteConflict | ErrorCode::LockTimeout | ErrorCode::SnapshotUnavailable
    )
}
