//! `killOp`: interrupts an operation.

use windrow_access::{Action, Resource};
use windrow_document::doc;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const KILL_OP: Command = Command {
    name: "killOp",
    help: "interrupts an operation: op is its id in currentOp",
    routing: Routing::Here,
    needs: Needs::Login,
    admin_only: true,
    arguments: AcceptedArguments::Only(&["op"]),
    run,
    ..Command::EMPTY
};

/// MongoDB's error code for a number that is no operation id.
const TOO_LARGE: ErrorCode = ErrorCode(26_823);

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let missing = || CommandError::new(ErrorCode::NoSuchKey, "Did not provide \"op\" field");
    let number = arguments.whole_number("op")?.ok_or_else(missing)?;
    let is_whole = arguments
        .get("op")
        .is_some_and(|op| op.as_whole().is_some());
    let id = i32::try_from(number).map_err(|_| {
        let message = format!("invalid op : {number}. Op ID cannot be represented with 32 bits");
        CommandError::new(TOO_LARGE, message)
    })?;
    if !is_whole {
        let message = format!(
            "Expected field \"op\" to have a value exactly representable as a 64-bit \
                               integer, but it is a fraction of or beside {number}"
        );
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    let operations = &context.state.operations;
    let running = operations.all();
    let operation = running.iter().find(|operation| operation.id == id);
    let owner = operation.and_then(|operation| operation.user.as_ref());
    let is_allowed = context.authority.owns(owner)
        || context.authority.allows(&Resource::Cluster, Action::killop);
    if !is_allowed {
        let message = "not authorized to kill the operations of other users";
        return Err(CommandError::new(ErrorCode::Unauthorized, message));
    }
    operations.kill(id, ErrorCode::Interrupted);
    Ok(Reply::ok(doc! { "info": "attempting to kill op" }))
}
