//! `compact`: frees disk space. All collections of a data folder share files, so the space of other
//! collections is freed too.

use windrow_access::Action;
use windrow_collection::Collection;
use windrow_document::{Value, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, views};

pub const COMPACT: Command = Command {
    name: "compact",
    help: "frees the unused space of a collection",
    needs: Needs::OnCollection(&[Action::compact]),
    arguments: AcceptedArguments::Only(&["dryRun", "force", "freeSpaceTargetMB"]),
    run,
    ..Command::EMPTY
};

/// Checks the arguments besides the collection. `force` has no effect, because other operations run
/// on beside a compaction. The others are refused.
fn check_options(arguments: &Arguments<'_>) -> Result<(), CommandError> {
    arguments.flag("force")?;
    let least = arguments.whole_number("freeSpaceTargetMB")?;
    if least.is_some_and(|least| least < 1) {
        let message = "freeSpaceTargetMB must be at least 1";
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    if arguments.bool("dryRun")? == Some(true) || least.is_some() {
        let message = "compact cannot compute in advance how much space it frees";
        return Err(CommandError::new(ErrorCode::NotImplemented, message));
    }
    Ok(())
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    check_options(&Arguments::new(request))?;
    let engine = &context.state.services.engine;
    let missing = || format!("collection does not exist: {namespace}");
    let collection = views::collection(context, &namespace, missing)?;
    let before = stored(&collection);
    engine.fold().or_command_error()?;
    context.check()?;
    while engine.compact(context.operation).or_command_error()? {}
    let freed = before.saturating_sub(stored(&collection));
    Ok(Reply::ok(
        doc! { "bytesFreed": (Value::whole(freed as i64)) },
    ))
}

fn stored(collection: &Collection) -> u64 {
    let statistics = collection.statistics();
    let indexes = statistics.indexes.iter().map(|index| index.bytes());
    statistics.bytes_stored + statistics.tail_bytes + indexes.sum::<u64>()
}
