//! The collation of a command.

use std::sync::Arc;

use windrow_collection::Namespace;
use windrow_document::{Collation, Document};
use windrow_mql::collation;
use windrow_wire::CommandError;

use crate::context::Context;
use crate::errors::OrCommandError;

/// Returns the collation of a command, or `default` if it sets none. `None` compares strings by
/// their bytes.
pub fn parse_or_default(
    given: Option<Document<'_>>,
    default: Option<Arc<Collation>>,
) -> Result<Option<Arc<Collation>>, CommandError> {
    match given.filter(|given| !given.is_empty()) {
        Some(given) => collation::parse(given).or_command_error(),
        None => Ok(default),
    }
}

/// Returns the default collation of a collection, for commands that set none. Fails if a
/// transaction cannot use the collection.
pub fn default_for(
    context: &Context<'_>,
    namespace: &Namespace,
) -> Result<Option<Arc<Collation>>, CommandError> {
    let collection = context.collection(namespace)?;
    Ok(collection.and_then(|collection| collection.collation()))
}
