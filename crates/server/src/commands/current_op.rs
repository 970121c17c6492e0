//! `currentOp`: the running operations.

use std::sync::Arc;

use windrow_access::Action;
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_wire::{CommandError, Reply, Request};

use crate::access::{AccessRequest, Needs, Requirement};
use crate::arguments::Arguments;
use crate::command::{AcceptedArguments, Command, Routing};
use crate::common_arguments::is_generic;
use crate::context::Context;
use crate::errors::OrCommandError;
use crate::idle::{self, OperationScope};
use crate::index_builds::unfinished;
use crate::operations::Operation;
use crate::state::State;

/// Besides its own arguments it accepts a filter of the operations.
pub const CURRENT_OP: Command = Command {
    name: "currentOp",
    help: "lists the running operations",
    routing: Routing::Here,
    needs: Needs::Computed(requirement),
    admin_only: true,
    arguments: AcceptedArguments::Any,
    run,
    ..Command::EMPTY
};

/// Returns the requirement: every user may list its own operations.
fn requirement(request: &AccessRequest<'_>) -> Requirement {
    if request.flag("$ownOps") {
        return Requirement::Nothing;
    }
    Requirement::on_server(&[Action::inprog])
}

/// A parsed `currentOp`.
struct CurrentOpRequest {
    /// `true` if only operations of the user are listed.
    own_only: bool,
    /// `true` if idle connections are listed.
    with_idle_connections: bool,
    filter: Filter,
}

impl CurrentOpRequest {
    fn parse(request: &Request) -> Result<CurrentOpRequest, CommandError> {
        let arguments = Arguments::new(request);
        let fields = request.body().iter().skip(1).filter(is_filter_field);
        let filter: DocumentBuf = fields.collect();
        Ok(CurrentOpRequest {
            own_only: arguments.flag("$ownOps")?,
            with_idle_connections: arguments.flag("$all")?,
            filter: Filter::parse(filter.as_document()).or_command_error()?,
        })
    }
}

fn run(request: &Request, context: &Context<'_>) -> Result<Reply, CommandError> {
    let request = CurrentOpRequest::parse(request)?;
    let scope = OperationScope::new(context, request.own_only);
    let state = context.state;
    let (running, idle) = state.operations.running_and_idle(&state.connections);
    let own = running.iter().filter(|one| scope.includes_operation(one));
    let mut shown: Vec<DocumentBuf> = own.map(|one| one.describe(&state.host)).collect();
    if scope.includes_all() {
        shown.extend(unattended_builds(state, &running));
    }
    shown.extend(idle::transactions(state, &scope));
    if request.with_idle_connections {
        shown.extend(idle::connections(state, &idle, &scope));
    }
    let mut found: Vec<Value> = Vec::new();
    for op in shown {
        if request
            .filter
            .matches(op.as_document())
            .or_command_error()?
        {
            found.push(op.into());
        }
    }
    Ok(Reply::ok(doc! { "inprog": found }))
}

/// Returns the index builds for which no client waits, because its connection was closed or the
/// server was restarted.
fn unattended_builds(state: &State, running: &[Arc<Operation>]) -> Vec<DocumentBuf> {
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

fn is_filter_field((name, _): &(&str, ValueRef<'_>)) -> bool {
    !is_generic(name) && !matches!(*name, "$all" | "$ownOps")
}
