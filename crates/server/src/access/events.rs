//! Events of access control: logins, refusals, and changes of users and roles.
//!
//! All of them go through [`record`], which writes them to the log. None contains a password.

use windrow_access::UserName;
use windrow_document::{DocumentBuf, doc};
use windrow_wire::ErrorCode;

use crate::auditing;
use crate::client::Client;
use crate::log::Severity;
use crate::state::State;

/// An event of access control.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A login succeeded or failed. `reason` is for the log only.
    Authenticate {
        user: &'a UserName,
        mechanism: &'a str,
        is_speculative: bool,
        failure: Option<&'a str>,
    },
    /// A user logged out.
    Logout { user: &'a UserName },
    /// A command was refused.
    AuthCheck {
        command: &'a str,
        database: &'a str,
        user: Option<&'a UserName>,
        error: &'a str,
    },
    /// Users or roles were changed. `command` is "createUser" and so on, `target` the `_id` of the
    /// user or role, or a database.
    Change { command: &'a str, target: &'a str },
}

/// Records an event in the log of the server. Logins are recorded in the audit log, too.
pub fn record(state: &State, client: &Client, event: &Event<'_>) {
    let line = Line::new(event);
    let mut attr = line.attr;
    attr.push("client", client.address.to_string());
    let log = &state.services.log;
    log.write(
        line.severity,
        "ACCESS",
        line.id,
        &client.name(),
        line.message,
        attr,
    );
    if let Event::Authenticate {
        user,
        mechanism,
        failure,
        ..
    } = event
    {
        let failed = ErrorCode::AuthenticationFailed.number();
        let result = if failure.is_some() { failed } else { 0 };
        record_login(state, client, user, mechanism, result);
    }
}

/// Records a login in the audit log, with its error code or 0.
pub fn record_login(state: &State, client: &Client, user: &UserName, mechanism: &str, result: i32) {
    let param = || {
        doc! {
            "user": (user.user.as_str()), "db": (user.database.as_str()), "mechanism": mechanism,
        }
    };
    auditing::record_result(state, client, "authenticate", param, result);
}

struct Line {
    severity: Severity,
    id: i32,
    message: &'static str,
    attr: DocumentBuf,
}

/// The id of the log line about changes of users and roles, which MongoDB has in its audit log.
const CHANGED: i32 = 9_000_012;

impl Line {
    /// Creates the log line of an event. It has the id that MongoDB uses, if MongoDB has the event.
    fn new(event: &Event<'_>) -> Line {
        let line = |severity, id, message, attr| Line {
            severity,
            id,
            message,
            attr,
        };
        match event {
            Event::Authenticate {
                user,
                mechanism,
                is_speculative,
                failure,
            } => {
                let mut attr = doc! {
                    "user": (user.user.as_str()), "db": (user.database.as_str()),
                    "mechanism": (*mechanism), "isSpeculative": (*is_speculative),
                };
                match failure {
                    None => line(
                        Severity::Info,
                        5_286_306,
                        "Successfully authenticated",
                        attr,
                    ),
                    Some(reason) => {
                        attr.push("error", *reason);
                        line(Severity::Info, 5_286_307, "Failed to authenticate", attr)
                    }
                }
            }
            Event::Logout { user } => {
                let attr = doc! { "user": (user.user.as_str()), "db": (user.database.as_str()) };
                line(Severity::Info, 6_161_506, "Successfully logged out", attr)
            }
            Event::AuthCheck {
                command,
                database,
                user,
                error,
            } => {
                let mut attr = doc! { "command": (*command), "db": (*database), "error": (*error) };
                if let Some(user) = user {
                    attr.push("user", user.to_string());
                }
                line(
                    Severity::Info,
                    20_436,
                    "Checking authorization failed",
                    attr,
                )
            }
            Event::Change { command, target } => {
                let attr = doc! { "command": (*command), "target": (*target) };
                line(Severity::Info, CHANGED, "Users or roles changed", attr)
            }
        }
    }
}
