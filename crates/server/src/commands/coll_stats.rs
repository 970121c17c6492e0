//! `collStats`: the sizes of a collection and its indexes.

use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::statistics::{describe, size};
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

fn of_nothing(scale: u64) -> DocumentBuf {
    doc! {
        "size": 0, "count": 0, "storageSize": 0, "totalSize": 0, "nindexes": 0,
        "totalIndexSize": 0, "indexDetails": {}, "indexSizes": {}, "scaleFactor": (size(scale)),
    }
}
