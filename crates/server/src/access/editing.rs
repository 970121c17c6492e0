//! Common parts of the commands that change users and roles.

use std::sync::MutexGuard;

use windrow_access::scram::prepare_password;
use windrow_access::{
    Action, Credentials, Mechanism, Privilege, Resource, Restrictions, Role, RoleName,
    StoredCredentials, User, UserName, built_in,
};
use windrow_document::{Array, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Request};
use zeroize::Zeroizing;

use super::audited_change::audited_change;
use super::events::{self, Event};
use super::needs::AccessRequest;
use super::requirement::Requirement;
use super::sasl::iterations;
use super::store::{self, AuthCollection};
use crate::arguments::Arguments;
use crate::context::Context;
use crate::errors::{OrCommandError, refuse};
use crate::random;
use crate::state::State;
use crate::sync::lock;

/// Keeps other commands from changing users and roles meanwhile.
pub fn begin<'a>(context: &Context<'a>) -> MutexGuard<'a, ()> {
    lock(&context.state.directory.changing)
}

/// Returns the name in the first field of a command.
fn first_name(request: &Request) -> Result<&str, CommandError> {
    let (arguments, command) = (Arguments::new(request), request.command());
    let name = arguments.string(command)?;
    let name = name.ok_or_else(|| arguments.missing(command))?;
    if name.is_empty() || name.contains('\0') {
        return refuse(ErrorCode::BadValue, format!("{command} needs a name"));
    }
    Ok(name)
}

/// Returns the user that a command names in its first field.
pub fn named_user(request: &Request) -> Result<UserName, CommandError> {
    Ok(UserName::new(first_name(request)?, request.database()))
}

/// Returns the role that a command names in its first field.
pub fn named_role(request: &Request) -> Result<RoleName, CommandError> {
    Ok(RoleName::new(first_name(request)?, request.database()))
}

/// Returns the stored user with a name. Fails with UserNotFound if there is none.
pub fn existing_user(state: &State, name: &UserName) -> Result<User, CommandError> {
    let user = store::user(&state.services.engine, name)?;
    user.ok_or_else(|| {
        let message = format!("User '{name}' not found");
        CommandError::new(ErrorCode::UserNotFound, message)
    })
}

/// Returns the stored role with a name. Fails with RoleNotFound if there is none, and with
/// InvalidRoleModification if it is built in.
pub fn existing_role(state: &State, name: &RoleName) -> Result<Role, CommandError> {
    if built_in::exists(name) {
        let message = format!("{name} is a built-in role and cannot be modified");
        return refuse(ErrorCode::InvalidRoleModification, message);
    }
    let role = store::role(&state.services.engine, name)?;
    role.ok_or_else(|| role_not_found(name))
}

fn role_not_found(name: &RoleName) -> CommandError {
    CommandError::new(
        ErrorCode::RoleNotFound,
        format!("Could not find role: {name}"),
    )
}

/// Stores a changed user.
pub fn store_user(context: &Context<'_>, user: &User) -> Result<(), CommandError> {
    let engine = &context.state.services.engine;
    if AuthCollection::Users.replace(engine, &user.name.id(), user.to_document())? {
        return Ok(());
    }
    let message = format!("User '{}' not found", user.name);
    refuse(ErrorCode::UserNotFound, message)
}

/// Stores a changed role.
pub fn store_role(context: &Context<'_>, role: &Role) -> Result<(), CommandError> {
    let engine = &context.state.services.engine;
    if AuthCollection::Roles.replace(engine, &role.name.id(), role.to_document())? {
        return Ok(());
    }
    Err(role_not_found(&role.name))
}

/// Records that a command has changed a user, a role or all of a database.
pub fn record(context: &Context<'_>, request: &Request, target: &str) {
    let command = request.command();
    events::record(
        context.state,
        context.client,
        &Event::Change { command, target },
    );
    context.audit(command, || audited_change(request));
}

/// Returns the roles of an argument, if it is present. Fails with RoleNotFound if one does not
/// exist.
pub fn roles(
    state: &State,
    request: &Request,
    name: &str,
) -> Result<Option<Vec<RoleName>>, CommandError> {
    let Some(roles) = role_names(request, name)? else {
        return Ok(None);
    };
    for role in &roles {
        let engine = &state.services.engine;
        if !built_in::exists(role) && store::role(engine, role)?.is_none() {
            return Err(role_not_found(role));
        }
    }
    Ok(Some(roles))
}

/// Returns the roles of an argument, as [`roles`] does, without the check that they exist.
pub fn role_names(request: &Request, name: &str) -> Result<Option<Vec<RoleName>>, CommandError> {
    let Some(list) = Arguments::new(request).array(name)? else {
        return Ok(None);
    };
    RoleName::parse_list(list.iter(), request.database())
        .or_command_error()
        .map(Some)
}

/// Returns the roles of a required argument, of which there must be at least one.
pub fn some_roles(
    names: Option<Vec<RoleName>>,
    command: &str,
) -> Result<Vec<RoleName>, CommandError> {
    match names {
        Some(names) if !names.is_empty() => Ok(names),
        _ => refuse(
            ErrorCode::BadValue,
            format!("{command} command requires a non-empty \"roles\" array"),
        ),
    }
}

/// Returns the privileges of an argument, if it is present.
pub fn privileges(request: &Request) -> Result<Option<Vec<Privilege>>, CommandError> {
    let Some(list) = Arguments::new(request).array("privileges")? else {
        return Ok(None);
    };
    Privilege::parse_list(list).or_command_error().map(Some)
}

/// Returns the restrictions of an argument, if it is present.
pub fn restrictions(request: &Request) -> Result<Option<Restrictions>, CommandError> {
    let Some(list) = Arguments::new(request).array("authenticationRestrictions")? else {
        return Ok(None);
    };
    Restrictions::parse(list).or_command_error().map(Some)
}

/// Returns the mechanisms of an argument, if it is present.
pub fn mechanisms(request: &Request) -> Result<Option<Vec<Mechanism>>, CommandError> {
    let Some(list) = Arguments::new(request).array("mechanisms")? else {
        return Ok(None);
    };
    let parse = |value: ValueRef<'_>| {
        let name = value.as_str().unwrap_or_default();
        Mechanism::from_name(name).ok_or_else(|| {
            let message = format!("Unknown auth mechanism '{name}'");
            CommandError::new(ErrorCode::BadValue, message)
        })
    };
    let parsed: Result<Vec<_>, _> = list.iter().map(parse).collect();
    match parsed? {
        empty if empty.is_empty() => {
            refuse(ErrorCode::BadValue, "mechanisms field must not be empty")
        }
        parsed => Ok(Some(parsed)),
    }
}

/// Returns the credentials of a new password.
pub fn credentials(
    state: &State,
    request: &Request,
    user: &UserName,
    password: &str,
    mechanisms: Option<Vec<Mechanism>>,
) -> Result<StoredCredentials, CommandError> {
    let is_digest = Arguments::new(request).bool("digestPassword")? == Some(false);
    if password.is_empty() {
        return refuse(ErrorCode::BadValue, "User passwords must not be empty");
    }
    let all = if is_digest {
        vec![Mechanism::ScramSha1]
    } else {
        Mechanism::ALL.to_vec()
    };
    let mut stored = StoredCredentials::default();
    for mechanism in mechanisms.unwrap_or(all) {
        if is_digest && mechanism == Mechanism::ScramSha256 {
            let message = "Use of SCRAM-SHA-256 requires undigested passwords";
            return refuse(ErrorCode::BadValue, message);
        }
        let prepared = if is_digest {
            Zeroizing::new(password.as_bytes().to_vec())
        } else {
            prepare_password(mechanism, &user.user, password).or_command_error()?
        };
        let salt = random::secret(mechanism.salt_bytes())?;
        let count = iterations(state, mechanism);
        let credentials = Credentials::new(mechanism, &prepared, salt, count);
        stored.set(mechanism, credentials);
    }
    Ok(stored)
}

/// Administrators of users may grant roles of the databases in which these are defined.
pub fn needs_for_roles(request: &AccessRequest<'_>, argument: &str, action: Action) -> Requirement {
    let list = request.body.get(argument).and_then(ValueRef::as_array);
    let list = list.unwrap_or(Array::EMPTY);
    // The command will refuse a name that cannot be parsed.
    let names = list
        .iter()
        .filter_map(|role| RoleName::parse(role, request.database).ok());
    names.fold(Requirement::Nothing, |needed, name| {
        needed.and(Requirement::on(
            &Resource::Database(name.database),
            &[action],
        ))
    })
}

/// Administrators of users may grant privileges on their database. Those of `admin` may grant all.
pub fn needs_for_privileges(request: &AccessRequest<'_>, action: Action) -> Requirement {
    let list = request.body.get("privileges").and_then(ValueRef::as_array);
    let list = list.unwrap_or(Array::EMPTY);
    let privileges = list.iter().filter_map(|one| Privilege::parse(one).ok());
    privileges.fold(Requirement::Nothing, |needed, privilege| {
        let database = privilege.pattern.database().unwrap_or("admin");
        needed.and(Requirement::on(&Resource::database(database), &[action]))
    })
}

/// Returns the requirement of a command on roles for the roles, privileges and restrictions in its
/// arguments.
pub fn needs_for_role(request: &AccessRequest<'_>) -> Requirement {
    needs_for_roles(request, "roles", Action::grantRole)
        .and(needs_for_privileges(request, Action::grantRole))
        .and(needs_for_restrictions(request))
}

/// Returns the requirement for setting restrictions, which is a separate action.
pub fn needs_for_restrictions(request: &AccessRequest<'_>) -> Requirement {
    if request.body.contains("authenticationRestrictions") {
        return request.on_database(&[Action::setAuthenticationRestriction]);
    }
    Requirement::Nothing
}
