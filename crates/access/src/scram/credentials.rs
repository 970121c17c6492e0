//! The credentials of a user, from which its password cannot be computed.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windrow_document::{Document, DocumentBuf, ValueRef, doc};
use zeroize::Zeroizing;

use super::hash::{Key, hash, keyed_hash, salted_password};
use super::mechanism::Mechanism;
use crate::error::Error;
use crate::fields::Fields;

/// Iteration counts outside of these are invalid: fewer protect nothing, and more would let a
/// stored document stop the clients.
const ITERATIONS: std::ops::RangeInclusive<i64> = 1..=10_000_000;

/// The data that the server stores for a user and a mechanism.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The number of iterations of the hash.
    pub iterations: u32,
    /// The salt.
    pub salt: Vec<u8>,
    /// The hash of the client's key.
    pub stored_key: Key,
    /// The key with which the server proves that it knows the user.
    pub server_key: Key,
}

/// It shows no keys.
impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Credentials");
        shown.field("iterations", &self.iterations);
        shown.finish_non_exhaustive()
    }
}

/// Returns the password in the form that the mechanism hashes. Fails if SASLprep refuses it.
pub fn prepare_password(
    mechanism: Mechanism,
    user: &str,
    password: &str,
) -> Result<Zeroizing<Vec<u8>>, Error> {
    match mechanism {
        Mechanism::ScramSha1 => Ok(digested_password(user, password)),
        Mechanism::ScramSha256 => match stringprep::saslprep(password) {
            Ok(prepared) => Ok(Zeroizing::new(prepared.as_bytes().to_vec())),
            Err(_) => {
                let message = "the password has characters that SASLprep (RFC 4013) prohibits";
                Err(Error::Invalid(message.to_owned()))
            }
        },
    }
}

/// Returns MongoDB's password of SCRAM-SHA-1: the MD5 hash of "user:mongo:password" in hexadecimal
/// digits.
fn digested_password(user: &str, password: &str) -> Zeroizing<Vec<u8>> {
    let text = Zeroizing::new(format!("{user}:mongo:{password}"));
    let digest = md5::compute(text.as_bytes());
    Zeroizing::new(format!("{digest:x}").into_bytes())
}

impl Credentials {
    /// Computes the credentials of a prepared password. See [`prepare_password`].
    pub fn new(
        mechanism: Mechanism,
        password: &[u8],
        salt: Vec<u8>,
        iterations: u32,
    ) -> Credentials {
        let salted = salted_password(mechanism, password, &salt, iterations);
        let client_key = keyed_hash(mechanism, &salted, b"Client Key");
        Credentials {
            iterations,
            salt,
            stored_key: hash(mechanism, &client_key),
            server_key: keyed_hash(mechanism, &salted, b"Server Key"),
        }
    }

    /// Returns the credentials of a user that does not exist. They are always the same for a name,
    /// so a client cannot tell them from those of a user. No password matches them. `secret` is a
    /// secret of the server.
    pub fn new_fake(
        mechanism: Mechanism,
        secret: &[u8],
        name: &str,
        iterations: u32,
    ) -> Credentials {
        let derive = |purpose: &str| {
            let message = format!("{purpose} {} {name}", mechanism.name());
            keyed_hash(mechanism, secret, message.as_bytes())
        };
        let mut salt = derive("salt").to_vec();
        salt.truncate(mechanism.salt_bytes());
        Credentials {
            iterations,
            salt,
            stored_key: derive("stored key"),
            server_key: derive("server key"),
        }
    }

    /// Returns `{iterationCount, salt, storedKey, serverKey}`, as `admin.system.users` has it.
    pub fn to_document(&self) -> DocumentBuf {
        doc! {
            "iterationCount": (self.iterations as i32),
            "salt": (STANDARD.encode(&self.salt)),
            "storedKey": (STANDARD.encode(&*self.stored_key)),
            "serverKey": (STANDARD.encode(&*self.server_key)),
        }
    }

    /// Parses the document of [`to_document`](Self::to_document).
    pub fn parse(mechanism: Mechanism, document: Document<'_>) -> Result<Credentials, Error> {
        let fields = Fields::new(document, mechanism.name());
        let bytes = |name: &str, length: usize| {
            let decoded = STANDARD.decode(fields.string(name)?);
            let decoded = decoded.ok().filter(|bytes| bytes.len() == length);
            decoded.ok_or_else(|| fields.wrong(name, &format!("{length} bytes in base64")))
        };
        let count = document.get("iterationCount").and_then(ValueRef::as_whole);
        let count = count.filter(|count| ITERATIONS.contains(count));
        let count = count.and_then(|count| u32::try_from(count).ok());
        let iterations =
            count.ok_or_else(|| fields.wrong("iterationCount", "a positive number"))?;
        let key_bytes = mechanism.digest_bytes();
        Ok(Credentials {
            iterations,
            salt: bytes("salt", mechanism.salt_bytes())?,
            stored_key: Zeroizing::new(bytes("storedKey", key_bytes)?),
            server_key: Zeroizing::new(bytes("serverKey", key_bytes)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_prepared() {
        let check = |mechanism, password: &str, expected: Option<&[u8]>| {
            let found = prepare_password(mechanism, "user", password).ok();
            assert_eq!(
                found.as_ref().map(|it| it.as_slice()),
                expected,
                "{password:?}"
            );
        };
        let modern = |password: &str, expected: Option<&str>| {
            check(
                Mechanism::ScramSha256,
                password,
                expected.map(str::as_bytes),
            );
        };
        modern("pencil", Some("pencil"));
        // The examples of RFC 4013.
        modern("I\u{AD}X", Some("IX"));
        modern("\u{AA}", Some("a"));
        modern("\u{2168}", Some("IX"));
        modern("\u{7}", None);
        modern("\u{627}1", None);
        let digest = b"1c33006ec1ffd90f9cadcbcc0e118200";
        check(Mechanism::ScramSha1, "pencil", Some(digest));
    }

    #[test]
    fn documents_are_parsed_as_written() {
        for mechanism in Mechanism::ALL {
            let salt = vec![7; mechanism.salt_bytes()];
            let one = Credentials::new(mechanism, b"x", salt, 3);
            let document = one.to_document();
            let again = Credentials::parse(mechanism, document.as_document()).unwrap();
            assert_eq!(again.to_document(), document);
            assert!(!format!("{one:?}").contains("key"));
            let other = if mechanism == Mechanism::ScramSha1 {
                Mechanism::ScramSha256
            } else {
                Mechanism::ScramSha1
            };
            assert!(Credentials::parse(other, document.as_document()).is_err());
        }
    }

    #[test]
    fn nobody_has_constant_credentials_of_the_usual_form() {
        let of = |secret: &[u8], name: &str| {
            Credentials::new_fake(Mechanism::ScramSha256, secret, name, 15_000)
        };
        assert_eq!(of(b"s", "a.b").to_document(), of(b"s", "a.b").to_document());
        assert_ne!(of(b"s", "a.b").salt, of(b"s", "a.c").salt);
        assert_ne!(of(b"s", "a.b").salt, of(b"t", "a.b").salt);
        let document = of(b"s", "a.b").to_document();
        Credentials::parse(Mechanism::ScramSha256, document.as_document()).unwrap();
    }
}
