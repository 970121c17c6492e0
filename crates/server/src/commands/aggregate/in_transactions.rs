//! Stages that are not allowed in transactions.

use windrow_document::{Array, Document, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use crate::context::Context;

/// Stages that write, or that read other things than the documents of the transaction's snapshot.
const REFUSED: &[&str] = &[
    "$changeStream",
    "$collStats",
    "$currentOp",
    "$indexStats",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$listSearchIndexes",
    "$listSessions",
    "$merge",
    "$out",
    "$planCacheStats",
    "$querySettings",
    "$search",
    "$searchMeta",
];

/// The first refused stage of a command.
pub fn refused_stage(body: Document<'_>) -> Option<&str> {
    let stages = body.get("pipeline").and_then(ValueRef::as_array);
    stages.and_then(refused_of)
}

/// Fails if the command is part of a transaction and has a refused stage.
pub fn check(context: &Context<'_>, body: Document<'_>) -> Result<(), CommandError> {
    if context.transaction().is_none() {
        return Ok(());
    }
    let refuse = |what: &str| {
        let message = format!("{what} cannot be used in a transaction");
        let code = ErrorCode::OperationNotSupportedInTransaction;
        Err(CommandError::new(code, message))
    };
    if body.get("explain").is_some_and(ValueRef::is_truthy) {
        return refuse("explain");
    }
    match refused_stage(body) {
        Some(stage) => refuse(stage),
        None => Ok(()),
    }
}

/// The first refused stage of a pipeline, including nested pipelines.
fn refused_of(stages: Array<'_>) -> Option<&str> {
    let mut stages = stages.iter().filter_map(ValueRef::as_document);
    stages.find_map(|stage| {
        let (name, operand) = stage.first()?;
        if REFUSED.contains(&name) {
            return Some(name);
        }
        let within = operand.as_document()?;
        match name {
            "$facet" => within
                .iter()
                .find_map(|(_, stages)| refused_of(stages.as_array()?)),
            _ => refused_of(within.get("pipeline")?.as_array()?),
        }
    })
}
