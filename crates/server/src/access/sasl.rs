//! Logins: `saslStart`, `saslContinue`, and the first message of a login within `hello`.

use std::time::Duration;

use windrow_access::scram::{ClientFirst, ServerConversation};
use windrow_access::{Credentials, Mechanism, User, UserName};
use windrow_document::DocumentBuf;
use windrow_document::{Value, doc};
use windrow_wire::{CommandError, ErrorCode};

use super::directory::resolve_roles;
use super::events::{self, Event};
use super::local_user::is_local_user;
use super::login::{Conversation, LoginStep, SaslReply, StartedConversation};
use super::store;
use crate::client::Client;
use crate::errors::refuse;
use crate::parameters::{FAILED_LOGIN_DELAY, SHA1_ITERATIONS, SHA256_ITERATIONS};
use crate::random;
use crate::state::State;

/// The random bytes of the server's part of a nonce.
const NONCE_BYTES: usize = 24;

/// The first message of a login.
pub struct SaslStart<'a> {
    /// The database of the user.
    pub database: &'a str,
    pub mechanism: &'a str,
    pub payload: &'a [u8],
    pub skips_empty_exchange: bool,
    /// `true` within `hello`.
    pub is_speculative: bool,
}

/// Starts a login. Fails with AuthenticationFailed for every reason that a client must not know.
pub fn start(
    state: &State,
    client: &Client,
    message: &SaslStart<'_>,
) -> Result<SaslReply, CommandError> {
    let Some(mechanism) = Mechanism::from_name(message.mechanism) else {
        let name = message.mechanism;
        let user = UserName::new("", message.database);
        let code = ErrorCode::MechanismUnavailable;
        events::record_login(state, client, &user, name, code.number());
        let message = format!("Received authentication for mechanism {name} which is not enabled");
        return refuse(code, message);
    };
    let first = match ClientFirst::parse(message.payload) {
        Ok(first) => first,
        Err(error) => {
            let user = UserName::new("", message.database);
            let failed = FailedLogin::new(&user, mechanism.name(), message.is_speculative);
            return Err(failed.report(state, client, &error.to_string()));
        }
    };
    let user = UserName::new(&first.user, message.database);
    client.login.check_only_user(&user)?;
    let engine = &state.users_engine()?;
    let stored = state.directory.users(engine).user(engine, &user);
    let stored = stored.map_err(|error| {
        let failed = FailedLogin::new(&user, mechanism.name(), message.is_speculative);
        failed.report(state, client, &error.message)
    })?;
    let has_other = stored
        .as_ref()
        .is_some_and(|user| user.credentials.get(mechanism).is_none());
    if message.is_speculative && has_other {
        // The client guessed the mechanism. It learns the right one from the same reply.
        return refuse(ErrorCode::AuthenticationFailed, "Authentication failed.");
    }
    let known = stored.filter(|user| user.credentials.get(mechanism).is_some());
    let credentials = known
        .as_ref()
        .and_then(|user| user.credentials.get(mechanism).cloned());
    let credentials = match credentials {
        Some(credentials) => credentials,
        None => credentials_of_nobody(state, mechanism, &user)?,
    };
    let nonce = random::secret(NONCE_BYTES)?;
    let started = StartedConversation {
        user,
        mechanism,
        is_speculative: message.is_speculative,
        skips_empty_exchange: message.skips_empty_exchange,
        first,
    };
    let server = |first| ServerConversation::start(mechanism, first, credentials, &nonce);
    Ok(client.login.start(started, server, known))
}

fn credentials_of_nobody(
    state: &State,
    mechanism: Mechanism,
    user: &UserName,
) -> Result<Credentials, CommandError> {
    let engine = &state.users_engine()?;
    let has_users = state.directory.users(engine).has_users;
    let iterations = iterations(state, mechanism);
    let fake = &state.fake_users;
    fake.credentials(engine, has_users, mechanism, user, iterations)
}

/// Returns the iteration count of new passwords.
pub fn iterations(state: &State, mechanism: Mechanism) -> u32 {
    let count = state.parameters.number(match mechanism {
        Mechanism::ScramSha1 => SHA1_ITERATIONS,
        Mechanism::ScramSha256 => SHA256_ITERATIONS,
    });
    u32::try_from(count).unwrap_or_else(|_| mechanism.iterations_default())
}

/// Continues a login.
pub fn proceed(
    state: &State,
    client: &Client,
    id: i64,
    payload: &[u8],
) -> Result<SaslReply, CommandError> {
    let Some(conversation) = client.login.take(id) else {
        let message = "No SASL session state found";
        return refuse(ErrorCode::ProtocolError, message);
    };
    let Conversation {
        user,
        mechanism,
        is_speculative,
        ..
    } = &conversation;
    let (user, mechanism, is_speculative) = (user.clone(), *mechanism, *is_speculative);
    let is_allowed = |user: &User| check_restrictions(state, client, user);
    let continued = client.login.proceed(conversation, payload, is_allowed);
    let reason = match continued {
        Ok(LoginStep::Reply(reply)) => return Ok(reply),
        Ok(LoginStep::LoggedIn(reply)) => {
            let event = Event::Authenticate {
                user: &user,
                mechanism: mechanism.name(),
                is_speculative,
                failure: None,
            };
            events::record(state, client, &event);
            return Ok(reply);
        }
        Ok(LoginStep::Failed(reason)) => reason,
        Err(error) => error.message,
    };
    Err(FailedLogin::new(&user, mechanism.name(), is_speculative).report(state, client, &reason))
}

/// Returns `true` if the restrictions of a user and its roles allow a connection.
pub fn check_restrictions(
    state: &State,
    client: &Client,
    user: &User,
) -> Result<bool, CommandError> {
    if is_local_user(&user.name) && !state.config.local_user_by_ip && client.address.is_ip() {
        return Ok(false);
    }
    let resolved = resolve_roles(&*state.users_engine()?, &user.roles)?;
    Ok(resolved.allow(user, client.endpoints()))
}

/// A login that failed.
pub struct FailedLogin<'a> {
    user: &'a UserName,
    /// The name of the mechanism.
    mechanism: &'static str,
    is_speculative: bool,
}

impl FailedLogin<'_> {
    pub fn new<'a>(
        user: &'a UserName,
        mechanism: &'static str,
        is_speculative: bool,
    ) -> FailedLogin<'a> {
        FailedLogin {
            user,
            mechanism,
            is_speculative,
        }
    }

    /// Logs the reason, and waits, so that passwords cannot be tried quickly. Returns the error
    /// for the client, which is the same for all reasons.
    pub fn report(&self, state: &State, client: &Client, reason: &str) -> CommandError {
        let event = Event::Authenticate {
            user: self.user,
            mechanism: self.mechanism,
            is_speculative: self.is_speculative,
            failure: Some(reason),
        };
        events::record(state, client, &event);
        let delay = state.parameters.number(FAILED_LOGIN_DELAY).unsigned_abs();
        state.stop.wait(Duration::from_millis(delay));
        CommandError::new(ErrorCode::AuthenticationFailed, "Authentication failed.")
    }
}

impl SaslReply {
    /// Returns `{conversationId, done, payload}`.
    pub fn to_document(&self) -> DocumentBuf {
        let payload = Value::Binary {
            subtype: 0,
            bytes: self.payload.clone(),
        };
        doc! { "conversationId": (self.conversation), "done": (self.is_done), "payload": payload }
    }
}

/// Returns the mechanisms of a user for `hello`. A user that does not exist seems to have all.
/// `None` if there are no users at all.
pub fn supported_mechanisms(state: &State, name: &UserName) -> Option<Vec<&'static str>> {
    let engine = &state.users_engine().ok()?;
    if !state.directory.users(engine).has_users {
        return None;
    }
    let all = || {
        let mut all = Mechanism::ALL.map(Mechanism::name).to_vec();
        all.sort_unstable();
        all
    };
    // A stored user that cannot be read is one that cannot log in.
    Some(match store::user(engine, name) {
        Ok(Some(user)) if !user.is_external() => user.mechanism_names(),
        _ => all(),
    })
}
