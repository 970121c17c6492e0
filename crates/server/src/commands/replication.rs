//! Commands of replica sets, which a server without replication refuses with MongoDB's answer, so
//! that tools see what kind of server it is.

use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::command::{Accepted, Command};
use crate::context::Context;

pub const REPL_SET_GET_CONFIG: Command = Command {
    name: "replSetGetConfig",
    help: "the configuration of a replica set, which this server is not part of",
    ..REFUSED
};

pub const REPL_SET_GET_STATUS: Command = Command {
    name: "replSetGetStatus",
    help: "the state of a replica set, which this server is not part of",
    ..REFUSED
};

pub const REPL_SET_STEP_DOWN: Command = Command {
    name: "replSetStepDown",
    help: "makes a primary of a replica set step down, which this server is not part of",
    ..REFUSED
};

const REFUSED: Command = Command {
    admin_only: true,
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

fn run(_: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    Err(CommandError::new(
        ErrorCode::NoReplicationEnabled,
        "not running with --replSet",
    ))
}
