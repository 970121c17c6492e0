//! Logical sessions: ids that clients generate or request. A session ends after 30 minutes without
//! use. Its cursors and operations end with it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use windrow_access::UserName;
use windrow_collection::SessionKey;
use windrow_document::{Document, DocumentBuf, Type, Value, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use crate::arguments::{Arguments, uuid_of};
use crate::random;
use crate::sync::lock;

/// The lifetime of an unused session. `hello` returns it in minutes.
pub const TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// [`TIMEOUT`] in minutes, for replies.
pub const TIMEOUT_MINUTES: i32 = 30;

/// Maximum number of sessions, as MongoDB's `maxSessions`.
const SESSIONS_MAX: usize = 1_000_000;

/// The id of a session: the UUID that clients send as `lsid: {id: UUID}`, and the user. Users
/// cannot use each other's sessions, even if they know the UUIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SessionId {
    pub uuid: [u8; 16],
    pub user: UserDigest,
}

/// The SHA-256 digest of "user@database", by which session ids name users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserDigest(pub [u8; 32]);

impl UserDigest {
    /// The digest of the empty string, as in MongoDB, for clients without a user.
    pub const NOBODY: UserDigest = UserDigest([
        0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9,
        0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52,
        0xb8, 0x55,
    ]);

    /// Creates the digest of a user.
    pub fn new(user: &UserName) -> UserDigest {
        UserDigest(hmac_sha256::Hash::hash(user.to_string().as_bytes()))
    }

    /// Returns the digest as a value.
    pub fn to_value(self) -> Value {
        Value::Binary {
            subtype: 0,
            bytes: self.0.to_vec(),
        }
    }
}

impl SessionId {
    /// Parses `{id: UUID}`. `field` is its name in errors, such as "lsid".
    pub fn parse(document: Document<'_>, field: &str) -> Result<SessionId, CommandError> {
        let fields = Arguments::within(field, document);
        let (mut id, mut user) = (None, UserDigest::NOBODY);
        for (name, value) in document {
            match name {
                "id" => id = Some(parse_uuid(value, &fields, field)?),
                "uid" => user = parse_user(value, &fields)?,
                "txnNumber" | "txnUUID" => {}
                _ => return Err(fields.unknown(name)),
            }
        }
        let uuid = id.ok_or_else(|| fields.missing("id"))?;
        Ok(SessionId { uuid, user })
    }

    /// The session with this UUID of a client that is not logged in.
    #[cfg(test)]
    pub const fn for_tests(uuid: [u8; 16]) -> SessionId {
        SessionId {
            uuid,
            user: UserDigest::NOBODY,
        }
    }

    /// Returns the session of a user with the same UUID.
    pub fn with_user(self, user: UserDigest) -> SessionId {
        SessionId { user, ..self }
    }

    /// Returns the key under which results of retryable writes are stored: the UUID, or a hash of
    /// it if there is a user.
    pub fn key(self) -> SessionKey {
        if self.user == UserDigest::NOBODY {
            return SessionKey(self.uuid);
        }
        let digest = hmac_sha256::Hash::hash(&[&self.user.0[..], &self.uuid].concat());
        let mut key = [0; 16];
        key.iter_mut()
            .zip(digest)
            .for_each(|(byte, from)| *byte = from);
        SessionKey(key)
    }

    pub fn to_value(self) -> Value {
        Value::Binary {
            subtype: 4,
            bytes: self.uuid.to_vec(),
        }
    }

    /// Returns the id as `{id: UUID}`, with the digest of its user as `uid` if there is one.
    pub fn to_document(self) -> DocumentBuf {
        let mut document = doc! { "id": (self.to_value()) };
        if self.user != UserDigest::NOBODY {
            document.push("uid", self.user.to_value());
        }
        document
    }
}

fn parse_user(value: ValueRef<'_>, fields: &Arguments<'_>) -> Result<UserDigest, CommandError> {
    match value {
        ValueRef::Binary { bytes, .. } => bytes.try_into().map(UserDigest).map_err(|_| {
            let message = format!("Unsupported SHA256Block hash length: {}", bytes.len());
            CommandError::new(ErrorCode::UnsupportedFormat, message)
        }),
        other => Err(fields.wrong_type("uid", other.type_of(), &[Type::Binary])),
    }
}

fn parse_uuid(
    value: ValueRef<'_>,
    fields: &Arguments<'_>,
    field: &str,
) -> Result<[u8; 16], CommandError> {
    match value {
        ValueRef::Binary { subtype: 4, bytes } => uuid_of(bytes),
        ValueRef::Binary { subtype, .. } => {
            let message = format!(
                "BSON field '{field}.id' is the wrong binData type '{subtype}', expected type 'UUID'"
            );
            Err(CommandError::new(ErrorCode::TypeMismatch, message))
        }
        other => Err(fields.wrong_type("id", other.type_of(), &[Type::Binary])),
    }
}

/// Parses the array of sessions of `endSessions` and `refreshSessions`.
pub fn parse_array(value: ValueRef<'_>, command: &str) -> Result<Vec<SessionId>, CommandError> {
    let ValueRef::Array(array) = value else {
        // MongoDB has a separate error code for another type.
        let message = format!("{command} must be an array, not {}", value.type_of().name());
        return Err(CommandError::new(ErrorCode(10065), message));
    };
    parse_list(array.iter(), command)
}

/// Parses a list of sessions.
pub fn parse_list<'a>(
    list: impl IntoIterator<Item = ValueRef<'a>>,
    command: &str,
) -> Result<Vec<SessionId>, CommandError> {
    let mut sessions = Vec::new();
    for (index, item) in list.into_iter().enumerate() {
        let field = format!("{command}.{command}.{index}");
        let Some(document) = item.as_document() else {
            let found = item.type_of().name();
            let expected = Type::Document.name();
            let message = format!(
                "BSON field '{field}' is the wrong type '{found}', expected type '{expected}'"
            );
            return Err(CommandError::new(ErrorCode::TypeMismatch, message));
        };
        sessions.push(SessionId::parse(document, &field)?);
    }
    Ok(sessions)
}

/// The active sessions and the times of their last use.
#[derive(Debug, Default)]
pub struct Sessions {
    used: Mutex<HashMap<SessionId, Instant>>,
}

impl Sessions {
    /// Starts a session of a user with a new id.
    pub fn start(&self, user: UserDigest) -> Result<SessionId, CommandError> {
        let uuid = random::uuid();
        let id = SessionId { uuid, user };
        self.touch(id)?;
        Ok(id)
    }

    /// Records the use of a session. Starts it if it is unknown.
    pub fn touch(&self, id: SessionId) -> Result<(), CommandError> {
        let mut used = lock(&self.used);
        if used.len() >= SESSIONS_MAX && !used.contains_key(&id) {
            let message = format!("cannot add session, {SESSIONS_MAX} are active");
            return Err(CommandError::new(
                ErrorCode::TooManyLogicalSessions,
                message,
            ));
        }
        used.insert(id, Instant::now());
        Ok(())
    }

    /// Ends a session.
    pub fn end(&self, id: SessionId) {
        lock(&self.used).remove(&id);
    }

    /// Returns the number of active sessions.
    pub fn count(&self) -> usize {
        lock(&self.used).len()
    }

    /// Returns all sessions and the durations since their last use.
    pub fn ages(&self) -> Vec<(SessionId, Duration)> {
        let used = lock(&self.used);
        used.iter()
            .map(|(id, last)| (*id, last.elapsed()))
            .collect()
    }

    /// Returns the ids of all active sessions.
    pub fn all(&self) -> Vec<SessionId> {
        lock(&self.used).keys().copied().collect()
    }

    /// Removes the sessions that were not used for [`TIMEOUT`] before `now`, and returns them.
    pub fn expire(&self, now: Instant) -> Vec<SessionId> {
        let mut used = lock(&self.used);
        let is_stale = |last: &Instant| now.saturating_duration_since(*last) >= TIMEOUT;
        used.extract_if(|_, last| is_stale(last))
            .map(|(id, _)| id)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::array;

    #[test]
    fn unused_sessions_expire() {
        let sessions = Sessions::default();
        let start = || sessions.start(UserDigest::NOBODY).unwrap();
        let (one, other) = (start(), start());
        assert_ne!(one, other);
        assert_eq!((one.uuid[6] >> 4, one.uuid[8] >> 6), (4, 0b10));
        sessions.end(other);
        let soon = Instant::now() + TIMEOUT - Duration::from_secs(1);
        assert!(sessions.expire(soon).is_empty());
        assert_eq!(sessions.expire(Instant::now() + TIMEOUT), vec![one]);
        assert_eq!(sessions.count(), 0);
    }

    #[test]
    fn lists_of_sessions_are_parsed_as_in_mongodb() {
        let check = |list: Value, expected: Result<usize, i32>| {
            let found = parse_array(list.as_ref(), "endSessions");
            let found = found
                .map(|all| all.len())
                .map_err(|error| error.code.number());
            assert_eq!(found, expected, "{list:?}");
        };
        check(array![].into(), Ok(0));
        check(
            array![(SessionId::for_tests([1; 16]).to_document())].into(),
            Ok(1),
        );
        check("x".into(), Err(10065));
        check(array![5].into(), Err(14));
        check(array![{}].into(), Err(40414));
        check(array![{ "id": 5 }].into(), Err(14));
        check(
            array![{ "id": (SessionId::for_tests([1; 16]).to_value()), "x": 1 }].into(),
            Err(40415),
        );
    }
}
