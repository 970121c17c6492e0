//! `logRotate`: continues the log in a new file.

use windrow_access::Action;
use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;

pub const LOG_ROTATE: Command = Command {
    name: "logRotate",
    help: "renames the log file and opens a new one",
    needs: Needs::OnServer(&[Action::logRotate]),
    admin_only: true,
    arguments: Accepted::Only(&[]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    check(request)?;
    let failed = |error: std::io::Error| {
        let message = format!("the log cannot be rotated: {error}");
        CommandError::new(ErrorCode::FileRenameFailed, message)
    };
    context.state.services.log.rotate().map_err(failed)?;
    Ok(Reply::ok(DocumentBuf::new()))
}

/// Checks which log is rotated: "server", or a number for all logs. There is no audit log.
fn check(request: &Request) -> Result<(), CommandError> {
    match request.get("logRotate") {
        Some(ValueRef::String("server")) => Ok(()),
        Some(ValueRef::String(name)) => {
            let message = format!("Unknown log type '{name}'");
            Err(CommandError::new(ErrorCode::NoSuchKey, message))
        }
        _ => Arguments::new(request).flag("logRotate").map(drop),
    }
}
