//! The credentials of users that do not exist. Logins with unknown names get the same replies as
//! logins with wrong passwords, so replies do not reveal which users exist.

use std::sync::OnceLock;

use windrow_access::{Credentials, Mechanism, UserName};
use windrow_collection::{Engine, InsertOrder, Namespace};
use windrow_document::{Document, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use super::store::find_in;
use crate::errors::{OrCommandError, refuse};
use crate::random;

/// The length of the secret in bytes.
const SECRET_BYTES: usize = 32;

/// The `_id` of the stored secret.
const ID: &str = "fakeUsers";

/// Returns the collection with the secrets of the server, as in MongoDB. No built-in role can read
/// it.
fn namespace() -> Namespace {
    Namespace {
        database: "admin".to_owned(),
        collection: "system.keys".to_owned(),
    }
}

/// The secret of the server from which the credentials of unknown users are derived.
#[derive(Default)]
pub struct FakeUsers {
    stored: OnceLock<Vec<u8>>,
    temporary: OnceLock<Vec<u8>>,
}

impl FakeUsers {
    /// Returns the credentials of a user that does not exist. They stay the same over restarts, as
    /// those of other users do, once there are users.
    pub fn credentials(
        &self,
        engine: &Engine,
        has_users: bool,
        mechanism: Mechanism,
        name: &UserName,
        iterations: u32,
    ) -> Result<Credentials, CommandError> {
        let secret = self.secret(engine, has_users)?;
        Ok(Credentials::new_fake(
            mechanism,
            secret,
            &name.id(),
            iterations,
        ))
    }

    fn secret(&self, engine: &Engine, has_users: bool) -> Result<&[u8], CommandError> {
        let place = if has_users {
            &self.stored
        } else {
            &self.temporary
        };
        if let Some(secret) = place.get() {
            return Ok(secret);
        }
        if has_users && engine.is_following() {
            // Only the primary can create it.
            return match load(engine)? {
                Some(secret) => Ok(place.get_or_init(|| secret)),
                None => self.secret(engine, false),
            };
        }
        let secret = if has_users {
            load_or_create(engine)?
        } else {
            random::secret(SECRET_BYTES)?
        };
        Ok(place.get_or_init(|| secret))
    }

    /// Creates the secret before the first user, if other servers follow this one: they cannot.
    pub fn prepare(&self, engine: &Engine) -> Result<(), CommandError> {
        if engine.is_shared() {
            self.secret(engine, true)?;
        }
        Ok(())
    }
}

fn load(engine: &Engine) -> Result<Option<Vec<u8>>, CommandError> {
    let Some(collection) = engine.collection(&namespace()) else {
        return Ok(None);
    };
    let found = find_in(&collection, doc! { "_id": ID }.as_document())?;
    let key = |document: Document<'_>| match document.get("key") {
        Some(ValueRef::Binary { bytes, .. }) if bytes.len() == SECRET_BYTES => Some(bytes.to_vec()),
        _ => None,
    };
    match found.first() {
        None => Ok(None),
        Some(document) => match key(document.as_document()) {
            Some(key) => Ok(Some(key)),
            None => refuse(
                ErrorCode::UserDataInconsistent,
                "a key of the server is invalid",
            ),
        },
    }
}

fn load_or_create(engine: &Engine) -> Result<Vec<u8>, CommandError> {
    if let Some(secret) = load(engine)? {
        return Ok(secret);
    }
    let secret = random::secret(SECRET_BYTES)?;
    let key = windrow_document::Value::Binary {
        subtype: 0,
        bytes: secret.clone(),
    };
    let document = doc! { "_id": ID, "purpose": "salts of unknown users", "key": key };
    let collection = engine
        .collection_or_create(&namespace())
        .or_command_error()?;
    let inserted = collection
        .insert(document.into_bytes().into(), InsertOrder::Ordered)
        .or_command_error()?;
    if !inserted.errors.is_empty() {
        // Another connection was faster.
        return Ok(load(engine)?.unwrap_or(secret));
    }
    engine.sync().or_command_error()?;
    Ok(secret)
}
