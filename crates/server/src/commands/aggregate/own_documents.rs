//! Stages that stand at the front of a pipeline and make documents of their own out of what the
//! server knows. The stages behind them read these documents as they would a collection's.

use windrow_collection::Namespace;
use windrow_document::{ArrayBuf, Document, DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use super::given::Describe;
use super::{cluster_catalog, current_operations, query_settings, session_lists};
use crate::context::Context;
use crate::errors::refuse;
use crate::generic::ReadConcern;

/// A first stage that has been checked, and the stages behind it.
pub struct Begun<'c> {
    /// The stage itself.
    pub first: DocumentBuf,
    /// Makes its documents.
    pub describe: Describe<'c>,
    pub rest: ArrayBuf,
}

/// How the pipelines of `{aggregate: 1}` call their collection.
pub const NO_COLLECTION: &str = "$cmd.aggregate";

/// The name of the first stage.
pub fn first_name(body: Document<'_>) -> Option<&str> {
    let stages = body.get("pipeline").and_then(ValueRef::as_array)?;
    let (name, _) = stages.get(0)?.as_document()?.first()?;
    Some(name)
}

/// Checks a stage, and where it stands.
type Check =
    for<'c> fn(&'c Context<'_>, &'c Namespace, ValueRef<'_>) -> Result<Describe<'c>, CommandError>;

/// The stages, by the alphabet.
fn find(name: &str) -> Option<Check> {
    Some(match name {
        "$currentOp" => |context, namespace, wanted| {
            current_operations::describe(context, namespace, names_none(namespace), wanted)
        },
        "$listClusterCatalog" => |context, namespace, wanted| {
            cluster_catalog::describe(context, namespace, names_none(namespace), wanted)
        },
        "$listLocalSessions" => |context, namespace, wanted| {
            session_lists::local(context, names_none(namespace), wanted)
        },
        "$listSessions" => session_lists::stored,
        "$querySettings" => {
            |_, namespace, wanted| query_settings::describe(names_none(namespace), wanted)
        }
        _ => return None,
    })
}

/// Whether the command is `{aggregate: 1}`.
fn names_none(namespace: &Namespace) -> bool {
    namespace.collection == NO_COLLECTION
}

/// Checks the first stage of a command's pipeline where it makes its own documents. Error 40323 where
/// it has another field beside its name.
pub fn begin<'c>(
    context: &'c Context<'_>,
    namespace: &'c Namespace,
    body: Document<'_>,
) -> Result<Option<Begun<'c>>, CommandError> {
    check_read_concern(context, body)?;
    let stages = body.get("pipeline").and_then(ValueRef::as_array);
    let first = stages.and_then(|stages| stages.get(0)?.as_document());
    let Some((first, check, wanted)) = first.and_then(|first| {
        let (name, wanted) = first.first()?;
        Some((first, find(name)?, wanted))
    }) else {
        return Ok(None);
    };
    if first.count() != 1 {
        let message = "A pipeline stage specification object must contain exactly one field.";
        return refuse(40_323, message);
    }
    let rest = stages.into_iter().flat_map(|stages| stages.iter()).skip(1);
    Ok(Some(Begun {
        first: first.to_buf(),
        describe: check(context, namespace, wanted)?,
        rest: rest.collect(),
    }))
}

/// Stages of what the server knows at the moment, which are read in no other way than locally.
const LOCAL_ONLY: [&str; 4] = [
    "$currentOp",
    "$listClusterCatalog",
    "$listLocalSessions",
    "$planCacheStats",
];

/// Fails where the first stage cannot be read as the command wishes.
fn check_read_concern(context: &Context<'_>, body: Document<'_>) -> Result<(), CommandError> {
    let is_local = context.generic.read_concern == ReadConcern::Local;
    match first_name(body) {
        Some(stage) if !is_local && LOCAL_ONLY.contains(&stage) => {
            let message = format!("{stage} can only be run with a read concern of 'local'");
            refuse(ErrorCode::InvalidOptions, message)
        }
        _ => Ok(()),
    }
}
