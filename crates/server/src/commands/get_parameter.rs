//! `getParameter`: the values of server parameters.

use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::generic::is_generic;
use crate::parameters::Parameters;

/// The names of parameters are its arguments.
pub const GET_PARAMETER: Command = Command {
    name: "getParameter",
    help: "gives server parameters: by name, or all with \"*\"",
    admin_only: true,
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

/// What is asked for: names, or everything; with details or without.
struct Wanted {
    all: bool,
    settable_only: bool,
    details: bool,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let wanted = parse(request)?;
    let mut found = DocumentBuf::new();
    for (name, value, settable) in context.state.parameters.all() {
        let is_named = request.get(name).is_some() && !is_generic(name);
        if !(wanted.all && (settable || !wanted.settable_only) || is_named) {
            continue;
        }
        match wanted.details {
            true => found.push(name, Parameters::details(value, settable)),
            false => found.push(name, value),
        }
    }
    if found.as_document().is_empty() {
        return Err(CommandError::new(
            ErrorCode::InvalidOptions,
            "no option found to get",
        ));
    }
    Ok(Reply::ok(found))
}

fn parse(request: &Request) -> Result<Wanted, CommandError> {
    match request.get("getParameter") {
        Some(ValueRef::String("*")) => Ok(Wanted {
            all: true,
            settable_only: false,
            details: false,
        }),
        Some(ValueRef::Document(options)) => {
            let options = Arguments::within("getParameter", options);
            let settable_only = match options.string("setAt")? {
                None | Some("startup") => false,
                Some("runtime") => true,
                Some(other) => {
                    let message = format!("setAt must be 'startup' or 'runtime', not '{other}'");
                    return Err(CommandError::new(ErrorCode::BadValue, message));
                }
            };
            let all = options.flag("allParameters")? || settable_only;
            Ok(Wanted {
                all,
                settable_only,
                details: options.flag("showDetails")?,
            })
        }
        _ => Ok(Wanted {
            all: false,
            settable_only: false,
            details: false,
        }),
    }
}
