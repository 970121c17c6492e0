//! `collStats`: the sizes of a collection and its indexes.

use windrow_collection::Collection;
use windrow_document::{DocumentBuf, Value, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::{namespace, views};

/// Arguments are not checked, as in MongoDB.
pub const COLL_STATS: Command = Command {
    name: "collStats",
    aliases: &["collstats"],
    help: "gives the sizes of a collection and its indexes",
    in_api_version_1: false,
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::named(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let of_namespace = |error: CommandError| error.with("ns", namespace.to_string());
    let scale = scale(&Arguments::new(request)).map_err(of_namespace)?;
    views::refuse(context, &namespace).map_err(of_namespace)?;
    let engine = &context.state.services.engine;
    let mut reply = doc! { "ns": (namespace.to_string()) };
    let described = match engine.collection(&namespace) {
        Some(collection) => describe(&collection, scale),
        None => of_nothing(scale),
    };
    described
        .iter()
        .for_each(|(name, value)| reply.push(name, value));
    Ok(Reply::ok(reply))
}

/// By what sizes are divided: at least 1, at most what 32 bits hold.
pub fn scale(arguments: &Arguments<'_>) -> Result<u64, CommandError> {
    match arguments.whole_number("scale")? {
        None => Ok(1),
        Some(scale) if scale >= 1 => Ok(scale.unsigned_abs().min(i32::MAX.unsigned_abs().into())),
        Some(scale) => {
            let message = format!("scale has to be >= 1, and is {scale}");
            Err(CommandError::new(ErrorCode::BadValue, message))
        }
    }
}

/// A whole number of the smallest type that holds it, as MongoDB's sizes are.
pub fn size(bytes: u64) -> Value {
    match i32::try_from(bytes) {
        Ok(small) => Value::Int32(small),
        Err(_) => Value::Int64(bytes as i64),
    }
}

fn of_nothing(scale: u64) -> DocumentBuf {
    doc! {
        "size": 0, "count": 0, "storageSize": 0, "totalSize": 0, "nindexes": 0,
        "totalIndexSize": 0, "indexDetails": {}, "indexSizes": {}, "scaleFactor": (size(scale)),
    }
}

/// Sizes are true figures: of run files, and of what is in memory and in no file yet.
pub fn describe(collection: &Collection, scale: u64) -> DocumentBuf {
    let statistics = collection.statistics();
    let cap = collection.cap();
    let storage = statistics.bytes_stored + statistics.tail_bytes;
    let indexes: u64 = statistics.indexes.iter().map(|one| one.bytes()).sum();
    let (mut sizes, mut details, mut builds) = (DocumentBuf::new(), DocumentBuf::new(), Vec::new());
    for index in &statistics.indexes {
        sizes.push(&index.name, size(index.bytes() / scale));
        details.push(
            &index.name,
            doc! {
                "entriesStored": (size(index.entries_stored)), "sections": (size(index.sections)),
            },
        );
        if !index.is_ready {
            builds.push(index.name.clone());
        }
    }
    let mut described = doc! {
        "size": (size(statistics.bytes / scale)), "count": (size(statistics.documents)),
    };
    if let Some(average) = statistics.bytes.checked_div(statistics.documents) {
        described.push("avgObjSize", size(average));
    }
    let rest = doc! {
        "storageSize": (size(storage / scale)),
        "freeStorageSize": 0,
        "capped": (cap.is_some()),
        "windrow": {
            "bytesInRuns": (size(statistics.bytes_stored / scale)),
            "bytesInTails": (size(statistics.tail_bytes / scale)),
            "sections": (size(statistics.sections)),
        },
        "nindexes": (statistics.indexes.len() as i32),
        "indexDetails": details,
        "indexBuilds": builds,
        "totalIndexSize": (size(indexes / scale)),
        "totalSize": (size((storage + indexes) / scale)),
        "indexSizes": sizes,
        "scaleFactor": (size(scale)),
    };
    rest.iter()
        .for_each(|(name, value)| described.push(name, value));
    if collection.is_clustered() {
        described.push("clustered", true);
    }
    if let Some(cap) = cap {
        described.push("max", size(cap.documents.unwrap_or(0)));
        described.push("maxSize", size(cap.bytes / scale));
    }
    described
}
