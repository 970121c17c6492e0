//! `listDatabases`: the databases and their sizes.

use windrow_access::{Action, Resource};
use windrow_collection::Engine;
use windrow_document::{DocumentBuf, Value, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::list_collections::{filter, matches};
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

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    let filter = filter(&arguments)?;
    let name_only = arguments.flag("nameOnly")?;
    let lists = listed_databases(context, arguments.bool("authorizedDatabases")?)?;
    let engine = &context.state.services.engine;
    let (mut listed, mut total) = (Vec::new(), 0);
    for name in engine.databases().into_iter().filter(|name| lists(name)) {
        let size = size_on_disk(engine, &name);
        let described = if name_only {
            doc! { "name": name }
        } else {
            doc! { "name": name, "sizeOnDisk": (size as i64), "empty": false }
        };
        if matches(filter.as_ref(), &described)? {
            listed.push(Value::from(described));
            total += size;
        }
    }
    let mut reply: DocumentBuf = doc! { "databases": listed };
    if !name_only {
        reply.push("totalSize", total as i64);
        reply.push("totalSizeMb", (total >> 20) as i64);
    }
    Ok(Reply::ok(reply))
}

/// Returns which databases are listed: all, or those in which the client may do anything.
fn listed_databases<'a>(
    context: &Context<'a>,
    authorized: Option<bool>,
) -> Result<impl Fn(&str) -> bool + use<'a>, CommandError> {
    let authority = context.authority;
    let may_list_all = authority.allows(&Resource::Cluster, Action::listDatabases);
    if authorized == Some(false) && !may_list_all {
        let message = "Insufficient permissions to list all databases";
        return Err(CommandError::new(ErrorCode::Unauthorized, message));
    }
    let lists_all = may_list_all && authorized != Some(true);
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
