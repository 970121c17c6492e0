//! `shutdown`: stops the server.

use windrow_access::Action;
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::auditing;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const SHUTDOWN: Command = Command {
    name: "shutdown",
    help: "stops the server after running commands have replied",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::shutdown]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&["force", "timeoutSecs"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    arguments.flag("force")?;
    arguments.count("timeoutSecs")?;
    if !context.client.address.ip().is_loopback() {
        let message =
            "unauthorized: this command must run from localhost when running db without auth";
        return Err(CommandError::new(ErrorCode::Unauthorized, message));
    }
    let attr = doc! { "remote": (context.client.address.to_string()) };
    let log = &context.state.services.log;
    log.info(
        "COMMAND",
        4_695_400,
        &context.client.name(),
        "Shutdown was requested",
        attr,
    );
    auditing::record_shutdown(context.state, Some(context.client));
    context.state.stop.request();
    Ok(Reply::ok(DocumentBuf::new()))
}
