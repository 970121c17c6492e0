//! Logins with the certificate of a connection: MONGODB-X509. The name of the user is the subject
//! of the certificate as RFC 2253 writes it, and its database is `$external`.
//!
//! TLS has verified the certificate. Source: MongoDB's manual, "Use x.509 Certificates to
//! Authenticate Clients".

use windrow_access::{EXTERNAL, UserName};
use windrow_wire::CommandError;

use super::sasl::{FailedLogin, check_restrictions};
use crate::access::events::{self, Event};
use crate::client::Client;
use crate::state::State;

/// The name of the mechanism.
pub const MONGODB_X509: &str = "MONGODB-X509";

/// A request to log in.
pub struct CertificateLogin<'a> {
    pub database: &'a str,
    /// The name that the client gave. It may leave it out.
    pub user: Option<&'a str>,
    /// `true` within `hello`.
    pub is_speculative: bool,
}

/// Logs in the user of the certificate. Fails with AuthenticationFailed for every reason that a
/// client must not know.
pub fn log_in(
    state: &State,
    client: &Client,
    request: &CertificateLogin<'_>,
) -> Result<UserName, CommandError> {
    let subject = client.certificate_subject();
    let user = UserName::new(subject.or(request.user).unwrap_or_default(), EXTERNAL);
    let failed = |reason: &str| {
        FailedLogin::new(&user, MONGODB_X509, request.is_speculative).report(state, client, reason)
    };
    if request.database != EXTERNAL {
        return Err(failed("X.509 users are in the database $external"));
    }
    let Some(subject) = subject else {
        return Err(failed("the connection has no certificate of a client"));
    };
    if request.user.is_some_and(|given| given != subject) {
        return Err(failed("the user is not the subject of the certificate"));
    }
    client.login.check_only_user(&user)?;
    let engine = state
        .users_engine()
        .map_err(|error| failed(&error.message))?;
    let stored = state.directory.users(&engine).user(&engine, &user);
    let stored = stored.map_err(|error| failed(&error.message))?;
    let stored = stored.ok_or_else(|| failed("the user does not exist"))?;
    let allowed = check_restrictions(state, client, &stored);
    if !allowed.map_err(|error| failed(&error.message))? {
        let reason = "the authentication restrictions do not allow the addresses";
        return Err(failed(reason));
    }
    client.login.log_in(&stored);
    let event = Event::Authenticate {
        user: &user,
        mechanism: MONGODB_X509,
        is_speculative: request.is_speculative,
        failure: None,
    };
    events::record(state, client, &event);
    Ok(user)
}
