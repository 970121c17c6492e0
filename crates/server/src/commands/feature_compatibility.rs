//! `setFeatureCompatibilityVersion`: there is one version, so that it can be said and nothing changes.

use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;

pub const SET_FEATURE_COMPATIBILITY_VERSION: Command = Command {
    name: "setFeatureCompatibilityVersion",
    help: "accepts the one version that there is",
    admin_only: true,
    write_concern: true,
    arguments: Accepted::Only(&["confirm"]),
    run,
    ..Command::EMPTY
};

const VERSION: &str = "8.0";

/// MongoDB's code where it is not confirmed.
const NOT_CONFIRMED: ErrorCode = ErrorCode(7_369_100);

fn run(request: &Request, _: &Context<'_>) -> Result<Reply, CommandError> {
    match request.get(request.command()) {
        Some(ValueRef::String(VERSION)) => {}
        _ => {
            let message = format!("the featureCompatibilityVersion is \"{VERSION}\" and no other");
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
    }
    if !Arguments::new(request).flag("confirm")? {
        let message = "Once you have changed the version you cannot go back without help: pass 'confirm: \
                       true' to say that you want to";
        return Err(CommandError::new(NOT_CONFIRMED, message));
    }
    Ok(Reply::ok(DocumentBuf::new()))
}
