//! `updateUser`: changes the password, the roles or other properties of a user.

use windrow_access::{Action, Resource, User};
use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement, editing};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::refuse;

pub const UPDATE_USER: Command = Command {
    name: "updateUser",
    help: "changes a user of the database",
    routing: Routing::Users,
    needs: Needs::Computed(requirement),
    secrets: &["pwd"],
    write_concern: true,
    arguments: AcceptedArguments::Only(CHANGES),
    run,
    ..Command::EMPTY
};

/// The properties that can change. `digestPassword` belongs to the password.
const CHANGES: &[&str] = &[
    "authenticationRestrictions",
    "customData",
    "digestPassword",
    "mechanisms",
    "pwd",
    "roles",
];

fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let name = request.first().and_then(ValueRef::as_str);
    let is_own = request
        .user()
        .is_some_and(|user| Some(user.user.as_str()) == name && user.database == request.database);
    // Users may have the privilege to change only themselves.
    let change = |any: Action, own: Action| {
        let any = request.on_database(&[any]);
        if is_own {
            any.or(request.on_database(&[own]))
        } else {
            any
        }
    };
    let mut needed = editing::needs_for_restrictions(request);
    let has = |name: &str| request.body.contains(name);
    if has("pwd") || has("mechanisms") {
        needed = needed.and(change(Action::changePassword, Action::changeOwnPassword));
    }
    if has("customData") {
        needed = needed.and(change(
            Action::changeCustomData,
            Action::changeOwnCustomData,
        ));
    }
    if has("roles") {
        // The old roles are revoked, whichever databases define them.
        needed = needed
            .and(Requirement::on(&Resource::AnyNormal, &[Action::revokeRole]))
            .and(editing::needs_for_roles(
                request,
                "roles",
                Action::grantRole,
            ));
    }
    if needed == Requirement::Nothing {
        // The command will be refused, and must not show if the user exists.
        return request.on_database(&[Action::viewUser]);
    }
    needed
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let name = editing::named_user(request)?;
    let mut changes = CHANGES.iter().filter(|name| **name != "digestPassword");
    if !changes.any(|name| request.body().contains(name)) {
        let message = "Must specify at least one field to update in updateUser";
        return refuse(ErrorCode::BadValue, message);
    }
    let _editing_guard = editing::begin(context);
    let mut user = editing::existing_user(context.state, &name)?;
    change(request, context, &mut user)?;
    editing::store_user(context, &user)?;
    editing::record(context, request, &user.name.id());
    Ok(Reply::ok(DocumentBuf::new()))
}

fn change(request: &Request, context: &Context<'_>, user: &mut User) -> Result<(), CommandError> {
    let (arguments, state) = (Arguments::new(request), context.state);
    if let Some(roles) = editing::roles(state, request, "roles")? {
        user.roles = roles;
    }
    if let Some(restrictions) = editing::restrictions(request)? {
        user.restrictions = restrictions;
    }
    if let Some(data) = arguments.document("customData")? {
        user.custom_data = Some(data.to_buf());
    }
    let mechanisms = editing::mechanisms(request)?;
    match arguments.string("pwd")? {
        Some(_) if user.is_external() => {
            let message = "Cannot set the password for users defined on the '$external' database";
            refuse(ErrorCode::BadValue, message)
        }
        Some(password) => {
            user.credentials =
                editing::credentials(state, request, &user.name, password, mechanisms)?;
            Ok(())
        }
        None => match mechanisms {
            None => Ok(()),
            Some(mechanisms) => {
                let known = user.credentials.mechanisms();
                if !mechanisms.iter().all(|one| known.contains(one)) {
                    let message = "mechanisms field must be a subset of previously set mechanisms";
                    return refuse(ErrorCode::BadValue, message);
                }
                let dropped = known.into_iter().filter(|one| !mechanisms.contains(one));
                dropped.for_each(|one| user.credentials.remove(one));
                Ok(())
            }
        },
    }
}
