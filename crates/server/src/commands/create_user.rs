//! `createUser`: creates a user.

use windrow_access::{Action, User, UserName};
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::store::{AuthCollection, store_schema_version};
use crate::access::{AccessRequest, Needs, Requirement, editing};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::refuse;
use crate::random;

pub const CREATE_USER: Command = Command {
    name: "createUser",
    help: "creates a user of the database",
    routing: Routing::Users,
    needs: Needs::Computed(requirement),
    secrets: &["pwd"],
    write_concern: true,
    arguments: AcceptedArguments::Only(&[
        "authenticationRestrictions",
        "customData",
        "digestPassword",
        "mechanisms",
        "pwd",
        "roles",
    ]),
    run,
    ..Command::EMPTY
};

fn requirement(request: &AccessRequest<'_>) -> Requirement {
    request
        .on_database(&[Action::createUser])
        .and(editing::needs_for_roles(
            request,
            "roles",
            Action::grantRole,
        ))
        .and(editing::needs_for_restrictions(request))
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let name = editing::named_user(request)?;
    let _editing_guard = editing::begin(context);
    let user = parse(request, context, name)?;
    let engine = &context.state.services.engine;
    store_schema_version(engine)?;
    context.state.fake_users.prepare(engine)?;
    match AuthCollection::Users.insert(engine, user.to_document()) {
        Err(error) if error.code == ErrorCode::DuplicateKey => {
            let message = format!("User \"{}\" already exists", user.name);
            return refuse(ALREADY_EXISTS, message);
        }
        stored => stored?,
    }
    editing::record(context, request, &user.name.id());
    Ok(Reply::ok(DocumentBuf::new()))
}

/// MongoDB's error code for a user that exists.
const ALREADY_EXISTS: ErrorCode = ErrorCode(51_003);

fn parse(request: &Request, context: &Context<'_>, name: UserName) -> Result<User, CommandError> {
    let (arguments, state) = (Arguments::new(request), context.state);
    if name.database == "local" {
        let message = "Cannot create users in the local database";
        return refuse(ErrorCode::BadValue, message);
    }
    let roles = editing::roles(state, request, "roles")?;
    let roles = roles.ok_or_else(|| arguments.missing("roles"))?;
    let mechanisms = editing::mechanisms(request)?;
    let mut user = User {
        id: Some(random::uuid()),
        credentials: Default::default(),
        roles,
        restrictions: editing::restrictions(request)?.unwrap_or_default(),
        custom_data: arguments.document("customData")?.map(|data| data.to_buf()),
        name,
    };
    match arguments.string("pwd")? {
        Some(_) if user.is_external() => {
            let message = "Cannot set the password for users defined on the '$external' database";
            return refuse(ErrorCode::BadValue, message);
        }
        Some(password) => {
            user.credentials =
                editing::credentials(state, request, &user.name, password, mechanisms)?;
        }
        None if user.is_external() => {}
        None => {
            let message = "Must provide a 'pwd' field for all user documents, except those with \
                           '$external' as the user's source db";
            return refuse(ErrorCode::BadValue, message);
        }
    }
    Ok(user)
}
