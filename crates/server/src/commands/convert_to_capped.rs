//! `convertToCapped`: limits a collection that is there.

use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::create;
use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::{namespace, views};

pub const CONVERT_TO_CAPPED: Command = Command {
    name: "convertToCapped",
    help: "makes a collection a capped one",
    write_concern: true,
    arguments: Accepted::Only(&["size"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::named(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let arguments = Arguments::new(request);
    let size = match arguments.get("size") {
        Some(ValueRef::Null) => None,
        _ => arguments.whole_number("size")?,
    };
    let size = size.filter(|size| *size > 0).ok_or_else(|| {
        let message = "Capped collection size must be greater than zero";
        CommandError::new(ErrorCode::InvalidOptions, message)
    })?;
    let missing = || format!("source collection {namespace} does not exist");
    let collection = views::collection(context, &namespace, missing)?;
    if collection.is_clustered() {
        let message = format!("cannot convert a clustered collection to capped: {namespace}");
        return Err(CommandError::new(ErrorCode::IllegalOperation, message));
    }
    let _exclusion = context.exclude(&collection)?;
    let bytes = create::rounded(size.unsigned_abs());
    collection.cap_to(bytes).or_command_error()?;
    let name = namespace.to_string();
    let cursors = &context.state.cursors;
    cursors.end_where(|one| one == name, "collection made capped");
    Ok(Reply::ok(DocumentBuf::new()))
}
