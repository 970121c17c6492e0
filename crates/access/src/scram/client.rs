//! The side of the client, for Windrow's own commands.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use super::credentials::prepare_password;
use super::hash::{Key, hash, keyed_hash, salted_password};
use super::mechanism::Mechanism;
use super::messages::escape;
use crate::error::Error;

/// The largest iteration count that a client accepts: a server could stop it with more.
const ITERATIONS_MAX: u32 = 10_000_000;

/// A conversation before the reply to the first message.
#[derive(Debug)]
pub struct ClientConversation {
    mechanism: Mechanism,
    user: String,
    nonce: String,
    first: String,
}

impl ClientConversation {
    /// Starts a conversation. `nonce` is random printable text without commas.
    pub fn start(mechanism: Mechanism, user: &str, nonce: &str) -> ClientConversation {
        ClientConversation {
            mechanism,
            user: user.to_owned(),
            nonce: nonce.to_owned(),
            first: format!("n,,n={},r={nonce}", escape(user)),
        }
    }

    /// Returns the first message.
    pub fn first(&self) -> &str {
        &self.first
    }

    /// Proves the password in answer to the server's first reply.
    pub fn prove(&self, password: &str, reply: &[u8]) -> Result<ClientProof, Error> {
        let invalid = || Error::Malformed("the reply must be r=NONCE,s=SALT,i=COUNT");
        let reply = std::str::from_utf8(reply).map_err(|_| invalid())?;
        let mut parts = reply.split(',');
        let mut part = |name: &str| parts.next()?.strip_prefix(name);
        let nonce = part("r=").ok_or_else(invalid)?;
        let salt = part("s=").and_then(|salt| STANDARD.decode(salt).ok());
        let count = part("i=").and_then(|count| count.parse::<u32>().ok());
        let count = count.filter(|count| (1..=ITERATIONS_MAX).contains(count));
        let (salt, count) = salt.zip(count).ok_or_else(invalid)?;
        if !nonce.starts_with(&self.nonce) {
            return Err(Error::Malformed("the nonce is not that of the client"));
        }
        let prepared = prepare_password(self.mechanism, &self.user, password)?;
        let salted = salted_password(self.mechanism, &prepared, &salt, count);
        let without_proof = format!("c=biws,r={nonce}");
        let bare = self.first.get(3..).unwrap_or_default();
        let signed = [bare, ",", reply, ",", &without_proof].concat();
        let client_key = keyed_hash(self.mechanism, &salted, b"Client Key");
        let stored_key = hash(self.mechanism, &client_key);
        let signature = keyed_hash(self.mechanism, &stored_key, signed.as_bytes());
        let proof = client_key.iter().zip(signature.iter());
        let proof: Vec<u8> = proof.map(|(key, signed)| key ^ signed).collect();
        let server_key = keyed_hash(self.mechanism, &salted, b"Server Key");
        Ok(ClientProof {
            message: format!("{without_proof},p={}", STANDARD.encode(proof)),
            expected: keyed_hash(self.mechanism, &server_key, signed.as_bytes()),
        })
    }
}

/// A conversation before the last reply.
#[derive(Debug)]
pub struct ClientProof {
    message: String,
    /// The signature of a server that knows the user.
    expected: Key,
}

impl ClientProof {
    /// Returns the last message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Fails if the server does not know the user's password.
    pub fn check(&self, reply: &[u8]) -> Result<(), Error> {
        let signature = reply.strip_prefix(b"v=");
        let signature = signature.and_then(|text| STANDARD.decode(text).ok());
        let is_same = signature.is_some_and(|it| bool::from(it.as_slice().ct_eq(&self.expected)));
        if is_same {
            Ok(())
        } else {
            Err(Error::WrongProof)
        }
    }
}
