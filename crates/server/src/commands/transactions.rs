//! `commitTransaction` and `abortTransaction`: end a transaction.

use windrow_access::Action;
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, InTransactions, Routing};
use crate::context::Context;
use crate::latency::LatencyClass;
use crate::transaction_context::TransactionContext;

pub const ABORT_TRANSACTION: Command = Command {
    name: "abortTransaction",
    help: "aborts a transaction",
    routing: Routing::Transaction,
    needs: Needs::Login,
    run: |request, context| {
        transaction(request, context)?.abort(context.state)?;
        Ok(Reply::ok(DocumentBuf::new()))
    },
    ..ENDS
};

pub const COMMIT_TRANSACTION: Command = Command {
    name: "commitTransaction",
    help: "commits a transaction",
    routing: Routing::Transaction,
    needs: Needs::Login,
    run: |request, context| {
        transaction(request, context)?.commit(context.state)?;
        Ok(Reply::ok(DocumentBuf::new()))
    },
    ..ENDS
};

pub const PREPARE_TRANSACTION: Command = Command {
    name: "prepareTransaction",
    help: "is not supported: it is for shards of a cluster",
    routing: Routing::Transaction,
    needs: Needs::OnServer(&[Action::internal]),
    admin_only: true,
    write_concern: true,
    arguments: AcceptedArguments::Any,
    run: |_, _| {
        let message =
            "failed to commit transaction: 'prepareTransaction' is only supported on shards";
        Err(CommandError::new(ErrorCode::NoShardingEnabled, message))
    },
    ..Command::EMPTY
};

const ENDS: Command = Command {
    admin_only: true,
    write_concern: true,
    in_transactions: InTransactions::Following,
    ends_transaction: true,
    class: LatencyClass::Transaction,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&["recoveryToken"]),
    ..Command::EMPTY
};

/// Returns the transaction that the command ends.
fn transaction<'a>(
    request: &Request,
    context: &Context<'a>,
) -> Result<&'a TransactionContext, CommandError> {
    let transaction_context = context
        .transaction_context
        .filter(|it| !it.is_retryable_write());
    transaction_context.ok_or_else(|| {
        let message = format!("{} must be run within a transaction", request.command());
        CommandError::new(ErrorCode::CommandFailed, message)
    })
}
