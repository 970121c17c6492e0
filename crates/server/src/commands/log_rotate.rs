//! `logRotate`: continues the log of the server, the audit log or both in new files.

use windrow_access::Action;
use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::auditing::{RotatedLogs, rotate_logs};
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::state::State;

pub const LOG_ROTATE: Command = Command {
    name: "logRotate",
    help: "renames log files and opens new ones: of the server, of the audit log, or both",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::logRotate]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&[]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let logs = logs(request, context.state)?;
    let failed = |error: std::io::Error| {
        let message = format!("the log cannot be rotated: {error}");
        CommandError::new(ErrorCode::FileRenameFailed, message)
    };
    rotate_logs(context.state, Some(context.client), logs).map_err(failed)?;
    Ok(Reply::ok(DocumentBuf::new()))
}

/// Returns the logs that are rotated: "server", "audit", or a number for all.
fn logs(request: &Request, state: &State) -> Result<RotatedLogs, CommandError> {
    match request.get("logRotate") {
        Some(ValueRef::String("server")) => Ok(RotatedLogs::Server),
        Some(ValueRef::String("audit")) if state.audit.is_some() => Ok(RotatedLogs::Audit),
        Some(ValueRef::String(name)) => {
            let message = format!("Unknown log type '{name}'");
            Err(CommandError::new(ErrorCode::NoSuchKey, message))
        }
        _ => Arguments::new(request)
            .flag("logRotate")
            .map(|_| RotatedLogs::All),
    }
}
