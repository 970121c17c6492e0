//! The collation of a command.

use std::sync::Arc;

use windrow_collection::Namespace;
use windrow_document::{Collation, Document, ValueRef};
use windrow_mql::collation;
use windrow_wire::{CommandError, ErrorCode};

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
    let engine = &context.state.services.engine;
    engine.collection(namespace)?.collation()
}

/// Operators that compare what they find in a document.
const COMPARING: &[&str] = &["$addToSet", "$max", "$min", "$pull", "$pullAll", "$push"];

/// Fails for an update that would have to compare by a collation.
pub fn check_update(
    update: Option<ValueRef<'_>>,
    has_array_filters: bool,
    collation: Option<&Arc<Collation>>,
) -> Result<(), CommandError> {
    let compares = match update {
        Some(ValueRef::Document(update)) => update
            .iter()
            .map(|(name, _)| name)
            .find(|name| COMPARING.contains(name)),
        Some(ValueRef::Array(_)) => Some("a pipeline"),
        _ => None,
    };
    let what = compares.or(has_array_filters.then_some("arrayFilters"));
    match what.filter(|_| collation.is_some()) {
        None => Ok(()),
        Some(what) => Err(CommandError::new(
            ErrorCode::NotImplemented,
            format!("{what} with a collation is not supported"),
        )),
    }
}

/// What compares in a pipeline, and does so by bytes alone.
const BY_BYTES: &[&str] = &[
    "$addToSet",
    "$bottom",
    "$bottomN",
    "$bucket",
    "$bucketAuto",
    "$densify",
    "$fill",
    "$graphLookup",
    "$max",
    "$maxN",
    "$merge",
    "$min",
    "$minN",
    "$setWindowFields",
    "$sortArray",
    "$top",
    "$topN",
    "localField",
];

/// Fails for a pipeline that would have to compare by a collation where that is not done.
pub fn check_pipeline(stages: Document<'_>) -> Result<(), CommandError> {
    for (name, value) in stages {
        if BY_BYTES.contains(&name) {
            let message = format!("{name} with a collation is not supported");
            return Err(CommandError::new(ErrorCode::NotImplemented, message));
        }
        match value {
            ValueRef::Document(inner) => check_pipeline(inner)?,
            ValueRef::Array(inner) => check_pipeline(inner.as_document())?,
            _ => {}
        }
    }
    Ok(())
}
