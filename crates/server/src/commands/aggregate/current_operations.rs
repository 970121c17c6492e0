//! `$currentOp`: the running operations and, optionally, idle connections and sessions. There is
//! one server, so options that choose among servers have no effect.

use windrow_collection::Namespace;
use windrow_document::{DocumentBuf, ValueRef};
use windrow_wire::{CommandError, ErrorCode};

use super::document_list::Describe;
use super::stage_options;
use crate::context::Context;
use crate::errors::refuse;
use crate::idle::{self, OperationScope};

const FLAGS: [&str; 7] = [
    "allUsers",
    "idleConnections",
    "idleCursors",
    "idleSessions",
    "localOps",
    "targetAllNodes",
    "truncateOps",
];

/// Lists the operations.
///
/// # Errors
///
/// - 73: the command is not on `admin`, or names a collection.
/// - 14, 40415: invalid options.
/// - 9: options of sharded clusters.
pub fn describe<'c>(
    context: &'c Context<'_>,
    namespace: &Namespace,
    is_collectionless: bool,
    operand: ValueRef<'_>,
) -> Result<Describe<'c>, CommandError> {
    if namespace.database != "admin" || !is_collectionless {
        let message = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
        return refuse(ErrorCode::InvalidNamespace, message);
    }
    let waiting = IdleLists::parse(operand)?;
    Ok(Box::new(move || Ok(collect(context, &waiting))))
}

fn collect(context: &Context<'_>, waiting: &IdleLists) -> Vec<DocumentBuf> {
    let state = context.state;
    let (running, idle) = state.operations.running_and_idle(&state.connections);
    let scope = OperationScope::new(context, !waiting.all_users);
    let own = running.iter().filter(|one| scope.includes_operation(one));
    let mut shown: Vec<DocumentBuf> = own.map(|one| one.describe(&state.host)).collect();
    if waiting.connections {
        shown.extend(idle::connections(state, &idle, &scope));
    }
    if waiting.sessions {
        shown.extend(idle::transactions(state, &scope));
    }
    if waiting.cursors {
        shown.extend(idle::cursors(state, &scope));
    }
    shown
}

/// Idle things to list.
#[derive(Debug)]
struct IdleLists {
    all_users: bool,
    connections: bool,
    cursors: bool,
    sessions: bool,
}

impl IdleLists {
    fn parse(operand: ValueRef<'_>) -> Result<IdleLists, CommandError> {
        let options = stage_options::parse("$currentOp", operand, &FLAGS)?;
        for name in FLAGS {
            options.non_null_bool(name)?;
        }
        if options.non_null_bool("targetAllNodes")? == Some(true) {
            let message = "$currentOp supports targetAllNodes only for sharded clusters";
            return refuse(ErrorCode::FailedToParse, message);
        }
        Ok(IdleLists {
            all_users: options.non_null_bool("allUsers")?.unwrap_or(false),
            connections: options.non_null_bool("idleConnections")?.unwrap_or(false),
            cursors: options.non_null_bool("idleCursors")?.unwrap_or(false),
            sessions: options.non_null_bool("idleSessions")?.unwrap_or(true),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Value, doc};

    #[test]
    fn options_are_booleans() {
        let parse = |operand: ValueRef<'_>| IdleLists::parse(operand).map(drop);
        let check =
            |operand: Value, expected| stage_options::tests::check(parse, &operand, expected);
        check(doc! {}.into(), None);
        check(doc! { "allUsers": true, "idleCursors": false }.into(), None);
        check(doc! { "targetAllNodes": false }.into(), None);
        check(doc! { "targetAllNodes": true }.into(), Some(9));
        check(doc! { "localOps": 1 }.into(), Some(14));
        check(doc! { "allUsers": null }.into(), Some(14));
        check(doc! { "AllUsers": true }.into(), Some(40415));
        check(Value::Null, Some(14));
        check(1.into(), Some(14));
    }
}
