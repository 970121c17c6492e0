//! Admits commands with a transaction number: starts or continues transactions and retryable
//! writes.

use std::sync::Arc;

use windrow_document::ValueRef;
use windrow_wire::{CommandError, ErrorCode, Request};

use crate::command::{Command, InTransactions};
use crate::common_arguments::{CommonArguments, NumberedOperation, ReadConcern, TransactionPart};
use crate::error_labels::with_transient_label;
use crate::latency::LatencyClass;
use crate::namespace;
use crate::operations::Operation;
use crate::snapshot_reads;
use crate::state::State;
use crate::transaction_context::TransactionContext;
use crate::transactions::TransactionOptions;

/// Starts the transaction of the command, or continues the open one.
pub(crate) fn join(
    state: &State,
    request: &Request,
    command: &Command,
    common: &CommonArguments,
    numbered: &NumberedOperation,
    operation: &Operation,
) -> Result<TransactionContext, CommandError> {
    check_allowed(request, command, numbered.part)?;
    let (session, number) = (numbered.session, numbered.number);
    let guard = state
        .session_transactions
        .take(session, &state.services.engine, operation)?;
    let options = TransactionOptions {
        read_concern: common.read_concern,
        api: common.api,
    };
    let transaction = match numbered.part {
        TransactionPart::RetryableWrite => {
            guard.begin_writes(number)?;
            None
        }
        TransactionPart::Start => {
            let transaction = guard.begin(number, options, || {
                let snapshot = common
                    .read_at
                    .map(|time| snapshot_reads::open_at(state, time));
                Ok(snapshot
                    .transpose()
                    .map_err(with_transient_label)?
                    .map(Arc::new))
            })?;
            state.cursors.end_transactions(session);
            Some(transaction)
        }
        // A command that ends the transaction checks itself if there is one.
        TransactionPart::Continuation => {
            let resumed = if command.ends_transaction {
                None
            } else {
                Some(guard.resume(number).map_err(with_transient_label)?)
            };
            if let Some(open) = guard.options(number) {
                let begun_by = "transaction's first command";
                options.api.check_same(open.api, command.name, begun_by)?;
            }
            resumed
        }
    };
    Ok(TransactionContext::new(
        guard,
        numbered.clone(),
        transaction,
    ))
}

/// Fails and aborts the transaction if the command does not support its read concern.
pub(crate) fn check_reads(
    command: &Command,
    transaction_context: &TransactionContext,
) -> Result<(), CommandError> {
    if command.in_transactions != InTransactions::AllowedIfLocal {
        return Ok(());
    }
    let level = transaction_context.read_concern();
    if level == ReadConcern::Local {
        return Ok(());
    }
    let message = format!(
        "Command {} does not support this transaction's {{ readConcern: {{ level: \"{}\" }} }} :: \
         caused by :: read concern not supported",
        command.name,
        level.name()
    );
    Err(CommandError::new(ErrorCode::InvalidOptions, message))
}

/// Collections that transactions cannot read, because the server writes them outside of
/// transactions.
const INTERNAL_COLLECTIONS: &[&str] = &["system.profile", "system.views"];

/// Returns `true` if the command reads or closes the cursor of a `bulkWrite`. That cursor is on
/// `admin`, although its command writes to other databases.
fn is_of_bulk_write(request: &Request) -> bool {
    const NAME: Option<ValueRef<'_>> = Some(ValueRef::String("$cmd.bulkWrite"));
    let body = request.body();
    [body.get("collection"), body.get("killCursors")].contains(&NAME)
}

fn check_allowed(
    request: &Request,
    command: &Command,
    part: TransactionPart,
) -> Result<(), CommandError> {
    let refuse = |message: String| {
        let code = ErrorCode::OperationNotSupportedInTransaction;
        Err(CommandError::new(code, message))
    };
    let name = command.name;
    let is_internal =
        namespace::is_internal_database(request.database()) && !is_of_bulk_write(request);
    match (part, command.in_transactions) {
        (TransactionPart::RetryableWrite, _) if command.retryable => Ok(()),
        (TransactionPart::RetryableWrite, _) => Err(CommandError::new(
            ErrorCode::NotARetryableWriteCommand,
            format!("txnNumber may only be provided for retryable writes, not for {name}"),
        )),
        (_, InTransactions::Refused) => refuse(format!(
            "Cannot run '{name}' in a multi-document transaction."
        )),
        (TransactionPart::Start, InTransactions::Following) => refuse(format!(
            "Cannot start a transaction with the command '{name}'"
        )),
        (_, InTransactions::Allowed | InTransactions::AllowedIfLocal)
            if is_internal && !command.admin_only =>
        {
            let database = request.database();
            refuse(format!(
                "Cannot run command against the '{database}' database in a transaction."
            ))
        }
        _ if command.class == LatencyClass::Read && reads_internal_collection(request) => {
            refuse(format!(
                "Cannot run '{name}' on an internal collection in a multi-document transaction."
            ))
        }
        _ => (command.check)(request),
    }
}

fn reads_internal_collection(request: &Request) -> bool {
    let collection = request.body().first().map(|(_, value)| value);
    let mut own = INTERNAL_COLLECTIONS.iter();
    own.any(|own| collection == Some(ValueRef::String(own)))
}
