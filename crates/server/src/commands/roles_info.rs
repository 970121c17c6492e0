//! `rolesInfo`: roles with those from which they inherit and their privileges.

use windrow_access::{Action, Privilege, Resource, Restrictions, Role, RoleName, built_in};
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::directory::resolve_roles;
use crate::access::role_documents;
use crate::access::store::{self, AuthCollection, parse_role};
use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::{OrCommandError, refuse};

pub const ROLES_INFO: Command = Command {
    name: "rolesInfo",
    help: "lists roles",
    routing: Routing::Users,
    needs: Needs::Computed(requirement),
    arguments: AcceptedArguments::Only(&[
        "showAuthenticationRestrictions",
        "showBuiltinRoles",
        "showPrivileges",
    ]),
    run,
    ..Command::EMPTY
};

/// Returns the roles that a request asks for. `None` for all roles of the database.
fn selection(
    value: Option<ValueRef<'_>>,
    database: &str,
) -> Result<Option<Vec<RoleName>>, CommandError> {
    match value {
        Some(ValueRef::Array(values)) => RoleName::parse_list(values.iter(), database).map(Some),
        Some(value @ (ValueRef::String(_) | ValueRef::Document(_))) => {
            RoleName::parse_list([value], database).map(Some)
        }
        Some(number) if number.as_f64() == Some(1.0) => Ok(None),
        _ => {
            let message = "rolesInfo must be 1, a role or a list of roles";
            return refuse(ErrorCode::BadValue, message);
        }
    }
    .or_command_error()
}

fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let view = |database: &str| Requirement::on(&Resource::database(database), &[Action::viewRole]);
    match selection(request.first(), request.database) {
        Ok(Some(names)) => names.iter().fold(Requirement::Nothing, |needed, name| {
            // Every user may read its own roles.
            if request.has_role(name) {
                needed
            } else {
                needed.and(view(&name.database))
            }
        }),
        Ok(None) | Err(_) => view(request.database),
    }
}

/// The form in which privileges are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownPrivileges {
    None,
    Each,
    /// All roles together, in the form of a user.
    AsUserFragment,
}

/// A parsed `rolesInfo`.
struct RolesInfoRequest {
    /// The requested roles. `None` for all roles of the database.
    names: Option<Vec<RoleName>>,
    privileges: ShownPrivileges,
    /// `true` if all roles of the database include the built-in ones.
    with_built_in: bool,
    with_restrictions: bool,
}

impl RolesInfoRequest {
    fn parse(request: &Request) -> Result<RolesInfoRequest, CommandError> {
        let arguments = Arguments::new(request);
        let privileges = match arguments.get("showPrivileges") {
            Some(ValueRef::String("asUserFragment")) => ShownPrivileges::AsUserFragment,
            _ if arguments.flag("showPrivileges")? => ShownPrivileges::Each,
            _ => ShownPrivileges::None,
        };
        Ok(RolesInfoRequest {
            privileges,
            with_built_in: arguments.flag("showBuiltinRoles")?,
            with_restrictions: arguments.flag("showAuthenticationRestrictions")?,
            names: selection(arguments.get("rolesInfo"), request.database())?,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let database = request.database();
    let request = RolesInfoRequest::parse(request)?;
    if request.privileges == ShownPrivileges::AsUserFragment {
        let names = request.names.unwrap_or_default();
        return user_fragment(context, &names);
    }
    let mut shown = Vec::new();
    for role in select(context, request.names, database, request.with_built_in)? {
        let mut document = describe(context, &role, request.privileges)?;
        if request.with_restrictions {
            describe_restrictions(context, &role, &mut document)?;
        }
        shown.push(document);
    }
    Ok(Reply::ok(doc! { "roles": shown }))
}

fn select(
    context: &Context<'_>,
    names: Option<Vec<RoleName>>,
    database: &str,
    with_built_in: bool,
) -> Result<Vec<Role>, CommandError> {
    let engine = &context.state.services.engine;
    if let Some(names) = names {
        let roles = names.iter().map(|name| match built_in_role(name) {
            Some(role) => Ok(Some(role)),
            None => store::role(engine, name),
        });
        return roles.filter_map(Result::transpose).collect();
    }
    let stored = AuthCollection::Roles.find(engine, doc! { "db": database }.as_document())?;
    let mut roles = stored
        .iter()
        .map(parse_role)
        .collect::<Result<Vec<_>, _>>()?;
    if with_built_in {
        let names = built_in::names(database);
        roles.extend(names.iter().filter_map(built_in_role));
    }
    Ok(roles)
}

/// Returns a built-in role in the form of the others.
fn built_in_role(name: &RoleName) -> Option<Role> {
    Some(Role {
        privileges: built_in::privileges(name)?,
        roles: Vec::new(),
        restrictions: Restrictions::default(),
        name: name.clone(),
    })
}

fn describe(
    context: &Context<'_>,
    role: &Role,
    privileges: ShownPrivileges,
) -> Result<DocumentBuf, CommandError> {
    let resolved = resolve_roles(&context.state.services.engine, &role.roles)?;
    let mut shown = doc! {
        "_id": (role.name.id()), "role": (role.name.role.as_str()),
        "db": (role.name.database.as_str()), "roles": (role_documents(&role.roles)),
    };
    if privileges == ShownPrivileges::Each {
        shown.push("privileges", documents(&role.privileges));
    }
    shown.push("inheritedRoles", role_documents(&resolved.roles));
    if privileges == ShownPrivileges::Each {
        let mut all = resolved.privileges;
        all.extend(&role.privileges);
        shown.push("inheritedPrivileges", Value::Array(all.to_array()));
    }
    shown.push("isBuiltin", built_in::exists(&role.name));
    Ok(shown)
}

fn describe_restrictions(
    context: &Context<'_>,
    role: &Role,
    shown: &mut DocumentBuf,
) -> Result<(), CommandError> {
    let own = Value::Array(role.restrictions.to_array());
    shown.push("authenticationRestrictions", own);
    let resolved = resolve_roles(&context.state.services.engine, &role.roles)?;
    let all = resolved.restrictions.iter().chain([&role.restrictions]);
    let all = all
        .filter(|it| !it.is_empty())
        .map(|it| Value::Array(it.to_array()));
    shown.push(
        "inheritedAuthenticationRestrictions",
        Value::Array(all.collect()),
    );
    Ok(())
}

fn documents(privileges: &[Privilege]) -> Value {
    let documents = privileges.iter().map(|one| Value::from(one.to_document()));
    Value::Array(documents.collect())
}

/// Returns the privileges of a user that would have these roles.
fn user_fragment(context: &Context<'_>, names: &[RoleName]) -> Result<Reply, CommandError> {
    let resolved = resolve_roles(&context.state.services.engine, names)?;
    let restrictions = resolved
        .restrictions
        .iter()
        .map(|it| Value::Array(it.to_array()));
    Ok(Reply::ok(doc! {
        "userFragment": {
            "roles": (role_documents(names)),
            "inheritedRoles": (role_documents(&resolved.roles)),
            "inheritedPrivileges": (Value::Array(resolved.privileges.to_array())),
            "inheritedAuthenticationRestrictions": (Value::Array(restrictions.collect())),
        },
    }))
}
