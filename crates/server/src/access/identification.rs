//! Finds out what the client of a request may do.

use std::sync::Arc;

use windrow_collection::Engine;
use windrow_wire::CommandError;

use super::authority::Authority;
use super::directory::{AccessControl, Identity, Users};
use crate::client::{Client, Principal};
use crate::parameters::LOCALHOST_BYPASS;
use crate::state::State;

/// The authority of a client now. Logs it out if its user was dropped.
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
    let is_first = !users.has_users && !users.has_roles;
    if let Some(principal) = client.principal() {
        let can_create = is_first && principal.can_create_first_user;
        return Ok(match of_principal(engine, &users, &principal)? {
            Some(identity) => Authority::User(identity),
            None if can_create => Authority::of_first_user(),
            None => Authority::Nobody,
        });
    }
    if let Some(identity) = client.login.identity(engine, &users, client.endpoints())? {
        return Ok(Authority::User(identity));
    }
    Ok(if is_first && is_local(state, client) {
        Authority::of_first_user()
    } else {
        Authority::Nobody
    })
}

/// Returns `true` if the client is on the machine of the server, and may create the first user.
pub fn is_local(state: &State, client: &Client) -> bool {
    let is_loopback = client.address.ip().to_canonical().is_loopback();
    is_loopback && state.parameters.flag(LOCALHOST_BYPASS)
}

/// The user of a client of another server. `None` if there is none, or if its restrictions do not allow
/// the connection of the client.
fn of_principal(
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
