//! Finds out what the client of a request may do.

use std::sync::Arc;

use windrow_collection::Engine;
use windrow_wire::CommandError;

use super::authority::Authority;
use super::directory::{AccessControl, Identity, Users};
use crate::client::{Client, Principal};
use crate::parameters::LOCALHOST_BYPASS;
use crate::state::State;

/// Returns the authority of a client now. Logs it out if its user was dropped.
pub fn authority_of(state: &State, client: &Client) -> Result<Authority, CommandError> {
    let directory = &state.directory;
    if directory.control == AccessControl::Never {
        return Ok(Authority::Unrestricted);
    }
    let engine = &state.users_engine()?;
    let users = directory.users(engine);
    if directory.control == AccessControl::WithUsers && !users.had_users {
        return Ok(Authority::Unrestricted);
    }
    if let Some(identity) = identity_of(engine, &users, client)? {
        return Ok(Authority::User(identity));
    }
    let is_first = !users.has_users && !users.has_roles;
    Ok(if is_first && can_create_first_user(state, client) {
        Authority::first_user()
    } else {
        Authority::Nobody
    })
}

/// Returns the user of a client, or of the client of another server that has passed on a command.
/// `None` if there is none, if it was dropped, or if its restrictions do not allow the connection.
pub fn identity_of(
    engine: &Engine,
    users: &Arc<Users>,
    client: &Client,
) -> Result<Option<Arc<Identity>>, CommandError> {
    match client.principal() {
        Some(principal) => identity_of_principal(engine, users, &principal),
        None => client.login.identity(engine, users, client.endpoints()),
    }
}

/// Returns `true` if the client may create the first user. The server that passes on a command
/// decides it for its clients.
fn can_create_first_user(state: &State, client: &Client) -> bool {
    match client.principal() {
        Some(principal) => principal.can_create_first_user,
        None => is_local(state, client),
    }
}

/// Returns `true` if the client is on the machine of the server, and may create the first user.
pub fn is_local(state: &State, client: &Client) -> bool {
    let is_loopback = client.address.ip().to_canonical().is_loopback();
    is_loopback && state.parameters.flag(LOCALHOST_BYPASS)
}

fn identity_of_principal(
    engine: &Engine,
    users: &Users,
    principal: &Principal,
) -> Result<Option<Arc<Identity>>, CommandError> {
    let Some(name) = &principal.user else {
        return Ok(None);
    };
    let identity = users.get(engine, name)?;
    let allow = |it: &Arc<Identity>| it.resolved.allow(&it.user, principal.endpoints);
    Ok(identity.filter(allow))
}
