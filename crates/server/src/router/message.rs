//! The field `$forwarded`, which a server appends to a command that it passes on to another server.
//!
//! | field | content |
//! |---|---|
//! | `set` | the name of the data set |
//! | `client`, `server` | the addresses of both ends of the client's connection |
//! | `user` | `{user, db}`, if the client has logged in |
//! | `first` | `true` if the client may create the first user |
//! | `after` | the newest change of users that the server knows, as a position in the log of the first data set |
//!
//! A message without `set` asks for the state of the server.

use std::net::IpAddr;

use windrow_access::{Endpoints, UserName};
use windrow_collection::Position;
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use windrow_wire::{CommandError, ErrorCode};

use crate::client::{FORWARDED_BYTES_MAX, Principal};

/// The name of the field.
pub const FORWARDED: &str = "$forwarded";

/// The bytes of a field around its document: the type, the name and its end.
const FIELD_BYTES: usize = 1 + FORWARDED.len() + 1;

/// A command that another server passes on.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardedHeader {
    pub set: String,
    pub principal: Principal,
    /// The newest change of users that the other server knows.
    pub after: Position,
}

impl ForwardedHeader {
    /// Returns the document of the field.
    ///
    /// # Errors
    /// Fails with BadValue if the field exceeds [`FORWARDED_BYTES_MAX`], because of a very long
    /// user name.
    pub fn to_document(&self) -> Result<DocumentBuf, CommandError> {
        let Principal {
            user,
            endpoints,
            can_create_first_user,
        } = &self.principal;
        let mut document = doc! {
            "set": (self.set.as_str()), "client": (endpoints.client.to_string()),
            "server": (endpoints.server.to_string()), "first": (*can_create_first_user),
            "after": (self.after.0 as i64),
        };
        if let Some(user) = user {
            document.push("user", user.to_document());
        }
        let bytes = FIELD_BYTES + document.as_bytes().len();
        if bytes > FORWARDED_BYTES_MAX {
            let message = format!(
                "a command for another server has {bytes} bytes about its client, the limit is \
                 {FORWARDED_BYTES_MAX}: the user's name is too long"
            );
            return Err(CommandError::new(ErrorCode::BadValue, message));
        }
        Ok(document)
    }

    /// Parses the field. `None` if it asks for the state of the server.
    ///
    /// # Errors
    /// Fails if a part is missing or invalid.
    pub fn parse(document: Document<'_>) -> Result<Option<ForwardedHeader>, CommandError> {
        let Some(set) = document.get("set") else {
            return Ok(None);
        };
        let parsed = parse(document, set);
        parsed.map(Some).ok_or_else(|| {
            let message = format!("invalid {FORWARDED}: {document}");
            CommandError::new(ErrorCode::FailedToParse, message)
        })
    }
}

fn parse(document: Document<'_>, set: ValueRef<'_>) -> Option<ForwardedHeader> {
    let address = |name: &str| -> Option<IpAddr> { document.get(name)?.as_str()?.parse().ok() };
    let user = match document.get("user") {
        None => None,
        Some(user) => {
            let user = user.as_document()?;
            let part = |name: &str| user.get(name)?.as_str();
            Some(UserName::new(part("user")?, part("db")?))
        }
    };
    let after = document.get("after")?.as_whole()?;
    Some(ForwardedHeader {
        set: set.as_str()?.to_owned(),
        principal: Principal {
            user,
            endpoints: Endpoints {
                client: address("client")?,
                server: address("server")?,
            },
            can_create_first_user: document.get("first")?.as_bool()?,
        },
        after: Position(u64::try_from(after).ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_parsed() {
        let check = |user: Option<UserName>| {
            let forwarded = ForwardedHeader {
                set: "logs".to_owned(),
                principal: Principal {
                    user,
                    endpoints: Endpoints {
                        client: IpAddr::from([10, 0, 0, 1]),
                        server: IpAddr::from([127, 0, 0, 1]),
                    },
                    can_create_first_user: true,
                },
                after: Position(7),
            };
            let document = forwarded.to_document().unwrap();
            let parsed = ForwardedHeader::parse(document.as_document()).unwrap();
            assert_eq!(parsed, Some(forwarded));
        };
        check(None);
        check(Some(UserName::new("a", "b")));
        assert_eq!(ForwardedHeader::parse(doc! {}.as_document()).unwrap(), None);
        let invalid = doc! { "set": "logs", "client": "x" };
        assert!(ForwardedHeader::parse(invalid.as_document()).is_err());
    }

    #[test]
    fn long_names_of_users_are_refused() {
        let check = |name_bytes: usize, is_refused: bool| {
            let forwarded = ForwardedHeader {
                set: "logs".to_owned(),
                principal: Principal {
                    user: Some(UserName::new(&"a".repeat(name_bytes), "b")),
                    endpoints: Endpoints {
                        client: IpAddr::from([10, 0, 0, 1]),
                        server: IpAddr::from([127, 0, 0, 1]),
                    },
                    can_create_first_user: false,
                },
                after: Position(7),
            };
            assert_eq!(forwarded.to_document().is_err(), is_refused, "{name_bytes}");
        };
        check(FORWARDED_BYTES_MAX - 200, false);
        check(FORWARDED_BYTES_MAX, true);
    }
}
