//! `dropDatabase`: drops all collections of a database.

use windrow_access::Action;
use windrow_document::{DocumentBuf, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::whole;
use crate::command::Command;
use crate::context::Context;
use crate::errors::OrCommandError;

pub const DROP_DATABASE: Command = Command {
    name: "dropDatabase",
    help: "drops all collections of a database",
    needs: Needs::OnDatabase(&[Action::dropDatabase]),
    write_concern: true,
    in_api_version_1: true,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    if request.get("dropDatabase").and_then(whole) != Some(1) {
        let message = "have to pass 1 as db parameter";
        return Err(CommandError::new(ErrorCode::IllegalOperation, message));
    }
    let database = request.database();
    if database == "admin" {
        let message = "Dropping the 'admin' database is prohibited.";
        return Err(CommandError::new(ErrorCode::IllegalOperation, message));
    }
    let engine = &context.state.services.engine;
    let collections = engine.collections(database);
    let exclusions = collections.iter().map(|it| context.exclude(it));
    let exclusions = exclusions.collect::<Result<Vec<_>, CommandError>>()?;
    let dropped = engine.drop_database(database).or_command_error()?;
    for collection in &collections {
        let namespace = collection.namespace().to_string();
        context.audit("dropCollection", || doc! { "ns": namespace });
    }
    context.audit("dropDatabase", || doc! { "ns": database });
    context.state.profiling.forget(database);
    context.state.usage.forget_dropped(engine);
    drop(exclusions);
    let prefix = format!("{database}.");
    let cursors = &context.state.cursors;
    cursors.end_where(|one| one.starts_with(&prefix), "database dropped");
    let attr = doc! { "db": database, "numCollectionsDropped": (dropped as i32) };
    let log = &context.state.services.log;
    log.info(
        "COMMAND",
        20_336,
        &context.client.name(),
        "dropDatabase",
        attr,
    );
    let mut reply = DocumentBuf::new();
    if dropped > 0 {
        reply.push("dropped", database);
    }
    Ok(Reply::ok(reply))
}
