//! `usersInfo`: users with their roles and privileges.

use windrow_access::{Action, Resource, User, UserName};
use windrow_document::{Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::directory::resolve_roles;
use crate::access::role_documents;
use crate::access::store::{self, AuthCollection, parse_user};
use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::context::Context;
use crate::errors::{OrCommandError, refuse};

pub const USERS_INFO: Command = Command {
    name: "usersInfo",
    help: "lists users",
    routing: Routing::Users,
    needs: Needs::Computed(requirement),
    arguments: AcceptedArguments::Only(&[
        "filter",
        "showAuthenticationRestrictions",
        "showCredentials",
        "showCustomData",
        "showPrivileges",
    ]),
    run,
    ..Command::EMPTY
};

/// The users that a request asks for.
enum Selection {
    OfDatabase,
    OfAllDatabases,
    Named(Vec<UserName>),
}

impl Selection {
    fn parse(value: Option<ValueRef<'_>>, database: &str) -> Result<Selection, CommandError> {
        let one = |value| UserName::parse(value, database).or_command_error();
        match value {
            Some(ValueRef::Document(selection)) if is_for_all(selection) => {
                Ok(Selection::OfAllDatabases)
            }
            Some(value @ (ValueRef::String(_) | ValueRef::Document(_))) => {
                Ok(Selection::Named(vec![one(value)?]))
            }
            Some(ValueRef::Array(values)) => {
                let names = values.iter().map(one).collect::<Result<_, _>>()?;
                Ok(Selection::Named(names))
            }
            Some(number) if number.as_f64() == Some(1.0) => Ok(Selection::OfDatabase),
            other => {
                let found = other.map_or(Type::Null, ValueRef::type_of).name();
                let message = format!(
                    "usersInfo must be 1, a user, a list of users or {{forAllDBs: true}}, not {found}"
                );
                refuse(ErrorCode::BadValue, message)
            }
        }
    }
}

fn is_for_all(selection: Document<'_>) -> bool {
    selection.get("forAllDBs").is_some_and(ValueRef::is_truthy)
}

/// Returns the requirement: a user may always ask for itself.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let view = |database: &str| Requirement::on(&Resource::database(database), &[Action::viewUser]);
    match Selection::parse(request.first(), request.database) {
        Ok(Selection::OfAllDatabases) => Requirement::on_server(&[Action::viewUser]),
        Ok(Selection::Named(names)) => {
            let others = names.iter().filter(|name| request.user() != Some(name));
            others.fold(Requirement::Nothing, |needed, name| {
                needed.and(view(&name.database))
            })
        }
        Ok(Selection::OfDatabase) | Err(_) => view(request.database),
    }
}

/// A parsed `usersInfo`.
struct UsersInfoRequest {
    selection: Selection,
    details: Details,
    filter: Option<Filter>,
}

/// The details of users that are shown.
struct Details {
    credentials: bool,
    custom_data: bool,
    privileges: bool,
    restrictions: bool,
}

impl UsersInfoRequest {
    fn parse(request: &Request) -> Result<UsersInfoRequest, CommandError> {
        let arguments = Arguments::new(request);
        let details = Details {
            credentials: arguments.flag("showCredentials")?,
            custom_data: arguments.switch("showCustomData")?.unwrap_or(true),
            privileges: arguments.flag("showPrivileges")?,
            restrictions: arguments.flag("showAuthenticationRestrictions")?,
        };
        let selection = Selection::parse(arguments.get("usersInfo"), request.database())?;
        let is_named = matches!(selection, Selection::Named(_));
        if !is_named && (details.privileges || details.restrictions) {
            let message = "Privilege or restriction details require exact-match usersInfo queries";
            return refuse(ErrorCode::IllegalOperation, message);
        }
        let filter = arguments.document("filter")?.map(Filter::parse);
        Ok(UsersInfoRequest {
            selection,
            details,
            filter: filter.transpose().or_command_error()?,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let database = request.database();
    let request = UsersInfoRequest::parse(request)?;
    let engine = &context.state.services.engine;
    let mut shown: Vec<DocumentBuf> = Vec::new();
    for user in select(context, &request.selection, database)? {
        let document = describe(engine, &user, &request.details)?;
        let filter = request.filter.as_ref();
        let matches = filter.map(|it| it.matches(document.as_document()));
        if matches.transpose().or_command_error()?.unwrap_or(true) {
            shown.push(document);
        }
    }
    Ok(Reply::ok(doc! { "users": shown }))
}

fn select(
    context: &Context<'_>,
    selection: &Selection,
    database: &str,
) -> Result<Vec<User>, CommandError> {
    let engine = &context.state.services.engine;
    let filter = match selection {
        Selection::Named(names) => {
            let users = names.iter().map(|name| store::user(engine, name));
            return users.filter_map(Result::transpose).collect();
        }
        Selection::OfDatabase => doc! { "db": database },
        Selection::OfAllDatabases => DocumentBuf::new(),
    };
    let found = AuthCollection::Users.find(engine, filter.as_document())?;
    Ok(found
        .iter()
        .filter_map(|document| parse_or_warn(context, document))
        .collect())
}

/// Parses a stored user. A document that is not valid was written without the commands for users;
/// it is left out with a warning, so that the others can be seen.
fn parse_or_warn(context: &Context<'_>, document: &DocumentBuf) -> Option<User> {
    let parsed = parse_user(document);
    let warn = |error: &CommandError| {
        let attr = doc! {
            "_id": (document.get("_id").unwrap_or(ValueRef::Null)), "error": (&*error.message),
        };
        let log = &context.state.services.log;
        let message = "A document of admin.system.users is not a user";
        let name = context.client.name();
        log.warn("ACCESS", INVALID_USER, &name, message, attr);
    };
    parsed.inspect_err(warn).ok()
}

/// The id of the log line about a document that is not a user. MongoDB has no such event.
const INVALID_USER: i32 = 9_000_022;

fn describe(
    engine: &windrow_collection::Engine,
    user: &User,
    details: &Details,
) -> Result<DocumentBuf, CommandError> {
    let mut shown = DocumentBuf::new();
    for (name, value) in user.to_document().iter() {
        let is_shown = match name {
            "credentials" => details.credentials,
            "customData" => details.custom_data,
            // It follows with the other details.
            "authenticationRestrictions" => false,
            _ => true,
        };
        if is_shown {
            shown.push(name, value);
        }
    }
    shown.push("mechanisms", user.mechanism_names());
    let resolved = resolve_roles(engine, &user.roles)?;
    if details.privileges {
        shown.push("inheritedRoles", role_documents(&resolved.roles));
        let privileges = Value::Array(resolved.privileges.to_array());
        shown.push("inheritedPrivileges", privileges);
    }
    if details.privileges || details.restrictions {
        let inherited = resolved
            .restrictions
            .iter()
            .map(|it| Value::Array(it.to_array()));
        let inherited = Value::Array(inherited.collect());
        shown.push("inheritedAuthenticationRestrictions", inherited);
        let own = Value::Array(user.restrictions.to_array());
        shown.push("authenticationRestrictions", own);
    }
    Ok(shown)
}
