//! Idle connections, cursors and transactions, for `currentOp`.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use windrow_access::UserName;
use windrow_document::{DocumentBuf, doc};

use crate::access::Authority;
use crate::client::Client;
use crate::clock;
use crate::context::Context;
use crate::cursors::CursorInfo;
use crate::operations::Operation;
use crate::parameters::TRANSACTION_SECONDS;
use crate::sessions::SessionId;
use crate::state::State;

/// Whose operations are listed.
pub struct OperationScope<'a> {
    /// The authority of the client, if only its own operations are listed.
    own: Option<&'a Authority>,
}

impl<'a> OperationScope<'a> {
    /// Creates a scope of all operations, or of those of the client if it may see no others.
    pub fn new(context: &Context<'a>, is_own: bool) -> OperationScope<'a> {
        let is_restricted = is_own && !context.authority.is_unrestricted();
        OperationScope {
            own: is_restricted.then_some(context.authority),
        }
    }

    /// Returns `true` if all operations are listed.
    pub fn includes_all(&self) -> bool {
        self.own.is_none()
    }

    fn includes_user(&self, user: Option<&UserName>) -> bool {
        self.own.is_none_or(|authority| authority.owns(user))
    }

    /// Returns `true` if an operation is listed.
    pub fn includes_operation(&self, operation: &Operation) -> bool {
        self.includes_user(operation.user.as_ref())
    }

    fn includes_session(&self, session: SessionId) -> bool {
        self.own
            .is_none_or(|authority| authority.digest() == session.user)
    }

    fn includes_cursor(&self, cursor: &CursorInfo) -> bool {
        self.includes_user(cursor.owner.user.as_ref())
    }
}

/// Connections that run no command.
pub fn connections(
    state: &State,
    idle: &[Arc<Client>],
    scope: &OperationScope<'_>,
) -> Vec<DocumentBuf> {
    let users = idle.iter().map(|client| (client, client.login.user()));
    let listed = users.filter(|(_, user)| scope.includes_user(user.as_ref()));
    let described = listed.map(|(client, user)| {
        let mut described = client.describe(&state.host);
        described.push("active", false);
        if let Some(user) = user {
            described.push("effectiveUsers", vec![user.to_document()]);
        }
        described.push("currentOpTime", clock::iso(SystemTime::now()));
        described
    });
    described.collect()
}

/// Returns the cursors that wait for a `getMore`.
pub fn cursors(state: &State, scope: &OperationScope<'_>) -> Vec<DocumentBuf> {
    let idle = state.cursors.idle().into_iter();
    let idle = idle.filter(|one| scope.includes_cursor(one)).map(|one| {
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

/// Returns the open transactions that wait for their next command.
pub fn transactions(state: &State, scope: &OperationScope<'_>) -> Vec<DocumentBuf> {
    let seconds = state.parameters.number(TRANSACTION_SECONDS).max(1);
    let lifetime = Duration::from_secs(seconds.unsigned_abs());
    let idle = state.session_transactions.idle().into_iter();
    let idle = idle.filter(|one| scope.includes_session(one.session)).map(|one| {
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
