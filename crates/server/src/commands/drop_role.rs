//! `dropRole` and `dropAllRolesFromDatabase`: delete roles, and revoke them from users and roles.

use windrow_access::{Action, RoleName};
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, Reply, Request};

use crate::access::store::{AuthCollection, parse_role, parse_user};
use crate::access::{Needs, editing};
use crate::command::{Command, Routing};
use crate::context::Context;

pub const DROP_ROLE: Command = Command {
    name: "dropRole",
    help: "deletes a role of the database",
    routing: Routing::Users,
    needs: Needs::OnDatabase(&[Action::dropRole]),
    write_concern: true,
    run,
    ..Command::EMPTY
};

pub const DROP_ALL_ROLES_FROM_DATABASE: Command = Command {
    name: "dropAllRolesFromDatabase",
    help: "deletes all roles of the database",
    routing: Routing::Users,
    needs: Needs::OnDatabase(&[Action::dropRole]),
    write_concern: true,
    run: all,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let name = editing::named_role(request)?;
    let _editing_guard = editing::begin(context);
    let role = editing::existing_role(context.state, &name)?;
    drop_roles(context, &[role.name])?;
    editing::record(context, request, &name.id());
    Ok(Reply::ok(DocumentBuf::new()))
}

fn all(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let (engine, database) = (&context.state.services.engine, request.database());
    let _editing_guard = editing::begin(context);
    let stored = AuthCollection::Roles.find(engine, doc! { "db": database }.as_document())?;
    let names = stored.iter().map(|role| parse_role(role).map(|it| it.name));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    drop_roles(context, &names)?;
    editing::record(context, request, database);
    Ok(Reply::ok(doc! { "n": (names.len() as i32) }))
}

/// Revokes the roles first. After a crash in between, a role without users is left.
fn drop_roles(context: &Context<'_>, dropped: &[RoleName]) -> Result<(), CommandError> {
    let engine = &context.state.services.engine;
    let everything = DocumentBuf::new();
    for document in AuthCollection::Users.find(engine, everything.as_document())? {
        let mut user = parse_user(&document)?;
        if revoke(&mut user.roles, dropped) {
            editing::store_user(context, &user)?;
        }
    }
    for document in AuthCollection::Roles.find(engine, everything.as_document())? {
        let mut role = parse_role(&document)?;
        if revoke(&mut role.roles, dropped) {
            editing::store_role(context, &role)?;
        }
    }
    for name in dropped {
        AuthCollection::Roles.delete(engine, &name.id())?;
    }
    Ok(())
}

/// Removes roles from a list. Returns `true` if there were any.
fn revoke(roles: &mut Vec<RoleName>, revoked: &[RoleName]) -> bool {
    let before = roles.len();
    roles.retain(|role| !revoked.contains(role));
    roles.len() < before
}
