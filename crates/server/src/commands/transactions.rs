//! `commitTransaction` and `abortTransaction`, which need a replica set: refused as MongoDB does
//! where no transaction runs.

use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::command::{Accepted, Command};
use crate::context::Context;

pub const ABORT_TRANSACTION: Command = Command {
    name: "abortTransaction",
    help: "gives up a transaction",
    ..REFUSED
};

pub const COMMIT_TRANSACTION: Command = Command {
    name: "commitTransaction",
    help: "makes the writes of a transaction visible",
    ..REFUSED
};

const REFUSED: Command = Command {
    admin_only: true,
    write_concern: true,
    in_api_version_1: true,
    arguments: Accepted::Only(&["recoveryToken"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    let message = format!("{} must be run within a transaction", request.command());
    Err(CommandError::new(ErrorCode::CommandFailed, message))
}
