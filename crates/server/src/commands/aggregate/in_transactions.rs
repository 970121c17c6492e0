//! Stages that are not allowed in transactions.

use windrow_document::{Array, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use super::AggregateRequest;
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

/// Fails if the command is part of a transaction and has a refused stage.
pub fn check(context: &Context<'_>, request: &AggregateRequest<'_>) -> Result<(), CommandError> {
    if context.transaction().is_none() {
        return Ok(());
    }
    let refuse = |what: &str| {
        let message = format!("{what} cannot be used in a transaction");
        let code = ErrorCode::OperationNotSupportedInTransaction;
        Err(CommandError::new(code, message))
    };
    if request.explain {
        return refuse("explain");
    }
    match refused_stage(request.stages) {
        Some(stage) => refuse(stage),
        None => Ok(()),
    }
}

/// Returns the first refused stage of a pipeline, including nested pipelines.
pub fn refused_stage(stages: Array<'_>) -> Option<&str> {
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
                .find_map(|(_, stages)| refused_stage(stages.as_array()?)),
            _ => refused_stage(within.get("pipeline")?.as_array()?),
        }
    })
}
