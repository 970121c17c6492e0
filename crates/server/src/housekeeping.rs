//! Regular background work of a server.

use std::time::{Duration, Instant};

use windrow_document::doc;
use windrow_wire::ErrorCode;

use crate::parameters::TRANSACTION_SECONDS;
use crate::state::State;

/// The interval at which plans, index filters and counts of dropped collections are freed.
const PLANS_INTERVAL: Duration = Duration::from_secs(60);

/// The interval at which the expiry of the server's certificate is checked.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// The interval at which the sockets of running operations are checked: an operation ends within
/// 100 ms after its client has disconnected.
const DISCONNECT_INTERVAL: Duration = Duration::from_millis(40);

/// Ends the operations of clients that have disconnected.
pub fn watch_clients(state: &State) {
    while !state.stop.wait(DISCONNECT_INTERVAL) {
        state.operations.kill_disconnected(&state.connections);
    }
}

/// The interval at which clients that have not logged in are checked.
const SILENCE_INTERVAL: Duration = Duration::from_secs(5);

/// A client that has to log in, and has not, is disconnected if this many checks in a row find no
/// complete message from it: after 60 seconds. Drivers send `hello` more often, without a login.
const SILENT_CHECKS_MAX: u32 = 12;

/// The id of the log line about a client that does not log in. MongoDB has no such event.
const SILENT_CLIENT: i32 = 9_000_021;

/// Closes the connections of clients that do not log in and send nothing, or a message that they do
/// not end. Others could not connect any more if there were many.
fn close_silent_clients(state: &State) {
    if !state.requires_login() {
        return;
    }
    let (_, idle) = state.operations.running_and_idle(&state.connections);
    let silent = idle.iter().filter(|client| {
        client.address.is_ip()
            && !client.login.is_logged_in()
            && client.count_silent_checks() >= SILENT_CHECKS_MAX
    });
    for client in silent {
        let attr = doc! { "remote": (client.address.to_string()) };
        let message = "Closing connection: its client did not log in";
        let log = &state.services.log;
        log.info("NETWORK", SILENT_CLIENT, &client.name(), message, attr);
        state.connections.close(client.id);
    }
}

/// Closes silent connections, and warns before the certificate of the server expires.
pub fn run_client_housekeeping(state: &State) {
    let (mut expiry_checked, mut silence_checked) = (Instant::now(), Instant::now());
    state.warn_before_expiry();
    while !state.stop.wait(Duration::from_secs(1)) {
        let now = Instant::now();
        if now.duration_since(silence_checked) >= SILENCE_INTERVAL {
            silence_checked = now;
            close_silent_clients(state);
        }
        if now.duration_since(expiry_checked) >= EXPIRY_INTERVAL {
            expiry_checked = now;
            state.warn_before_expiry();
        }
    }
}

/// Ends transactions that last too long, and expired sessions and cursors. Frees the plans and
/// the counts of dropped collections.
pub fn run_data_housekeeping(state: &State) {
    let mut plans_freed = Instant::now();
    while !state.stop.wait(Duration::from_secs(1)) {
        let now = Instant::now();
        if now.duration_since(plans_freed) >= PLANS_INTERVAL {
            plans_freed = now;
            let uuids = state.services.engine.uuids();
            state.planner_settings.retain(|uuid| uuids.contains(&uuid));
            state.usage.forget_dropped(&state.services.engine);
        }
        let limit = state.parameters.number(TRANSACTION_SECONDS).max(1);
        for session in state
            .session_transactions
            .expire(Duration::from_secs(limit.unsigned_abs()))
        {
            let code = ErrorCode::TransactionExceededLifetimeLimitSeconds;
            state.operations.kill_session(session, code);
        }
        for session in state.sessions.expire(now) {
            state.session_transactions.forget(session);
            state.services.engine.forget_session(session.key());
            state.cursors.kill_session(session);
            state
                .operations
                .kill_session(session, ErrorCode::Interrupted);
        }
        let timeout = state.parameters.number("cursorTimeoutMillis");
        let timeout = Duration::from_millis(u64::try_from(timeout).unwrap_or(u64::MAX));
        let expired = state.cursors.expire(now, timeout);
        if expired > 0 {
            let attr = doc! { "count": (expired as i32) };
            state
                .services
                .log
                .info("QUERY", 20_529, "housekeeping", "Cursors timed out", attr);
        }
    }
}
