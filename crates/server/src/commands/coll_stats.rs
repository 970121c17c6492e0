//! `collStats`: the sizes of a collection and its indexes.

use windrow_access::Action;
use windrow_document::{DocumentBuf, Value, doc};
use windrow_query::checked_scale;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::statistics::describe;
use crate::{namespace, views};

pub const COLL_STATS: Command = Command {
    name: "collStats",
    aliases: &["collstats"],
    help: "returns the sizes of a collection and its indexes",
    needs: Needs::OnCollection(&[Action::collStats]),
    in_api_version_1: false,
    arguments: AcceptedArguments::Only(&["scale", "verbose", "waitForLock"]),
    run,
    ends_with_client: true,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let of_namespace = |error: CommandError| error.with("ns", namespace.to_string());
    let scale = scale(&Arguments::new(request)).map_err(of_namespace)?;
    views::refuse_view(context, &namespace).map_err(of_namespace)?;
    let engine = &context.state.services.engine;
    let mut reply = doc! { "ns": (namespace.to_string()) };
    let described = match engine.collection(&namespace) {
        Some(collection) => describe(&collection, scale),
        None => empty_statistics(scale),
    };
    described
        .iter()
        .for_each(|(name, value)| reply.push(name, value));
    Ok(Reply::ok(reply))
}

/// Returns the divisor of sizes.
pub fn scale(arguments: &Arguments<'_>) -> Result<u64, CommandError> {
    let given = arguments.whole_number("scale")?.unwrap_or(1);
    checked_scale(given).or_command_error()
}

fn empty_statistics(scale: u64) -> DocumentBuf {
    doc! {
        "size": 0, "count": 0, "storageSize": 0, "totalSize": 0, "nindexes": 0,
        "totalIndexSize": 0, "indexDetails": {}, "indexSizes": {}, "scaleFactor": (Value::whole(scale as i64)),
    }
}
