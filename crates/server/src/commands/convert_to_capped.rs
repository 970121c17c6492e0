//! `convertToCapped`: limits the size of an existing collection.

use windrow_access::Action;
use windrow_document::DocumentBuf;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use super::create;
use crate::access::Needs;
use crate::arguments::{Arguments, whole};
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::queryable_encryption::check_capping;
use crate::{namespace, views};

pub const CONVERT_TO_CAPPED: Command = Command {
    name: "convertToCapped",
    help: "converts a collection to a capped collection",
    needs: Needs::OnCollection(&[Action::convertToCapped]),
    write_concern: true,
    arguments: AcceptedArguments::Only(&["size"]),
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let namespace = namespace::from_request(request)?;
    context.operation.set_namespace(&namespace.to_string());
    let arguments = Arguments::new(request);
    let bytes = size(&arguments)?;
    let missing = || format!("source collection {namespace} does not exist");
    let collection = views::collection(context, &namespace, missing)?;
    if collection.is_clustered() {
        let message = format!("cannot convert a clustered collection to capped: {namespace}");
        return Err(CommandError::new(ErrorCode::IllegalOperation, message));
    }
    check_capping(&collection)?;
    let _ddl_guard = context.exclude(&collection)?;
    collection
        .cap_to(bytes, context.operation)
        .or_command_error()?;
    let name = namespace.to_string();
    let cursors = &context.state.cursors;
    cursors.end_where(|one| one == name, "collection made capped");
    Ok(Reply::ok(DocumentBuf::new()))
}

/// Returns the argument `size`, rounded as for a capped collection.
pub fn size(arguments: &Arguments<'_>) -> Result<u64, CommandError> {
    let number = arguments.get("size").and_then(whole).unwrap_or(0);
    if number > create::CAP_BYTES_MAX {
        let message = format!(
            "a capped collection has at most {} bytes",
            create::CAP_BYTES_MAX
        );
        return Err(CommandError::new(ErrorCode::BadValue, message));
    }
    match u64::try_from(number) {
        Ok(bytes) if bytes > 0 => Ok(create::rounded(bytes)),
        _ => {
            let message = "Capped collection size must be greater than zero";
            Err(CommandError::new(ErrorCode::InvalidOptions, message))
        }
    }
}
