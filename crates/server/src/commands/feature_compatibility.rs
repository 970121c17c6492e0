//! `setFeatureCompatibilityVersion`. There is one version, so it can be set without an effect.

use windrow_access::Action;
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const SET_FEATURE_COMPATIBILITY_VERSION: Command = Command {
    name: "setFeatureCompatibilityVersion",
    help: "sets the feature compatibility version, of which there is one",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::setFeatureCompatibilityVersion]),
    admin_only: true,
    write_concern: true,
    arguments: AcceptedArguments::Only(&["confirm"]),
    run,
    ..Command::EMPTY
};

const VERSION: &str = "8.0";

/// MongoDB's error code for an invalid version.
const NO_VERSION: ErrorCode = ErrorCode(4_926_900);

/// MongoDB's error code for a missing confirmation.
const NOT_CONFIRMED: ErrorCode = ErrorCode(7_369_100);

fn run(request: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    let (arguments, name) = (Arguments::new(request), request.command());
    let version = arguments
        .string(name)?
        .ok_or_else(|| arguments.missing(name))?;
    let confirmed = arguments.flag("confirm")?;
    if version != VERSION {
        let message = format!("the only featureCompatibilityVersion is \"{VERSION}\"");
        return Err(CommandError::new(NO_VERSION, message));
    }
    if !confirmed {
        let message = "a change of the version cannot be reverted: confirm it with 'confirm: true'";
        return Err(CommandError::new(NOT_CONFIRMED, message));
    }
    Ok(Reply::ok(DocumentBuf::new()))
}
