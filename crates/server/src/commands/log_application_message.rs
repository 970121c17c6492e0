//! `logApplicationMessage`: writes a message of an application into the audit log.

use windrow_access::Action;
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{Command, Routing};
use crate::context::Context;

pub const LOG_APPLICATION_MESSAGE: Command = Command {
    name: "logApplicationMessage",
    help: "writes a message into the audit log",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::applicationMessage]),
    admin_only: true,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let (arguments, command) = (Arguments::new(request), request.command());
    let message = arguments.string(command)?;
    let message = message.ok_or_else(|| arguments.missing(command))?;
    context.audit("applicationMessage", || doc! { "msg": message });
    Ok(Reply::ok(DocumentBuf::new()))
}
