//! `currentOp`: what runs right now.

use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::arguments::Arguments;
use crate::command::{Accepted, Command};
use crate::context::Context;
use crate::generic::is_generic;
use crate::idle;
use crate::index_builds::unfinished;
use crate::operations::Operation;
use crate::state::State;

/// Besides its own arguments it takes fields that the shown operations must have.
pub const CURRENT_OP: Command = Command {
    name: "currentOp",
    help: "shows the operations that run",
    admin_only: true,
    arguments: Accepted::Any,
    run,
    ..Command::EMPTY
};

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let arguments = Arguments::new(request);
    // There is one user, whose operations all are.
    arguments.flag("$ownOps")?;
    let with_connections = arguments.flag("$all")?;
    let wanted: Vec<(&str, ValueRef<'_>)> =
        request.body().iter().skip(1).filter(is_wanted).collect();
    if let Some((name, _)) = wanted.iter().find(|(_, value)| has_operator(*value)) {
        let message = format!("currentOp compares with values only; '{name}' has an operator");
        return Err(CommandError::new(ErrorCode::NotImplemented, message));
    }
    let state = context.state;
    let is_shown = |op: Document<'_>| {
        wanted
            .iter()
            .all(|(path, value)| at(op, path).is_some_and(|found| same(found, *value)))
    };
    let (running, idle) = state.operations.look(&state.connections);
    let mut shown: Vec<DocumentBuf> = running
        .iter()
        .map(|one| one.describe(&state.host))
        .collect();
    shown.extend(left_builds(state, &running));
    shown.extend(idle::transactions(state));
    if with_connections {
        shown.extend(idle::connections(state, &idle));
    }
    shown.retain(|op| is_shown(op.as_document()));
    let shown: Vec<Value> = shown.into_iter().map(Value::from).collect();
    Ok(Reply::ok(doc! { "inprog": shown }))
}

/// Index builds that no client waits for: its connection is gone, or the server was started anew.
fn left_builds(state: &State, running: &[Arc<Operation>]) -> Vec<DocumentBuf> {
    let is_waited_for = |namespace: &str| {
        running
            .iter()
            .any(|one| one.has_progress() && one.namespace() == namespace)
    };
    let unfinished = unfinished(&state.services.engine);
    let left = unfinished
        .iter()
        .filter(|one| !is_waited_for(&one.collection.namespace().to_string()));
    left.map(|one| one.describe(&state.host)).collect()
}

fn is_wanted((name, _): &(&str, ValueRef<'_>)) -> bool {
    !is_generic(name) && !matches!(*name, "$all" | "$ownOps")
}

fn has_operator(value: ValueRef<'_>) -> bool {
    let first = value.as_document().and_then(Document::first);
    first.is_some_and(|(name, _)| name.starts_with('$'))
}

fn at<'a>(op: Document<'a>, path: &str) -> Option<ValueRef<'a>> {
    match path.split_once('.') {
        None => op.get(path),
        Some((first, rest)) => at(op.get(first)?.as_document()?, rest),
    }
}

fn same(one: ValueRef<'_>, other: ValueRef<'_>) -> bool {
    one == other
        || one
            .as_f64()
            .is_some_and(|number| other.as_f64() == Some(number))
}
