//! `listDatabases`: the databases and their sizes.

use windrow_access::{Action, Resource};
use windrow_collection::Engine;
use windrow_document::{DocumentBuf, Value, doc};
use windrow_mql::filter::Filter;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::list_collections::{matches, parse_filter};
use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Join, Routing};
use crate::context::Context;

pub const LIST_DATABASES: Command = Command {
    name: "listDatabases",
    help: "lists the databases and their sizes",
    routing: Routing::Each(Join::Databases),
    needs: Needs::Login,
    admin_only: true,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&["authorizedDatabases", "filter", "nameOnly"]),
    run,
    ..Command::EMPTY
};

/// A parsed `listDatabases`.
struct ListDatabasesRequest {
    filter: Option<Filter>,
    name_only: bool,
    /// `true` if only the databases are listed in which the client has a privilege, `false` if all
    /// are. `None` for all that the client may list.
    authorized_only: Option<bool>,
}

impl ListDatabasesRequest {
    fn parse(request: &Request) -> Result<ListDatabasesRequest, CommandError> {
        let arguments = Arguments::new(request);
        Ok(ListDatabasesRequest {
            filter: parse_filter(&arguments)?,
            name_only: arguments.flag("nameOnly")?,
            authorized_only: arguments.bool("authorizedDatabases")?,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let request = ListDatabasesRequest::parse(request)?;
    let lists = listed_databases(context, request.authorized_only)?;
    let engine = &context.state.services.engine;
    let (mut listed, mut total) = (Vec::new(), 0);
    for name in engine.databases().into_iter().filter(|name| lists(name)) {
        let size = size_on_disk(engine, &name);
        let described = if request.name_only {
            doc! { "name": name }
        } else {
            doc! { "name": name, "sizeOnDisk": (size as i64), "empty": false }
        };
        if matches(request.filter.as_ref(), &described)? {
            listed.push(Value::from(described));
            total += size;
        }
    }
    let mut reply: DocumentBuf = doc! { "databases": listed };
    if !request.name_only {
        reply.push("totalSize", total as i64);
        reply.push("totalSizeMb", (total >> 20) as i64);
    }
    Ok(Reply::ok(reply))
}

/// Returns which databases are listed: all, or those in which the client may do anything.
fn listed_databases<'a>(
    context: &Context<'a>,
    authorized_only: Option<bool>,
) -> Result<impl Fn(&str) -> bool + use<'a>, CommandError> {
    let authority = context.authority;
    let may_list_all = authority.allows(&Resource::Cluster, Action::listDatabases);
    if authorized_only == Some(false) && !may_list_all {
        let message = "Insufficient permissions to list all databases";
        return Err(CommandError::new(ErrorCode::Unauthorized, message));
    }
    let lists_all = may_list_all && authorized_only != Some(true);
    Ok(move |database: &str| lists_all || authority.reaches(database))
}

/// Returns the bytes in run files, and the log records that are not in a run file yet.
fn size_on_disk(engine: &Engine, database: &str) -> u64 {
    let sizes = engine.collections(database).into_iter().map(|collection| {
        let statistics = collection.statistics();
        let indexes: u64 = statistics.indexes.iter().map(|one| one.bytes()).sum();
        statistics.bytes_stored + statistics.tail_bytes + indexes
    });
    sizes.sum()
}
