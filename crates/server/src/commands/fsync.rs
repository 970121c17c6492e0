//! `fsync`: everything that was written is on the disk when it returns.

use windrow_document::{ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::errors::OrCommandError;

pub const FSYNC: Command = Command {
    name: "fsync",
    help: "brings everything that was written to the disk",
    admin_only: true,
    arguments: Accepted::Only(&["fsyncLockAcquisitionTimeoutMillis", "lock"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    if arguments.get("lock").is_some_and(ValueRef::is_truthy) {
        let message = "fsync with lock is not supported: a copy of a data folder is whole without it \
                       where the server is stopped";
        return Err(CommandError::new(ErrorCode::NotImplemented, message));
    }
    context.state.services.engine.sync().or_command_error()?;
    Ok(Reply::ok(doc! { "numFiles": 1 }))
}
