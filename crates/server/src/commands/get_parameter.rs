//! `getParameter`: the values of server parameters.

use windrow_access::Action;
use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::common_arguments::is_generic;
use crate::context::Context;
use crate::parameters::SetAt;

/// The arguments are the names of parameters.
pub const GET_PARAMETER: Command = Command {
    name: "getParameter",
    help: "returns server parameters: by name, or all with \"*\"",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::getParameter]),
    admin_only: true,
    arguments: AcceptedArguments::Any,
    run,
    ..Command::EMPTY
};

/// The requested parameters: names or all, with or without details.
#[derive(Default)]
struct GetParameterRequest {
    all: bool,
    /// Selects parameters by when they can be set.
    set_at: Option<SetAt>,
    details: bool,
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = parse(request)?;
    let mut found = DocumentBuf::new();
    for shown in context.state.parameters.all() {
        let name = shown.name;
        let is_named = request.get(name).is_some() && !is_generic(name);
        let is_meant = arguments.set_at.is_none_or(|at| shown.is_settable(at));
        if !(arguments.all && is_meant || !arguments.all && is_named) {
            continue;
        }
        if arguments.details {
            found.push(name, shown.details())
        } else {
            found.push(name, shown.value)
        }
    }
    if found.as_document().is_empty() && !arguments.all {
        return Err(CommandError::new(
            ErrorCode::InvalidOptions,
            "no option found to get",
        ));
    }
    Ok(Reply::ok(found))
}

fn parse(request: &Request) -> Result<GetParameterRequest, CommandError> {
    match request.get("getParameter") {
        Some(ValueRef::String("*")) => Ok(GetParameterRequest {
            all: true,
            ..GetParameterRequest::default()
        }),
        Some(ValueRef::Document(fields)) => {
            let options = Arguments::within("getParameter", fields);
            let set_at = match options.string("setAt")? {
                None => None,
                Some("startup") => Some(SetAt::Start),
                Some("runtime") => Some(SetAt::Runtime),
                Some(other) => {
                    let message = format!("setAt must be 'startup' or 'runtime', not '{other}'");
                    return Err(CommandError::new(ErrorCode::BadValue, message));
                }
            };
            let arguments = GetParameterRequest {
                all: options.flag("allParameters")?,
                set_at,
                details: options.flag("showDetails")?,
            };
            let known = ["showDetails", "allParameters", "setAt"];
            options.only(&known)?;
            Ok(arguments)
        }
        _ => Ok(GetParameterRequest::default()),
    }
}
