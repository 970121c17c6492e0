//! The collation of a command.

use std::sync::Arc;

use windrow_collection::Namespace;
use windrow_document::{Collation, Document};
use windrow_mql::collation;
use windrow_wire::CommandError;

use crate::context::Context;
use crate::errors::OrCommandError;

/// How the command compares strings; None: by their bytes. `default`: as its collection does, where
/// nothing is given.
pub fn of(
    given: Option<Document<'_>>,
    default: Option<Arc<Collation>>,
) -> Result<Option<Arc<Collation>>, CommandError> {
    match given.filter(|given| !given.is_empty()) {
        Some(given) => collation::parse(given).or_command_error(),
        None => Ok(default),
    }
}

/// How a collection compares strings where a command says nothing.
pub fn default_of(context: &Context<'_>, namespace: &Namespace) -> Option<Arc<Collation>> {
    // A collection that cannot be had fails when it is opened.
    context.collection(namespace).ok()??.collation()
}
