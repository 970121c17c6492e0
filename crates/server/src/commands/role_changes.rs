//! `grantRolesToRole`, `revokeRolesFromRole`, `grantPrivilegesToRole` and
//! `revokePrivilegesFromRole`.

use windrow_access::{Action, Privilege, Privileges, Role};
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::role_rules;
use crate::access::{Needs, editing};
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::refuse;

pub const GRANT_ROLES_TO_ROLE: Command = Command {
    name: "grantRolesToRole",
    help: "lets a role inherit from other roles",
    routing: Routing::Users,
    needs: Needs::Computed(|request| editing::needs_for_roles(request, "roles", Action::grantRole)),
    run: |request, context| change(request, context, grant_roles),
    ..OF_ROLES
};

pub const REVOKE_ROLES_FROM_ROLE: Command = Command {
    name: "revokeRolesFromRole",
    help: "ends that a role inherits from other roles",
    routing: Routing::Users,
    needs: Needs::Computed(|request| {
        editing::needs_for_roles(request, "roles", Action::revokeRole)
    }),
    run: |request, context| change(request, context, revoke_roles),
    ..OF_ROLES
};

pub const GRANT_PRIVILEGES_TO_ROLE: Command = Command {
    name: "grantPrivilegesToRole",
    help: "adds privileges to a role",
    routing: Routing::Users,
    needs: Needs::Computed(|request| editing::needs_for_privileges(request, Action::grantRole)),
    run: |request, context| change(request, context, grant_privileges),
    ..OF_PRIVILEGES
};

pub const REVOKE_PRIVILEGES_FROM_ROLE: Command = Command {
    name: "revokePrivilegesFromRole",
    help: "removes privileges from a role",
    routing: Routing::Users,
    needs: Needs::Computed(|request| editing::needs_for_privileges(request, Action::revokeRole)),
    run: |request, context| change(request, context, revoke_privileges),
    ..OF_PRIVILEGES
};

const OF_ROLES: Command = Command {
    write_concern: true,
    arguments: AcceptedArguments::Only(&["roles"]),
    ..Command::EMPTY
};

const OF_PRIVILEGES: Command = Command {
    write_concern: true,
    arguments: AcceptedArguments::Only(&["privileges"]),
    ..Command::EMPTY
};

/// Changes a role by the arguments of a request.
type ChangeRole = fn(&Request, &Context<'_>, &mut Role) -> Result<(), CommandError>;

fn change(
    request: &Request,
    context: &Context<'_>,
    change: ChangeRole,
) -> Result<Reply, CommandError> {
    let name = editing::named_role(request)?;
    let _editing_guard = editing::begin(context);
    let mut role = editing::existing_role(context.state, &name)?;
    change(request, context, &mut role)?;
    role_rules::check(context.state, &role)?;
    editing::store_role(context, &role)?;
    editing::record(context, request, &name.id());
    Ok(Reply::ok(DocumentBuf::new()))
}

fn grant_roles(
    request: &Request,
    context: &Context<'_>,
    role: &mut Role,
) -> Result<(), CommandError> {
    let granted = editing::roles(context.state, request, "roles")?;
    for name in editing::some_roles(granted, request.command())? {
        if !role.roles.contains(&name) {
            role.roles.push(name);
        }
    }
    Ok(())
}

fn revoke_roles(request: &Request, _: &Context<'_>, role: &mut Role) -> Result<(), CommandError> {
    let revoked = editing::role_names(request, "roles")?;
    let revoked = editing::some_roles(revoked, request.command())?;
    role.roles.retain(|name| !revoked.contains(name));
    Ok(())
}

fn some_privileges(request: &Request) -> Result<Vec<Privilege>, CommandError> {
    match editing::privileges(request)? {
        Some(privileges) if !privileges.is_empty() => Ok(privileges),
        _ => {
            let command = request.command();
            let message = format!("{command} command requires a non-empty \"privileges\" array");
            refuse(ErrorCode::BadValue, message)
        }
    }
}

fn grant_privileges(
    request: &Request,
    _: &Context<'_>,
    role: &mut Role,
) -> Result<(), CommandError> {
    let granted = some_privileges(request)?;
    role.privileges = role_rules::merged(role.privileges.iter().chain(&granted));
    Ok(())
}

fn revoke_privileges(
    request: &Request,
    _: &Context<'_>,
    role: &mut Role,
) -> Result<(), CommandError> {
    let mut privileges = Privileges::default();
    privileges.extend(&role.privileges);
    some_privileges(request)?
        .iter()
        .for_each(|one| privileges.remove(one));
    role.privileges = privileges.iter().collect();
    Ok(())
}
