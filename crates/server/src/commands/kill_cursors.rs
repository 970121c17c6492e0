//! `killCursors`: closes cursors.

use windrow_access::{Action, Resource};
use windrow_document::{Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::Needs;
use crate::command::{AcceptedArguments, Command, InTransactions, SnapshotReads};
use crate::context::Context;
use crate::cursors::KillOutcome;
use crate::namespace;

pub const KILL_CURSORS: Command = Command {
    name: "killCursors",
    help: "closes cursors",
    needs: Needs::Login,
    in_api_version_1: true,
    arguments: AcceptedArguments::Only(&["cursors"]),
    // Drivers send the read concern of their session with each command.
    read_concern: true,
    snapshot_reads: SnapshotReads::OfCursor,
    in_transactions: InTransactions::Following,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let KillCursorsRequest { ids } = KillCursorsRequest::parse(request)?;
    let (mut killed, mut not_found): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    for id in &ids {
        check_may_kill(context, *id)?;
    }
    for id in ids {
        match context.state.cursors.kill(id) {
            KillOutcome::Closed => killed.push(id),
            KillOutcome::InUse { operation } => {
                let operations = &context.state.operations;
                operations.kill(operation, ErrorCode::CursorKilled);
                killed.push(id);
            }
            KillOutcome::NotFound => not_found.push(id),
        }
    }
    let none = || Value::Array(windrow_document::array![]);
    Ok(Reply::ok(doc! {
        "cursorsKilled": killed, "cursorsNotFound": not_found,
        "cursorsAlive": (none()), "cursorsUnknown": (none()),
    }))
}

/// Fails with Unauthorized if the cursor of another user must not be closed.
fn check_may_kill(context: &Context<'_>, id: i64) -> Result<(), CommandError> {
    let (authority, action) = (context.authority, Action::killAnyCursor);
    let Some(owner) = context.state.cursors.owner(id) else {
        return Ok(());
    };
    let (database, name) = owner
        .namespace
        .split_once('.')
        .unwrap_or((&owner.namespace, ""));
    let resource = if name.starts_with("$cmd") {
        Resource::database(database)
    } else {
        Resource::namespace(database, name)
    };
    let is_allowed = authority.owns(owner.user.as_ref())
        || authority.allows(&Resource::Cluster, action)
        || authority.allows(&resource, action);
    if is_allowed {
        return Ok(());
    }
    let message = format!("not authorized on {database} to kill cursor id {id}");
    Err(CommandError::new(ErrorCode::Unauthorized, message))
}

/// A parsed `killCursors`.
struct KillCursorsRequest {
    ids: Vec<i64>,
}

impl KillCursorsRequest {
    /// Parses the cursor ids. Nulls are ignored. The collection name is checked, but a cursor is
    /// found by its id only, as in MongoDB.
    fn parse(request: &Request) -> Result<KillCursorsRequest, CommandError> {
        let wrong = |message: &str| CommandError::new(ErrorCode::FailedToParse, message);
        let Some((_, ValueRef::String(collection))) = request.body().first() else {
            return Err(wrong("Field 'killCursors' must be of type string"));
        };
        namespace::check_collection(request.database(), collection)?;
        let Some(ValueRef::Array(cursors)) = request.get("cursors") else {
            return Err(wrong("Field 'cursors' must be of type array"));
        };
        let id = |value| match value {
            ValueRef::Null => None,
            ValueRef::Int64(id) => Some(Ok(id)),
            _ => Some(Err(wrong(
                "Field 'cursors' contains an element that is not of type long",
            ))),
        };
        let ids = cursors.iter().filter_map(id).collect::<Result<_, _>>()?;
        Ok(KillCursorsRequest { ids })
    }
}
