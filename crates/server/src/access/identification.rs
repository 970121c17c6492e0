//! Finds out what the client of a request may do.

use windrow_wire::CommandError;

use super::authority::Authority;
use super::directory::AccessControl;
use crate::client::Client;
use crate::parameters::LOCALHOST_BYPASS;
use crate::state::State;

/// The authority of a client now. Logs it out if its user was dropped.
pub fn authority_of(state: &State, client: &Client) -> Result<Authority, CommandError> {
    let (directory, engine) = (&state.directory, &state.services.engine);
    if directory.control == AccessControl::Never {
        return Ok(Authority::Unrestricted);
    }
    let users = directory.users(engine);
    if directory.control == AccessControl::WithUsers && !users.had_users {
        return Ok(Authority::Unrestricted);
    }
    if let Some(identity) = client.login.identity(engine, &users, client.endpoints())? {
        return Ok(Authority::User(identity));
    }
    let is_first = !users.has_users && !users.has_roles;
    let is_local = client.address.ip().to_canonical().is_loopback();
    Ok(
        if is_first && is_local && state.parameters.flag(LOCALHOST_BYPASS) {
            Authority::of_first_user()
        } else {
            Authority::Nobody
        },
    )
}
