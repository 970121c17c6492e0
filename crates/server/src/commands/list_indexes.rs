//! `listIndexes`: the indexes of a collection.

use std::sync::atomic::Ordering::Relaxed;

use windrow_access::Action;
use windrow_collection::{Collection, Index};
use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};
use windrow_index::Definition;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::arguments::Arguments;
use crate::collection_uuid::Target;
use crate::command::{AcceptedArguments, Command};
use crate::context::Context;
use crate::{list_cursor, namespace, views};

/// Other arguments are ignored, as in MongoDB.
pub const LIST_INDEXES: Command = Command {
    name: "listIndexes",
    help: "lists the indexes of a collection",
    needs: Needs::OnCollection(&[Action::listIndexes]),
    in_api_version_1: true,
    arguments: AcceptedArguments::Any,
    run,
    ..Command::EMPTY
};

/// Additional fields of each index.
#[derive(Clone, Copy)]
enum RequestedDetails {
    Nothing,
    /// The UUID of the build, for an index that is being built.
    BuildUuids,
    /// The progress of the build, for an index that is being built.
    BuildInfo,
}

/// A parsed `listIndexes`.
struct ListIndexesRequest {
    target: Target,
    details: RequestedDetails,
    batch_size: Option<usize>,
}

impl ListIndexesRequest {
    fn parse(request: &Request, context: &Context<'_>) -> Result<ListIndexesRequest, CommandError> {
        let arguments = Arguments::new(request);
        let details = RequestedDetails::parse(&arguments)?;
        let (database, body) = (request.database(), request.body());
        let target = match body.first() {
            Some((_, ValueRef::Binary { .. })) => {
                Target::from_name_or_uuid(context, database, body, ErrorCode::InvalidNamespace)?
            }
            _ => Target::named(namespace::from_request(request)?),
        };
        Ok(ListIndexesRequest {
            target,
            details,
            batch_size: list_cursor::parse_batch_size(&arguments)?,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let ListIndexesRequest {
        target,
        details,
        batch_size,
    } = ListIndexesRequest::parse(request, context)?;
    let namespace = &target.namespace;
    context.operation.set_namespace(&namespace.to_string());
    let missing = || format!("ns does not exist: {namespace}");
    let collection = views::collection(context, namespace, missing)?;
    target.check_found(context, Some(collection.uuid()))?;
    // Indexes that are being built are included, as in MongoDB.
    let indexes = collection.indexes();
    let listed = indexes
        .iter()
        .map(|index| details.describe(index, &collection));
    let (name, listed) = (namespace.to_string(), listed.collect());
    let cursor = list_cursor::open(request, context, &name, listed, batch_size)?;
    Ok(Reply::ok(cursor))
}

impl RequestedDetails {
    fn parse(arguments: &Arguments<'_>) -> Result<RequestedDetails, CommandError> {
        let given = |name| Ok::<_, CommandError>(arguments.bool(name)?.unwrap_or(false));
        let (uuids, info) = (given("includeBuildUUIDs")?, given("includeIndexBuildInfo")?);
        if uuids && info {
            let message = "The includeBuildUUIDs flag and includeBuildIndexInfo flag cannot both \
                           be set to true";
            Err(CommandError::new(ErrorCode::InvalidOptions, message))
        } else if uuids {
            Ok(RequestedDetails::BuildUuids)
        } else if info {
            Ok(RequestedDetails::BuildInfo)
        } else {
            Ok(RequestedDetails::Nothing)
        }
    }

    fn describe(self, index: &Index, collection: &Collection) -> DocumentBuf {
        let options = collection.options();
        let specification = specification(&index.definition, options.as_document());
        match self {
            RequestedDetails::BuildUuids if !index.is_ready() => {
                doc! { "spec": specification, "buildUUID": (build_uuid(index, collection)) }
            }
            RequestedDetails::BuildInfo if !index.is_ready() => {
                doc! { "spec": specification, "indexBuildInfo": (build_info(index, collection)) }
            }
            RequestedDetails::BuildInfo => doc! { "spec": specification },
            RequestedDetails::Nothing | RequestedDetails::BuildUuids => specification,
        }
    }
}

/// Returns the specification of an index. The lifetime of documents in a clustered collection is an
/// option of the collection.
fn specification(definition: &Definition, options: Document<'_>) -> DocumentBuf {
    let mut specification = definition.specification.clone();
    let expires = options.get("expireAfterSeconds");
    if let Some(expires) = expires.filter(|_| definition.clustered) {
        specification.push("expireAfterSeconds", expires);
    }
    specification
}

/// Returns the UUID of a build. It is the same for all indexes of one build, which follow the log
/// from one position, and different for other builds. It does not change if the server restarts
/// during the build. It is a random UUID because that of the collection is: positions do not reach
/// the bits of the version and the variant.
fn build_uuid(index: &Index, collection: &Collection) -> Value {
    let uuid = u128::from_be_bytes(collection.uuid().0) ^ u128::from(index.since.0);
    Value::Binary {
        subtype: 4,
        bytes: uuid.to_be_bytes().to_vec(),
    }
}

/// Returns the numbers and names of MongoDB's build phases.
fn build_info(index: &Index, collection: &Collection) -> DocumentBuf {
    let progress = index.progress();
    let (phase, name) = if progress.checking.load(Relaxed) {
        (2, "bulk load")
    } else if progress.documents_total.load(Relaxed) > 0 {
        (1, "collection scan")
    } else {
        (0, "initialized")
    };
    doc! {
        "buildUUID": (build_uuid(index, collection)), "method": "Hybrid", "phase": phase,
        "phaseStr": name, "resumable": true, "replicationState": { "state": "In progress" },
    }
}
