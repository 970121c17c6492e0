//! First stages of a pipeline that create their own documents from the state of the server. The
//! following stages read them like the documents of a collection.

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use super::AggregateRequest;
use super::document_list::Describe;
use super::{cluster_catalog, current_operations, query_settings, session_lists};
use crate::common_arguments::ReadConcern;
use crate::context::Context;
use crate::errors::refuse;

/// A checked first stage, and the following stages.
pub struct SourceStage<'c> {
    /// The stage itself.
    pub first: DocumentBuf,
    /// Creates its documents.
    pub describe: Describe<'c>,
    pub rest: ArrayBuf,
}

/// The collection name of pipelines with `{aggregate: 1}`.
pub const NO_COLLECTION: &str = "$cmd.aggregate";

/// Checks a stage and its namespace.
type CheckStage =
    for<'c> fn(&'c Context<'_>, &'c Namespace, ValueRef<'_>) -> Result<Describe<'c>, CommandError>;

/// Returns the stages, sorted by name.
fn find(name: &str) -> Option<CheckStage> {
    Some(match name {
        "$currentOp" => |context, namespace, operand| {
            current_operations::describe(context, namespace, has_no_collection(namespace), operand)
        },
        "$listClusterCatalog" => |context, namespace, operand| {
            cluster_catalog::describe(context, namespace, has_no_collection(namespace), operand)
        },
        "$listLocalSessions" => |context, namespace, operand| {
            session_lists::local(context, has_no_collection(namespace), operand)
        },
        "$listSessions" => session_lists::stored,
        "$querySettings" => {
            |_, namespace, operand| query_settings::describe(has_no_collection(namespace), operand)
        }
        _ => return None,
    })
}

/// Returns `true` for `{aggregate: 1}`.
fn has_no_collection(namespace: &Namespace) -> bool {
    namespace.collection == NO_COLLECTION
}

/// Checks the first stage of a pipeline if it creates its own documents. Fails with 40323 if it has
/// more than one field.
pub fn parse<'c>(
    context: &'c Context<'_>,
    namespace: &'c Namespace,
    request: &AggregateRequest<'_>,
) -> Result<Option<SourceStage<'c>>, CommandError> {
    check_read_concern(context, request)?;
    let first = request.stages.get(0).and_then(ValueRef::as_document);
    let Some((first, check, operand)) = first.and_then(|first| {
        let (name, operand) = first.first()?;
        Some((first, find(name)?, operand))
    }) else {
        return Ok(None);
    };
    if first.count() != 1 {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return refuse(40_323, message);
    }
    Ok(Some(SourceStage {
        first: first.to_buf(),
        describe: check(context, namespace, operand)?,
        rest: request.stages.iter().skip(1).collect(),
    }))
}

/// Stages of the current state of the server. They only support the read concern "local".
const LOCAL_ONLY: [&str; 4] = [
    "$currentOp",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$planCacheStats",
];

/// Fails if the first stage does not support the read concern of the command.
fn check_read_concern(
    context: &Context<'_>,
    request: &AggregateRequest<'_>,
) -> Result<(), CommandError> {
    let is_local = context.common.read_concern == ReadConcern::Local;
    match request.first_stage_name() {
        Some(stage) if !is_local && LOCAL_ONLY.contains(&stage) => {
            let message = format!("{stage} can only be run with a read concern of 'local'");
            refuse(ErrorCode::InvalidOptions, message)
        }
        _ => Ok(()),
    }
}
