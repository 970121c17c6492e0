//! Idle connections, cursors and transactions, for `currentOp`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use windrow_document::{DocumentBuf, doc};

use crate::client::Client;
use crate::clock;
use crate::parameters::TRANSACTION_SECONDS;
use crate::state::State;

/// Connections that run no command.
pub fn connections(state: &State, idle: &[Arc<Client>]) -> Vec<DocumentBuf> {
    let described = idle.iter().map(|client| {
        let mut described = client.describe(&state.host);
        described.push("active", false);
        described.push("currentOpTime", clock::iso(SystemTime::now()));
        described
    });
    described.collect()
}

/// The cursors that wait for a `getMore`.
pub fn cursors(state: &State) -> Vec<DocumentBuf> {
    let idle = state.cursors.idle().into_iter().map(|one| {
        let mut described = doc! {
            "type": "idleCursor", "host": (state.host.as_str()), "ns": (one.owner.namespace.as_str()),
        };
        if let Some(session) = one.owner.session {
            described.push("lsid", session.to_document());
        }
        if let Some(summary) = &one.owner.plan_summary {
            described.push("planSummary", summary.as_str());
        }
        described.push("cursor", one.describe());
        described
    });
    idle.collect()
}

/// The open transactions that wait for their next command.
pub fn transactions(state: &State) -> Vec<DocumentBuf> {
    let seconds = state.parameters.number(TRANSACTION_SECONDS).max(1);
    let lifetime = Duration::from_secs(seconds.unsigned_abs());
    let idle = state.session_transactions.idle().into_iter().map(|one| {
        let started = clock::at(one.since);
        let transaction = doc! {
            "parameters": { "txnNumber": (one.number), "autocommit": false },
            "startWallClockTime": (clock::iso(started)),
            "timeOpenMicros": (one.since.elapsed().as_micros() as i64),
            "expiryTime": (clock::iso(started + lifetime)),
        };
        doc! {
            "type": "idleSession", "host": (state.host.as_str()), "desc": "inactive transaction",
            "active": false, "lsid": (one.session.to_document()), "transaction": transaction,
            "waitingForLock": false, "locks": {}, "lockStats": {},
        }
    });
    idle.collect()
}
