//! `dbStats`: the sizes of a database.

use windrow_access::Action;
use windrow_collection::Engine;
use windrow_document::{Value, doc};
use windrow_wire::{CommandError, Reply, Request};

use super::coll_stats::scale;
use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::machine;

pub const DB_STATS: Command = Command {
    name: "dbStats",
    aliases: &["dbstats"],
    help: "returns the sizes of a database",
    needs: Needs::OnDatabase(&[Action::dbStats]),
    arguments: AcceptedArguments::Only(&["freeStorage", "scale"]),
    run,
    ends_with_client: true,
    ..Command::EMPTY
};

/// Sums over all collections.
#[derive(Default)]
struct DatabaseSizes {
    collections: u64,
    views: u64,
    documents: u64,
    bytes: u64,
    storage: u64,
    indexes: u64,
    index_bytes: u64,
}

/// A parsed `dbStats`.
struct DbStatsRequest {
    /// The divisor of sizes.
    scale: u64,
    with_free_storage: bool,
}

impl DbStatsRequest {
    fn parse(request: &Request) -> Result<DbStatsRequest, CommandError> {
        let arguments = Arguments::new(request);
        Ok(DbStatsRequest {
            scale: scale(&arguments)?,
            with_free_storage: arguments.flag("freeStorage")?,
        })
    }
}

impl DatabaseSizes {
    /// Returns the sums over the collections of a database.
    fn new(engine: &Engine, database: &str) -> Result<DatabaseSizes, CommandError> {
        let views = engine.views(database).or_command_error()?;
        let mut sums = DatabaseSizes {
            views: views.len() as u64,
            ..DatabaseSizes::default()
        };
        for collection in engine.collections(database) {
            let statistics = collection.statistics();
            sums.collections += 1;
            sums.documents += statistics.documents;
            sums.bytes += statistics.bytes;
            sums.storage += statistics.bytes_stored + statistics.tail_bytes;
            sums.indexes += statistics.index_count() as u64;
            let indexes = statistics.indexes.iter();
            sums.index_bytes += indexes.map(|one| one.bytes()).sum::<u64>();
        }
        Ok(sums)
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let DbStatsRequest {
        scale,
        with_free_storage,
    } = DbStatsRequest::parse(request)?;
    let engine = &context.state.services.engine;
    let sums = DatabaseSizes::new(engine, request.database())?;
    let mut reply = describe(request.database(), &sums, scale);
    if with_free_storage {
        // Unneeded files are removed, so no file contains free space.
        for name in FREE_STORAGE {
            reply.push(name, 0.0);
        }
    }
    let folder = context.state.services.folder.as_deref();
    if let Some((used, total)) = folder.and_then(machine::file_system_bytes) {
        reply.push("fsUsedSize", used as f64 / scale as f64);
        reply.push("fsTotalSize", total as f64 / scale as f64);
    }
    Ok(Reply::ok(reply))
}

const FREE_STORAGE: [&str; 3] = [
    "freeStorageSize",
    "indexFreeStorageSize",
    "totalFreeStorageSize",
];

fn describe(database: &str, sums: &DatabaseSizes, scale: u64) -> windrow_document::DocumentBuf {
    let count = |number: u64| Value::Int64(number as i64);
    let scaled = |bytes: u64| Value::Double(bytes as f64 / scale as f64);
    let average = match sums.documents {
        0 => 0.0,
        documents => sums.bytes as f64 / documents as f64,
    };
    doc! {
        "db": database,
        "collections": (count(sums.collections)),
        "views": (count(sums.views)),
        "objects": (count(sums.documents)),
        "avgObjSize": average,
        "dataSize": (scaled(sums.bytes)),
        "storageSize": (scaled(sums.storage)),
        "indexes": (count(sums.indexes)),
        "indexSize": (scaled(sums.index_bytes)),
        "totalSize": (scaled(sums.storage + sums.index_bytes)),
        "scaleFactor": (count(scale)),
    }
}
