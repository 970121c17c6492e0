//! Dispatches requests: finds the command, checks that it may run, runs it, and records the result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use windrow_document::ValueRef;
use windrow_mql::interrupt::with_interrupt;
use windrow_wire::limits::COMMAND_BYTES_MAX;
use windrow_wire::{CommandError, ErrorCode, Reply, Request};

use crate::access::events::{self, Event};
use crate::access::identification::authority_of;
use crate::access::{AccessRequest, Authority, Requirement};
use crate::acknowledgment;
use crate::auditing::record_direct_writes;
use crate::authorization_audit::record_check;
use crate::change_stream::opens_stream;
use crate::client::Client;
use crate::command::Command;
use crate::command_spans::record_span;
use crate::commands::{COMMANDS, find, secret_arguments};
use crate::common_arguments::{CommonArguments, TransactionPart};
use crate::context::Context;
use crate::error_labels::{FailureKind, with_label_for, with_transient_label};
use crate::fail_point_effects::apply;
use crate::fail_points::FailPointCommand;
use crate::latency::LatencyClass;
use crate::log::Severity;
use crate::metrics::CommandCounts;
use crate::namespace;
use crate::operations::{Operation, RunningOperation, Starter};
use crate::parameters::TEST_COMMANDS;
use crate::queryable_encryption::encrypted_or_plain;
use crate::recorder::{self, EndedCommand};
use crate::role;
use crate::shown_command::shown_command;
use crate::snapshot_reads;
use crate::state::State;
use crate::time_limits::{has_time_limit, time_limit};
use crate::transaction_admission;
use crate::transaction_context::TransactionContext;
use crate::usage::CommandUse;

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

/// A request on its way to a reply.
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

/// The reply to a request, or its error with error labels.
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

/// The command with this name or alias, if the server has it.
fn find_enabled(state: &State, name: &str) -> Option<&'static Command> {
    find(name).filter(|command| !command.for_tests || state.parameters.flag(TEST_COMMANDS))
}

/// The counters of the requested command. An unknown command is counted immediately.
fn counts<'a>(state: &'a State, request: &Request) -> Option<&'a CommandCounts> {
    let Some(command) = find_enabled(state, request.command()) else {
        state.metrics.unknown_commands.fetch_add(1, Relaxed);
        return None;
    };
    let all = COMMANDS.iter().map(|command| command.name);
    let all = all.filter(|name| find_enabled(state, name).is_some());
    state.metrics.command_counts(all, command.name)
}

/// The kind of a failed request, which determines its error labels.
fn failure_kind(state: &State, request: &Request) -> FailureKind {
    let is_numbered = request.get("txnNumber").is_some();
    let is_within = request.get("autocommit").is_some();
    let ends = || find(request.command()).is_some_and(|command| command.ends_transaction);
    match (is_numbered, is_within) {
        (true, false) => FailureKind::RetryableWrite,
        (true, true) if ends() => FailureKind::EndOfTransaction,
        (true, true) => FailureKind::InTransaction,
        (false, _) if reads_stream(state, request) => FailureKind::ChangeStream,
        (false, _) => FailureKind::Other,
    }
}

/// Returns `true` if the request opens a change stream, or continues one that is not open any more.
/// An error during a `getMore` closes its cursor, so `getMore` itself reports that it was a change
/// stream.
fn reads_stream(state: &State, request: &Request) -> bool {
    match request.get("getMore").and_then(ValueRef::as_whole) {
        None => opens_stream(request.body()),
        Some(id) => {
            let idle = state.cursors.idle();
            let cursor = idle.iter().find(|cursor| cursor.id == id);
            cursor.is_some_and(|cursor| opens_stream(cursor.owner.command.as_document()))
        }
    }
}

/// The command of a request. Fails if there is none, or if it does not run on the database.
fn find_command(state: &State, request: &Request) -> Result<&'static Command, CommandError> {
    let name = request.command();
    let command = find_enabled(state, name).ok_or_else(|| {
        CommandError::new(
            ErrorCode::CommandNotFound,
            format!("no such command: '{name}'"),
        )
    })?;
    namespace::check_database(request.database())?;
    if command.admin_only && request.database() != "admin" {
        let message = format!(
            "{} may only be run against the admin database.",
            command.name
        );
        return Err(CommandError::new(ErrorCode::Unauthorized, message));
    }
    Ok(command)
}

/// Fails with Unauthorized if the client may not run the command. Returns what it needed.
fn check_access(
    state: &State,
    client: &Client,
    request: &Request,
    command: &Command,
    authority: &Authority,
) -> Result<Requirement, CommandError> {
    if command.needs.is_free() {
        return Ok(Requirement::Nothing);
    }
    if authority.is_unrestricted() {
        record_check(state, client, request, command, true);
        return Ok(Requirement::Nothing);
    }
    let asked = AccessRequest::new(state, request, authority.identity());
    let message = if matches!(authority, Authority::Nobody) {
        format!("Command {} requires authentication", command.name)
    } else {
        let requirement = command.needs.requirement(&asked);
        let is_enough = authority.user().is_some() || requirement != Requirement::Nothing;
        if is_enough && authority.meets(&requirement) {
            record_check(state, client, request, command, true);
            return Ok(requirement);
        }
        let database = request.database();
        let shown = shown_command(request.body(), database, secret_arguments);
        format!("not authorized on {database} to execute command {shown}")
    };
    let refused = Event::AuthCheck {
        command: command.name,
        database: request.database(),
        user: authority.user(),
        error: &message,
    };
    events::record(state, client, &refused);
    record_check(state, client, request, command, false);
    Err(CommandError::new(ErrorCode::Unauthorized, message))
}

/// The common arguments of a request. Fails if a check before the execution fails.
fn check_request(
    state: &State,
    request: &Request,
    command: &Command,
    authority: &Authority,
) -> Result<CommonArguments, CommandError> {
    command.check_arguments(request.body(), request.sequence_names())?;
    let common = CommonArguments::parse(request, command, state.replica_set.is_some());
    let mut common = common.map_err(|error| match request.get("startTransaction") {
        Some(_) => with_transient_label(error),
        None => error,
    })?;
    if let Some(session) = common.session {
        let session = authority.session(session)?;
        common.set_session(session);
        if !matches!(authority, Authority::Nobody) {
            state.sessions.touch(session)?;
        }
    }
    role::check(state, request, command, &common)?;
    if state.stop.is_requested() {
        let message = "The server is in quiesce mode and will shut down";
        return Err(CommandError::new(ErrorCode::ShutdownInProgress, message));
    }
    Ok(common)
}

/// Runs a command after a wait, as an operation that is listed, limited and recorded.
fn execute(call: Call<'_>, wait: Duration) -> Result<Reply, CommandError> {
    call.state.metrics.count(call.command.kind);
    let running = start(call);
    let operation = &running.operation;
    let outcome = run_in_slot(call, operation, wait).and_then(|reply| {
        let Call {
            state,
            request,
            command,
            common,
            ..
        } = call;
        acknowledgment::wait(state, request, command, common, operation, reply)
    });
    record(call, operation, &outcome);
    Ok(acknowledgment::reduce(outcome?, call.command, call.common))
}

/// Registers the operation of a command.
fn start(call: Call<'_>) -> RunningOperation<'_> {
    let Call {
        state,
        client,
        request,
        command,
        common,
        authority,
        ..
    } = call;
    let time_limit = time_limit(state, request, command, common);
    let time_limit = state.fail_points.limit(time_limit);
    let starter = Starter {
        kind: command.kind,
        secret_arguments,
        user: authority.user(),
    };
    let running = state
        .operations
        .start(request, client, starter, common.session, time_limit);
    let operation = &running.operation;
    operation.set_recorded_from(recorder::recorded_from(state));
    if command.ends_with_client || (command.is_limited_read)(request.body()) {
        operation.end_with_client();
    }
    running
}

/// Runs a command after a wait, once the limit of operations allows it.
fn run_in_slot(
    call: Call<'_>,
    operation: &Arc<Operation>,
    wait: Duration,
) -> Result<Reply, CommandError> {
    let _slot = needs_slot(call)
        .then(|| call.state.operation_slots.take(operation))
        .transpose()?;
    pause(call.state, operation, wait)?;
    run_numbered(call, operation)
}

/// Returns `true` for reads and writes, unless they continue a transaction: other operations may wait
/// for it.
fn needs_slot(call: Call<'_>) -> bool {
    let numbered = call.common.numbered.as_ref();
    let continues = numbered.is_some_and(|it| it.part == TransactionPart::Continuation);
    matches!(call.command.class, LatencyClass::Read | LatencyClass::Write) && !continues
}

/// Runs a command, within its transaction or retryable write if it has a transaction number.
fn run_numbered(call: Call<'_>, operation: &Arc<Operation>) -> Result<Reply, CommandError> {
    let Call {
        state,
        request,
        command,
        common,
        ..
    } = call;
    let Some(numbered) = &common.numbered else {
        return run_command(call, operation, None);
    };
    let transaction =
        transaction_admission::join(state, request, command, common, numbered, operation)?;
    let allowed = transaction_admission::check_reads(command, &transaction);
    let outcome = allowed.and_then(|()| run_command(call, operation, Some(&transaction)));
    transaction.leave(state, outcome)
}

/// Runs the function of a command. A panic becomes an error.
fn run_command(
    call: Call<'_>,
    operation: &Arc<Operation>,
    transaction_context: Option<&TransactionContext>,
) -> Result<Reply, CommandError> {
    let Call {
        state,
        client,
        command,
        common,
        authority,
        requirement,
        ..
    } = call;
    let broken = || handle_panic(call, operation);
    let snapshot = catch_panic(|| snapshot_reads::open(state, command, common), broken)?;
    let context = Context {
        state,
        client,
        authority,
        requirement,
        operation,
        common,
        transaction_context,
        own_transaction: None,
        hides_arguments: false,
        snapshot: snapshot.as_ref(),
        times: &OnceLock::new(),
    };
    let interrupted = Arc::clone(operation);
    let interrupt = Arc::new(move || {
        let checked = Operation::check(&interrupted);
        checked.map_err(|error| windrow_mql::Error::new(error.code.number(), error.message))
    });
    let run = || {
        with_interrupt(interrupt, || {
            encrypted_or_plain(command, call.request, &context, find)
        })
    };
    let outcome = catch_panic(run, broken).map(|reply| match &snapshot {
        Some(snapshot) => snapshot_reads::with_snapshot_time(reply, command, snapshot),
        None => reply,
    });
    let outcome = match command.class {
        // A write has happened, so its reply must be returned.
        LatencyClass::Write => outcome,
        _ => outcome.and_then(checked_size),
    };
    outcome.map_err(|error| with_interrupt_reason(error, operation))
}

/// Records the end of a command in the metrics, the log and the profile.
fn record(call: Call<'_>, operation: &Operation, outcome: &Result<Reply, CommandError>) {
    let Call {
        state,
        client,
        request,
        command,
        counts,
        authority,
        ..
    } = call;
    if let Err(error) = outcome {
        count_killed(state, request, command, error);
    }
    record_direct_writes(state, client, request);
    operation.count_work(&state.metrics);
    let took = operation.worked();
    state.metrics.took(command.class, took);
    if let Some(counts) = counts {
        counts.latency.add(took);
    }
    if !matches!(authority, Authority::Nobody) {
        let used = CommandUse {
            connection: client.id,
            namespace: &operation.namespace(),
            kind: command.kind,
            class: command.class,
            took,
        };
        state.usage.record(&state.services.engine, used);
    }
    let ended = EndedCommand {
        client,
        operation,
        took,
        outcome,
    };
    recorder::record(state, &ended);
    record_span(state, command.name, &ended);
}

/// Waits as a fail point demands, while the operation may continue. Fails at once if a fail point
/// has set its time limit to zero.
fn pause(state: &State, operation: &Operation, waits: Duration) -> Result<(), CommandError> {
    if operation.time_left().is_some_and(|left| left.is_zero()) {
        operation.check()?;
    }
    let began = Instant::now();
    while let Some(left) = waits
        .checked_sub(began.elapsed())
        .filter(|it| !it.is_zero())
    {
        operation.check()?;
        state.stop.wait(left.min(CHECK_INTERVAL));
    }
    Ok(())
}

/// The interval at which a wait checks if the operation must stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Fails if a reply is larger than a document may be, such as the explanation of a thousand stages.
fn checked_size(reply: Reply) -> Result<Reply, CommandError> {
    let bytes = reply.bytes();
    if bytes <= COMMAND_BYTES_MAX {
        return Ok(reply);
    }
    let message = format!(
        "BSONObj size: {bytes} (0x{bytes:X}) is invalid. Size must be between 0 and {COMMAND_BYTES_MAX}(16MB)"
    );
    Err(CommandError::new(ErrorCode::BSONObjectTooLarge, message))
}

/// Counts an operation that was interrupted.
fn count_killed(state: &State, request: &Request, command: &Command, error: &CommandError) {
    let metrics = &state.metrics;
    let is_read = (command.is_limited_read)(request.body());
    let has_default = is_read && !has_time_limit(request);
    let counter = match error.code {
        ErrorCode::MaxTimeMSExpired if has_default => &metrics.killed_by_default_limit,
        ErrorCode::MaxTimeMSExpired => &metrics.killed_by_limit,
        ErrorCode::ClientDisconnect => &metrics.killed_by_disconnect,
        _ => return,
    };
    counter.fetch_add(1, Relaxed);
}

/// The error of an interrupted operation is replaced by the reason of the interrupt.
fn with_interrupt_reason(error: CommandError, operation: &Operation) -> CommandError {
    match error.code {
        ErrorCode::Interrupted => operation.check().err().unwrap_or(error),
        _ => error,
    }
}

/// Runs a function. If it panics, returns the error of `broken`.
fn catch_panic<T>(
    run: impl FnOnce() -> Result<T, CommandError>,
    broken: impl FnOnce() -> CommandError,
) -> Result<T, CommandError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err(broken()))
}

/// Handles a panic of a command: the client gets an error, and all others continue.
fn handle_panic(call: Call<'_>, operation: &Operation) -> CommandError {
    let Call {
        state,
        client,
        command,
        ..
    } = call;
    state.metrics.panics.fetch_add(1, Relaxed);
    let mut attr = operation.slow_attributes();
    attr.push("opid", operation.id);
    let log = &state.services.log;
    log.write(
        Severity::Error,
        "COMMAND",
        COMMAND_PANICKED,
        &client.name(),
        "Command panicked",
        attr,
    );
    let message = format!(
        "internal error in {}: the server's log has the details",
        command.name
    );
    CommandError::new(ErrorCode::UnknownError, message)
}

/// The id of the log line about a panic. MongoDB has no such event.
const COMMAND_PANICKED: i32 = 9_000_002;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::request_for_tests;
    use crate::log::Log;
    use crate::state::Services;
    use crate::{Config, State};
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

    #[test]
    fn a_panic_is_a_reply() {
        let broken = Command {
            run: |_, _| panic!("broken"),
            ..Command::EMPTY
        };
        let broken: &'static Command = Box::leak(Box::new(broken));
        let state = state();
        let request = request_for_tests(&doc! { "ping": 1, "$db": "a" });
        let call = Call {
            state: &state,
            client: &Client::for_tests(),
            request: &request,
            command: broken,
            counts: None,
            common: &CommonArguments::default(),
            authority: &Authority::Unrestricted,
            requirement: &Requirement::Nothing,
        };
        let error = execute(call, Duration::ZERO).unwrap_err();
        assert_eq!(error.code, ErrorCode::UnknownError);
        assert_eq!(crate::metrics::int(&state.metrics.panics), 1);
        assert!(state.operations.all().is_empty());
    }
}
