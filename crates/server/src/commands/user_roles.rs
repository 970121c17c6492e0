//! `grantRolesToUser` and `revokeRolesFromUser`.

use windrow_access::Action;
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::{Needs, editing};
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;

pub const GRANT_ROLES_TO_USER: Command = Command {
    name: "grantRolesToUser",
    help: "grants roles to a user",
    routing: Routing::Users,
    needs: Needs::Computed(|request| editing::needs_for_roles(request, "roles", Action::grantRole)),
    run: grant,
    ..OF_ROLES
};

pub const REVOKE_ROLES_FROM_USER: Command = Command {
    name: "revokeRolesFromUser",
    help: "revokes roles from a user",
    routing: Routing::Users,
    needs: Needs::Computed(|request| {
        editing::needs_for_roles(request, "roles", Action::revokeRole)
    }),
    run: revoke,
    ..OF_ROLES
};

const OF_ROLES: Command = Command {
    write_concern: true,
    arguments: AcceptedArguments::Only(&["roles"]),
    ..Command::EMPTY
};

fn grant(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let name = editing::named_user(request)?;
    let _editing_guard = editing::begin(context);
    let granted = editing::roles(context.state, request, "roles")?;
    let granted = editing::some_roles(granted, "grantRolesToUser")?;
    let mut user = editing::existing_user(context.state, &name)?;
    for role in granted {
        if !user.roles.contains(&role) {
            user.roles.push(role);
        }
    }
    editing::store_user(context, &user)?;
    editing::record(context, request, &name.id());
    Ok(Reply::ok(DocumentBuf::new()))
}

fn revoke(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let name = editing::named_user(request)?;
    let revoked = editing::role_names(request, "roles")?;
    let revoked = editing::some_roles(revoked, "revokeRolesFromUser")?;
    let _editing_guard = editing::begin(context);
    let mut user = editing::existing_user(context.state, &name)?;
    user.roles.retain(|role| !revoked.contains(role));
    editing::store_user(context, &user)?;
    editing::record(context, request, &name.id());
    Ok(Reply::ok(DocumentBuf::new()))
}
