//! `updateRole`: replaces the privileges, the inherited roles or the restrictions of a role.

use windrow_access::Action;
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::role_rules;
use crate::access::{AccessRequest, Needs, Requirement, editing};
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::refuse;

pub const UPDATE_ROLE: Command = Command {
    name: "updateRole",
    help: "changes a role of the database",
    routing: Routing::Users,
    needs: Needs::Computed(requirement),
    write_concern: true,
    arguments: AcceptedArguments::Only(CHANGES),
    run,
    ..Command::EMPTY
};

const CHANGES: &[&str] = &["authenticationRestrictions", "privileges", "roles"];

/// Returns the requirement, which includes the revocation of the old privileges and roles.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    request
        .on_database(&[Action::revokeRole])
        .and(editing::needs_for_role(request))
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let name = editing::named_role(request)?;
    if !CHANGES.iter().any(|name| request.body().contains(name)) {
        let message = "updateRole requires at least one field to update";
        return refuse(ErrorCode::BadValue, message);
    }
    let state = context.state;
    let _editing_guard = editing::begin(context);
    let mut role = editing::existing_role(state, &name)?;
    if let Some(privileges) = editing::privileges(request)? {
        role.privileges = role_rules::merged(privileges.iter());
    }
    if let Some(roles) = editing::roles(state, request, "roles")? {
        role.roles = roles;
    }
    if let Some(restrictions) = editing::restrictions(request)? {
        role.restrictions = restrictions;
    }
    role_rules::check(state, &role)?;
    editing::store_role(context, &role)?;
    editing::record(context, request, &role.name.id());
    Ok(Reply::ok(DocumentBuf::new()))
}
