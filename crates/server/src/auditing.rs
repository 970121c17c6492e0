//! Records events in the audit log. Without an audit log, each function here only checks an option.

mod direct_writes;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use windrow_access::UserName;
use windrow_document::{DocumentBuf, Value, doc};

use crate::access::directory::Identity;
use crate::access::identification::identity_of;
use crate::audit::{AuditOrigin, AuditTrail};
use crate::client::Client;
use crate::machine;
use crate::state::State;
pub use direct_writes::record_direct_writes;

/// Returns the audit log for the events of a client, if there is one.
pub fn trail(state: &State, client: &Client) -> Option<AuditTrail> {
    let audit = state.audit.as_ref()?;
    let origin = connection_origin(client);
    let origin = match identity(state, client) {
        Some(identity) => {
            let roles = identity.resolved.roles.clone();
            origin.with_user(identity.user.name.clone(), roles)
        }
        // The user was just dropped, or cannot be read any more.
        None => match client.login.user() {
            Some(user) => origin.with_user(user, Vec::new()),
            None => origin,
        },
    };
    Some(AuditTrail::new(audit, origin))
}

fn identity(state: &State, client: &Client) -> Option<Arc<Identity>> {
    let engine = state.users_engine().ok()?;
    let users = state.directory.users(&engine);
    identity_of(&engine, &users, client).ok()?
}

fn connection_origin(client: &Client) -> AuditOrigin {
    AuditOrigin::connection(client.uuid(), &client.server_address, &client.address)
}

/// Records that a client has done something.
pub fn record(state: &State, client: &Client, kind: &str, param: impl FnOnce() -> DocumentBuf) {
    record_result(state, client, kind, param, 0);
}

/// Records an event with its result, which is an error code or 0.
pub fn record_result(
    state: &State,
    client: &Client,
    kind: &str,
    param: impl FnOnce() -> DocumentBuf,
    result: i32,
) {
    if let Some(trail) = trail(state, client) {
        trail.record_result(kind, param(), result);
    }
}

/// Records that a user logged out, or that its connection ended.
pub fn record_logout(state: &State, client: &Client, user: &UserName, reason: &str) {
    let Some(audit) = &state.audit else {
        return;
    };
    let origin = connection_origin(client).with_user(user.clone(), Vec::new());
    let initial = vec![Value::from(user.to_document())];
    let param = doc! {
        "reason": reason, "initialUsers": initial, "updatedUsers": (Vec::<Value>::new()),
    };
    AuditTrail::new(audit, origin).record("logout", param);
}

/// Records that a connection ends whose user is still logged in.
pub fn record_disconnect(state: &State, client: &Client) {
    if state.audit.is_none() {
        return;
    }
    if let Some(user) = client.login.user() {
        let reason = "Implicit logout due to client connection closure";
        record_logout(state, client, &user, reason);
    }
}

/// Records that the server was started.
pub fn record_startup(state: &State) {
    let Some(audit) = &state.audit else {
        return;
    };
    let parameters = state.cluster_parameters.describe_all();
    let parameters: Vec<Value> = parameters.into_iter().map(Value::from).collect();
    let param = doc! {
        "startupOptions": (state.config.options.clone()),
        "initialClusterServerParameters": parameters,
    };
    AuditTrail::server(audit).record("startup", param);
}

/// Records once that the server stops, because of a client or of a signal.
pub fn record_shutdown(state: &State, client: Option<&Client>) {
    let Some(audit) = &state.audit else {
        return;
    };
    if audit.begin_shutdown() {
        let trail = client.and_then(|client| trail(state, client));
        let trail = trail.unwrap_or_else(|| AuditTrail::server(audit));
        trail.record("shutdown", DocumentBuf::new());
    }
}

/// The logs that are rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotatedLogs {
    Server,
    Audit,
    All,
}

/// Continues logs in new files, and records it. `client` is the client that asked for it.
pub fn rotate_logs(state: &State, client: Option<&Client>, logs: RotatedLogs) -> io::Result<()> {
    let server = match logs {
        RotatedLogs::Audit => Ok(None),
        RotatedLogs::Server | RotatedLogs::All => state.services.log.rotate(),
    };
    let Some(audit) = &state.audit else {
        return server.map(drop);
    };
    let own = match logs {
        RotatedLogs::Server => Ok(None),
        RotatedLogs::Audit | RotatedLogs::All => audit.rotate(),
    };
    let trail = client.and_then(|client| trail(state, client));
    let trail = trail.unwrap_or_else(|| AuditTrail::server(audit));
    trail.record("rotateLog", rotation_param(&[&server, &own]));
    server.and(own).map(drop)
}

fn rotation_param(rotations: &[&io::Result<Option<PathBuf>>]) -> DocumentBuf {
    let errors = rotations.iter().filter_map(|one| one.as_ref().err());
    let errors: Vec<Value> = errors.map(|error| error.to_string().into()).collect();
    let paths = rotations
        .iter()
        .filter_map(|one| one.as_ref().ok()?.as_ref());
    let path = paths.map(|path| path.display().to_string()).next();
    let status = if errors.is_empty() {
        "OK"
    } else {
        "FileRenameFailed"
    };
    doc! {
        "pid": (i64::from(std::process::id())),
        "osInfo": { "name": (machine::system_name()), "version": (machine::kernel_version()) },
        "logRotationStatus": {
            "status": status, "rotatedLogPath": (path.unwrap_or_default()), "errors": errors,
        },
    }
}
