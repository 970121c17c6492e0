//! Dispatches requests: finds the command, checks that it may run, runs it, and records the result.

mod checks;
mod execution;
mod failure_kind;
mod lookup;
mod record_end;
mod run_command;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use windrow_wire::{CommandError, Reply, Request};

use crate::access::identification::authority_of;
use crate::access::{Authority, Requirement};
use crate::client::Client;
use crate::command::Command;
use crate::commands::find;
use crate::common_arguments::CommonArguments;
use crate::error_labels::with_label_for;
use crate::fail_point_effects::apply;
use crate::fail_points::FailPointCommand;
use crate::metrics::CommandCounts;
use crate::role;
use crate::state::State;

use checks::{check_access, check_request};
use execution::execute;
pub(crate) use failure_kind::failure_kind;
pub(crate) use lookup::counts;
use lookup::find_command;

/// Runs a request. Returns a reply for every outcome, including a panic.
pub(crate) fn run(state: &State, client: &Arc<Client>, request: &Request) -> Reply {
    state.metrics.connections_active.fetch_add(1, Relaxed);
    let counts = counts(state, request);
    counts.map(|counts| counts.total.fetch_add(1, Relaxed));
    let outcome = respond(state, client, request, counts);
    let outcome = outcome.and_then(|reply| state.check_audit().map(|()| reply));
    state.metrics.connections_active.fetch_sub(1, Relaxed);
    let reply = outcome.unwrap_or_else(|error| {
        state.metrics.user_errors.fetch_add(1, Relaxed);
        counts.map(|counts| counts.failed.fetch_add(1, Relaxed));
        Reply::from(&error)
    });
    match &state.replica_set {
        None => reply,
        Some(member) => {
            let times = member.times(state.services.engine.newest_time());
            reply.with_fields(times.as_document())
        }
    }
}

/// A request that passed the checks, and what they found.
#[derive(Clone, Copy)]
struct Call<'a> {
    state: &'a State,
    client: &'a Arc<Client>,
    request: &'a Request,
    command: &'static Command,
    counts: Option<&'a CommandCounts>,
    common: &'a CommonArguments,
    authority: &'a Authority,
    requirement: &'a Requirement,
}

/// Returns the reply to a request, or its error with error labels.
fn respond(
    state: &State,
    client: &Arc<Client>,
    request: &Request,
    counts: Option<&CommandCounts>,
) -> Result<Reply, CommandError> {
    let labelled = |error| with_label_for(error, failure_kind(state, request));
    let label = |error| role::with_topology_version(state, labelled(error));
    let authority = authority_of(state, client).map_err(label)?;
    let command = find_command(state, request).map_err(label)?;
    let requirement = check_access(state, client, request, command, &authority).map_err(label)?;
    let common = check_request(state, request, command, &authority).map_err(label)?;
    let call = Call {
        state,
        client,
        request,
        command,
        counts,
        common: &common,
        authority: &authority,
        requirement: &requirement,
    };
    let run = |wait| execute(call, wait).map_err(label);
    let subject = FailPointCommand {
        client,
        request,
        is_called: &|name| find(name).is_some_and(|named| named.name == command.name),
    };
    match state.fail_points.meet(&subject) {
        None => run(Duration::ZERO),
        Some(effect) => {
            let failure = failure_kind(state, request);
            let applied = apply(state, &subject, &effect, failure, run);
            applied.map_err(|error| role::with_topology_version(state, error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::connection::request_for_tests;
    use crate::log::Log;
    use crate::state::Services;
    use windrow_document::{DocumentBuf, doc};

    fn state() -> State {
        let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
        State::new(Config::default(), services, 27017)
    }

    fn check(body: DocumentBuf, code: i32) {
        let reply = run(&state(), &Client::for_tests(), &request_for_tests(&body)).to_document();
        let found = reply
            .get("code")
            .map_or(0, |code| code.as_whole().unwrap_or(-1) as i32);
        assert_eq!(found, code, "{body} -> {reply}");
    }

    #[test]
    fn invalid_requests_are_refused() {
        check(doc! { "ping": 1, "$db": "a" }, 0);
        check(doc! { "foo": 1, "$db": "a" }, 59);
        check(doc! { "Ping": 1, "$db": "a" }, 59);
        check(doc! { "$db": "a" }, 59);
        check(doc! { "ping": 1, "$db": "a.b" }, 73);
        check(doc! { "getParameter": 1, "$db": "a" }, 13);
        check(doc! { "endSessions": [], "foo": 1, "$db": "a" }, 40415);
        check(doc! { "endSessions": [], "comment": 1, "$db": "a" }, 0);
    }

    #[test]
    fn a_stopping_server_refuses_commands() {
        let state = state();
        state.stop.request();
        let request = request_for_tests(&doc! { "ping": 1, "$db": "a" });
        let reply = run(&state, &Client::for_tests(), &request).to_document();
        assert_eq!(
            reply.get("codeName").unwrap().as_str(),
            Some("ShutdownInProgress")
        );
    }
}
