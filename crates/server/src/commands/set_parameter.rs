//! `setParameter`: changes a server parameter until the server stops.

use windrow_access::Action;
use windrow_document::doc;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::common_arguments::is_generic;
use crate::context::Context;
use crate::parameters::{Parameters, SetAt};

/// The arguments are the names of parameters.
pub const SET_PARAMETER: Command = Command {
    name: "setParameter",
    help: "changes a server parameter",
    routing: Routing::Here,
    needs: Needs::OnServer(&[Action::setParameter]),
    admin_only: true,
    arguments: AcceptedArguments::Any,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let changes = request
        .body()
        .iter()
        .skip(1)
        .filter(|(name, _)| !is_generic(name));
    // Either all parameters are changed or none.
    changes
        .clone()
        .try_for_each(|(name, _)| Parameters::check_name(name))?;
    let mut was = None;
    for (name, value) in changes {
        let before = context.state.set_parameter(name, value, SetAt::Runtime)?;
        let attr = doc! { "parameterName": name, "oldValue": (before.clone()), "newValue": value };
        let log = &context.state.services.log;
        log.info(
            "CONTROL",
            23_435,
            &context.client.name(),
            "Successfully set parameter",
            attr,
        );
        was = was.or(Some(before));
    }
    match was {
        Some(was) => Ok(Reply::ok(doc! { "was": was })),
        None => Err(CommandError::new(
            ErrorCode::InvalidOptions,
            "no option found to set, use help:true to see options ",
        )),
    }
}
