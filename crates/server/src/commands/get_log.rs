//! `getLog`: the newest log lines.

use windrow_access::Action;
use windrow_document::{ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const GET_LOG: Command = Command {
    name: "getLog",
    help: "returns the newest lines of a log, \"global\" or \"startupWarnings\"; \"*\" returns the names of the logs",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::getLog]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&[]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let log = &context.state.services.log;
    let arguments = Arguments::new(request);
    let name = match arguments.present("getLog") {
        Some(ValueRef::String(name)) => name,
        None => return Err(arguments.missing("getLog")),
        Some(_) => {
            let message = "Argument to getLog must be of type String";
            return Err(CommandError::new(ErrorCode::TypeMismatch, message));
        }
    };
    match name {
        "*" => Ok(Reply::ok(doc! { "names": ["global", "startupWarnings"] })),
        "global" => {
            let (lines, written) = log.recent();
            Ok(Reply::ok(
                doc! { "totalLinesWritten": (written as i32), "log": lines },
            ))
        }
        "startupWarnings" => {
            let lines = log.startup_warnings();
            Ok(Reply::ok(
                doc! { "totalLinesWritten": (lines.len() as i32), "log": lines },
            ))
        }
        _ => Err(CommandError::new(
            ErrorCode::OperationFailed,
            format!("No log named '{name}'"),
        )),
    }
}
