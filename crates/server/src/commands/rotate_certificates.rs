//! `rotateCertificates`: reads the files of TLS again.

use windrow_access::Action;
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const ROTATE_CERTIFICATES: Command = Command {
    name: "rotateCertificates",
    help: "reads the certificates again, for new connections",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::rotateCertificates]),
    admin_only: true,
    arguments: AcceptedArguments::Only(&["message"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    Arguments::new(request).string("message")?;
    if context.state.tls.is_none() {
        let message = "rotateCertificates command requires that TLS is enabled";
        return Err(CommandError::new(ErrorCode::IllegalOperation, message));
    }
    let rotated = context.state.rotate_certificates(&context.client.name());
    rotated.map_err(|error| {
        CommandError::new(ErrorCode::InvalidSSLConfiguration, error.to_string())
    })?;
    Ok(Reply::ok(DocumentBuf::new()))
}
