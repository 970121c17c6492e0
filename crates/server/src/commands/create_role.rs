//! `createRole`: creates a user-defined role.

use windrow_access::{Action, Role};
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::role_rules;
use crate::access::store::{AuthCollection, store_schema_version};
use crate::access::{AccessRequest, Needs, Requirement, editing};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::refuse;

pub const CREATE_ROLE: Command = Command {
    name: "createRole",
    help: "creates a role of the database",
    routing: Routing::Users,
    needs: Needs::Computed(requirement),
    write_concern: true,
    arguments: AcceptedArguments::Only(&["authenticationRestrictions", "privileges", "roles"]),
    run,
    ..Command::EMPTY
};

fn requirement(request: &AccessRequest<'_>) -> Requirement {
    request
        .on_database(&[Action::createRole])
        .and(editing::needs_for_role(request))
}

/// MongoDB's error code for a role that exists.
const ALREADY_EXISTS: ErrorCode = ErrorCode(51_002);

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let name = editing::named_role(request)?;
    role_rules::check_name(&name)?;
    let (arguments, state) = (Arguments::new(request), context.state);
    let _editing_guard = editing::begin(context);
    let privileges = editing::privileges(request)?;
    let roles = editing::roles(state, request, "roles")?;
    let role = Role {
        privileges: role_rules::merged(
            privileges
                .ok_or_else(|| arguments.missing("privileges"))?
                .iter(),
        ),
        roles: roles.ok_or_else(|| arguments.missing("roles"))?,
        restrictions: editing::restrictions(request)?.unwrap_or_default(),
        name,
    };
    role_rules::check(state, &role)?;
    let engine = &state.services.engine;
    store_schema_version(engine)?;
    match AuthCollection::Roles.insert(engine, role.to_document()) {
        Err(error) if error.code == ErrorCode::DuplicateKey => {
            let message = format!("Role \"{}\" already exists", role.name);
            return refuse(ALREADY_EXISTS, message);
        }
        stored => stored?,
    }
    editing::record(context, request, &role.name.id());
    Ok(Reply::ok(DocumentBuf::new()))
}
