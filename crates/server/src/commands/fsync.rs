//! `fsync`: returns when all writes are on disk.

use windrow_access::Action;
use windrow_document::{Type, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Join, Routing};
use crate::context::Context;
use crate::errors::OrCommandError;

pub const FSYNC: Command = Command {
    name: "fsync",
    help: "syncs all writes to the disk",
    routing: Routing::Each(Join::One),
    needs: Needs::OnServer(&[Action::fsync]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&["fsyncLockAcquisitionTimeoutMillis", "lock"]),
    run,
    ..Command::EMPTY
};

/// The server is never locked: see [`run`].
pub const FSYNC_UNLOCK: Command = Command {
    name: "fsyncUnlock",
    help: "unlocks the server after fsync with a lock, which is not supported",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::unlock]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&[]),
    run: |_, _| {
        let message = "fsyncUnlock called when not locked";
        Err(CommandError::new(ErrorCode::IllegalOperation, message))
    },
    ..Command::EMPTY
};

/// Checks the arguments. The time limit of the lock has no effect, because the lock is refused.
fn check_options(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    let limit = arguments.get("fsyncLockAcquisitionTimeoutMillis");
    match limit.map(ValueRef::type_of) {
        None | Some(Type::Int32 | Type::Null) => {}
        Some(found) => {
            let name = "fsyncLockAcquisitionTimeoutMillis";
            return Err(arguments.wrong_type(name, found, &[Type::Int32]));
        }
    }
    if arguments.flag("lock")? {
        let message = "fsync with lock is not supported: stop the server to copy its data folder";
        return Err(CommandError::new(ErrorCode::NotImplemented, message));
    }
    Ok(())
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    check_options(&Arguments::new(request))?;
    context.state.services.engine.sync().or_command_error()?;
    Ok(Reply::ok(doc! { "numFiles": 1 }))
}
