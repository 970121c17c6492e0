//! `killOp`: interrupts an operation.

use windrow_document::doc;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;

pub const KILL_OP: Command = Command {
    name: "killOp",
    help: "interrupts an operation: op is its number in currentOp",
    admin_only: true,
    arguments: Accepted::Only(&["op"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let id = arguments
        .whole_number("op")?
        .ok_or_else(|| CommandError::new(ErrorCode::NoSuchKey, "Did not provide \"op\" field"))?;
    let id = i32::try_from(id).map_err(|_| {
        CommandError::new(
            ErrorCode::BadValue,
            format!("invalid op : {id}. Op ID cannot be represented with 32 bits"),
        )
    })?;
    context.state.operations.kill(id, ErrorCode::Interrupted);
    Ok(Reply::ok(doc! { "info": "attempting to kill op" }))
}
