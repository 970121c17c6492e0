//! The users that are not stored. The user of Windrow's own commands has a password in the data
//! folder, so it can log in from this machine only. The user of the other servers of a cluster has
//! the key that the servers share. It may do nothing itself: it passes on the commands of other
//! users.

use windrow_access::{
    Credentials, Mechanism, Restrictions, RoleName, StoredCredentials, User, UserName,
};
use windrow_document::{array, doc};
use windrow_wire::{CommandError, ErrorCode};

use crate::random;

/// The name of the user, as MongoDB names the user of servers of a cluster.
pub const LOCAL_USER: (&str, &str) = ("__system", "local");

/// Returns `true` if this is the name of the user of Windrow's own commands.
pub fn is_local_user(name: &UserName) -> bool {
    (name.user.as_str(), name.database.as_str()) == LOCAL_USER
}

/// The random bytes of its password. No dictionary helps against them.
const PASSWORD_BYTES: usize = 32;

/// The smallest iteration count of RFC 7677. The password is random, so more would only cost time.
const ITERATIONS: u32 = 4096;

/// Returns a new password: hexadecimal digits. Fails if the operating system has no random numbers.
pub fn new_password() -> Result<String, CommandError> {
    let bytes = random::secret(PASSWORD_BYTES)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the addresses from which the user may log in: only those of this machine. The password
/// is in the data folder, and others may have a copy of it.
fn local_addresses() -> Result<Restrictions, CommandError> {
    let restriction = doc! { "clientSource": ["127.0.0.0/8", "::1"] };
    let restrictions = Restrictions::parse(array![(restriction)].as_array());
    restrictions.map_err(|error| CommandError::new(ErrorCode::BadValue, error.to_string()))
}

/// The name of the user of the other servers.
pub const PEER_USER: (&str, &str) = ("__server", "local");

/// Returns `true` if this is the name of the user of the other servers.
pub fn is_peer_user(name: &UserName) -> bool {
    (name.user.as_str(), name.database.as_str()) == PEER_USER
}

/// Returns the user with this password. It may do everything, from this machine.
pub fn local_user(password: &str) -> Result<User, CommandError> {
    let roles = vec![RoleName::new("__system", "admin")];
    let (user, database) = LOCAL_USER;
    own_user(
        UserName::new(user, database),
        password,
        roles,
        local_addresses()?,
    )
}

/// Returns the user of the other servers, with the key that they share.
pub fn peer_user(key: &str) -> Result<User, CommandError> {
    let (user, database) = PEER_USER;
    own_user(
        UserName::new(user, database),
        key,
        Vec::new(),
        Restrictions::default(),
    )
}

fn own_user(
    name: UserName,
    password: &str,
    roles: Vec<RoleName>,
    restrictions: Restrictions,
) -> Result<User, CommandError> {
    let mechanism = Mechanism::ScramSha256;
    let salt = random::secret(mechanism.salt_bytes())?;
    let mut credentials = StoredCredentials::default();
    let own = Credentials::new(mechanism, password.as_bytes(), salt, ITERATIONS);
    credentials.set(mechanism, own);
    Ok(User {
        name,
        id: None,
        credentials,
        roles,
        restrictions,
        custom_data: None,
    })
}
