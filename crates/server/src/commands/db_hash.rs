//! `dbHash`: a hash of each collection of a database, and one of all of them. Databases with the
//! same documents have the same hashes.

use std::time::Instant;

use windrow_access::Action;
use windrow_collection::Collection;
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_query::{Direction, Find, Hint};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::queries::{self, RunningQuery};

pub const DB_HASH: Command = Command {
    name: "dbHash",
    aliases: &["dbhash"],
    help: "returns a hash of the documents of each collection",
    needs: Needs::OnDatabase(&[Action::dbHash]),
    read_concern: true,
    arguments: AcceptedArguments::Only(&["collections"]),
    run,
    ends_with_client: true,
    ..Command::EMPTY
};

/// A collection that the server writes itself. It is not part of the hash.
const OWN: &str = "system.profile";

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let started = Instant::now();
    let selected = parse(request)?;
    let mut all = md5::Context::new();
    let (mut hashes, mut uuids) = (DocumentBuf::new(), DocumentBuf::new());
    let mut capped = Vec::new();
    let engine = &context.state.services.engine;
    let mut collections = engine.collections(request.database());
    collections.sort_by_key(|collection| collection.namespace().collection);
    for collection in collections {
        let name = collection.namespace().collection;
        let is_meant = selected.is_empty() || selected.contains(&name.as_str());
        if name == OWN || !is_meant {
            continue;
        }
        if collection.cap().is_some() {
            capped.push(name.clone());
        }
        let uuid = collection.uuid().to_value();
        uuids.push(&name, uuid);
        let hash = hash(&collection, context)?;
        all.consume(&name);
        all.consume(&hash);
        hashes.push(&name, hash);
    }
    Ok(Reply::ok(doc! {
        "host": (context.state.host.clone()),
        "collections": hashes,
        "capped": capped,
        "uuids": uuids,
        "md5": (format!("{:x}", all.finalize())),
        "timeMillis": (started.elapsed().as_millis() as i32),
    }))
}

/// Returns the collections to hash. Empty means all.
fn parse(request: &Request) -> Result<Vec<&str>, CommandError> {
    let Some(ValueRef::Array(names)) = request.get("collections") else {
        return Ok(Vec::new());
    };
    let wrong = || {
        CommandError::new(
            ErrorCode::BadValue,
            "collections entries have to be strings",
        )
    };
    names
        .iter()
        .map(|name| name.as_str().ok_or_else(wrong))
        .collect()
}

/// Returns the MD5 of all documents, in the order of their `_id`s, or for a capped collection in
/// natural order.
fn hash(collection: &Collection, context: &Context<'_>) -> Result<String, CommandError> {
    let is_natural = collection.cap().is_some() || collection.is_clustered();
    let hint = if is_natural {
        Hint::Natural(Direction::Forward)
    } else {
        Hint::Key(doc! { "_id": 1 })
    };
    let find = Find {
        hint: Some(hint),
        ..Find::new(Filter::all())
    };
    let source = queries::source(context, &collection.namespace())?;
    let mut running = RunningQuery::start(&find, &source, context.operation)?;
    let mut hash = md5::Context::new();
    while let Some(row) = running.next(context.operation)? {
        hash.consume(row.document().as_bytes());
    }
    Ok(format!("{:x}", hash.finalize()))
}
