//! `listCollections`: the collections of a database.

use windrow_access::{Action, Resource};
use windrow_collection::{Collection, View};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::list_cursor;

pub const LIST_COLLECTIONS: Command = Command {
    name: "listCollections",
    help: "lists the collections of a database",
    needs: Needs::Computed(requirement),
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&["authorizedCollections", "cursor", "filter", "nameOnly"]),
    run,
    ..Command::EMPTY
};

/// Returns the requirement. A user with any privilege in the database may list the names of the
/// collections that it can access.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    let all = request.on_database(&[Action::listCollections]);
    if request.flag("nameOnly") && request.flag("authorizedCollections") {
        return all.or(Requirement::AnythingIn(request.database.to_owned()));
    }
    all
}

/// A parsed `listCollections`.
struct ListCollectionsRequest {
    filter: Option<Filter>,
    name_only: bool,
    /// `true` if only the collections are listed for which the client has a privilege.
    authorized_only: bool,
    batch_size: Option<usize>,
}

impl ListCollectionsRequest {
    fn parse(request: &Request) -> Result<ListCollectionsRequest, CommandError> {
        let arguments = Arguments::new(request);
        Ok(ListCollectionsRequest {
            filter: parse_filter(&arguments)?,
            name_only: arguments.flag("nameOnly")?,
            authorized_only: arguments.bool("authorizedCollections")?.unwrap_or(false),
            batch_size: list_cursor::parse_batch_size(&arguments)?,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let listing = ListCollectionsRequest::parse(request)?;
    let mut found = Vec::new();
    for one in describe_all(context, request.database(), listing.name_only)? {
        let name = one
            .get("name")
            .and_then(ValueRef::as_str)
            .unwrap_or_default();
        let resource = Resource::namespace(request.database(), name);
        let is_listed = !listing.authorized_only || context.authority.allows_any(&resource);
        if is_listed && matches(listing.filter.as_ref(), &one)? {
            found.push(one);
        }
    }
    let namespace = format!("{}.$cmd.listCollections", request.database());
    let cursor = list_cursor::open(request, context, &namespace, found, listing.batch_size)?;
    Ok(Reply::ok(cursor))
}

/// Returns the collections, then the views of a database.
pub fn describe_all(
    context: &Context<'_>,
    database: &str,
    name_only: bool,
) -> Result<Vec<DocumentBuf>, CommandError> {
    let engine = &context.state.services.engine;
    let collections = engine.collections(database);
    let views = engine.views(database).or_command_error()?;
    let collections = collections.iter().map(|one| describe(one, name_only));
    let views = views.iter().map(|(name, one)| view(name, one, name_only));
    Ok(collections.chain(views).collect())
}

/// Parses the filter of a list of collections or databases.
pub fn parse_filter(arguments: &Arguments<'_>) -> Result<Option<Filter>, CommandError> {
    let Some(filter) = arguments.document("filter")? else {
        return Ok(None);
    };
    let filter = Filter::parse(filter).and_then(Filter::without_near);
    let filter = filter.or_command_error()?;
    match filter.text() {
        None => Ok(Some(filter)),
        // The list has no text index.
        Some(_) => Err(CommandError::new(
            ErrorCode::BadValue,
            "$text is not allowed in this context",
        )),
    }
}

pub fn matches(filter: Option<&Filter>, described: &DocumentBuf) -> Result<bool, CommandError> {
    match filter {
        Some(filter) => filter.matches(described.as_document()).or_command_error(),
        None => Ok(true),
    }
}

fn describe(collection: &Collection, name_only: bool) -> DocumentBuf {
    let mut described = doc! {
        "name": (collection.namespace().collection), "type": "collection",
    };
    if name_only {
        return described;
    }
    described.push("options", collection.options());
    let uuid = collection.uuid().to_value();
    described.push("info", doc! { "readOnly": false, "uuid": uuid });
    if let Some(first) = collection.indexes().first()
        && !first.definition.clustered
    {
        described.push("idIndex", first.definition.specification.clone());
    }
    described
}

fn view(name: &str, view: &View, name_only: bool) -> DocumentBuf {
    let mut described = doc! { "name": name, "type": "view" };
    if !name_only {
        described.push("options", view.options());
        described.push("info", doc! { "readOnly": true });
    }
    described
}
