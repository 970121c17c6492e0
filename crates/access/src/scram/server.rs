//! The side of the server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

use super::credentials::Credentials;
use super::hash::{hash, keyed_hash};
use super::mechanism::Mechanism;
use super::messages::{ClientFinal, ClientFirst};
use crate::error::Error;

/// A conversation between the first and the last message of a client.
#[derive(Debug)]
pub struct ServerConversation {
    mechanism: Mechanism,
    first: ClientFirst,
    credentials: Credentials,
    /// The nonces of client and server.
    nonce: String,
    reply: String,
}

impl ServerConversation {
    /// Answers the first message. `nonce` is at least 18 random bytes.
    pub fn start(
        mechanism: Mechanism,
        first: ClientFirst,
        credentials: Credentials,
        nonce: &[u8],
    ) -> ServerConversation {
        let nonce = format!("{}{}", first.nonce, STANDARD.encode(nonce));
        let (salt, count) = (STANDARD.encode(&credentials.salt), credentials.iterations);
        ServerConversation {
            reply: format!("r={nonce},s={salt},i={count}"),
            mechanism,
            first,
            credentials,
            nonce,
        }
    }

    /// Returns the reply to the first message.
    pub fn reply(&self) -> &[u8] {
        self.reply.as_bytes()
    }

    /// Checks the last message. Returns the reply, which proves that the server knows the user.
    pub fn finish(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        let last = ClientFinal::parse(message)?;
        if last.header != self.first.header.as_bytes() {
            return Err(Error::Malformed(
                "the channel binding differs from the first message",
            ));
        }
        if last.nonce != self.nonce {
            return Err(Error::Malformed(
                "the nonce differs from that of the server",
            ));
        }
        let signed = [&self.first.bare, ",", &self.reply, ",", last.without_proof].concat();
        let signature = keyed_hash(
            self.mechanism,
            &self.credentials.stored_key,
            signed.as_bytes(),
        );
        if last.proof.len() != signature.len() {
            return Err(Error::WrongProof);
        }
        let bytes = last.proof.iter().zip(signature.iter());
        let client_key: Vec<u8> = bytes.map(|(proof, signed)| proof ^ signed).collect();
        let found = hash(self.mechanism, &client_key);
        if !bool::from(found.as_slice().ct_eq(&self.credentials.stored_key)) {
            return Err(Error::WrongProof);
        }
        let proof = keyed_hash(
            self.mechanism,
            &self.credentials.server_key,
            signed.as_bytes(),
        );
        Ok(format!("v={}", STANDARD.encode(&*proof)).into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scram::{ClientConversation, prepare_password};

    /// The example of RFC 7677, with the server's part of the nonce as it is there.
    #[test]
    fn the_example_of_the_rfc_is_accepted() {
        let mechanism = Mechanism::ScramSha256;
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let credentials = Credentials::new(mechanism, b"pencil", salt, 4096);
        let first = ClientFirst::parse(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        let mut conversation = ServerConversation::start(mechanism, first, credentials, b"");
        conversation.nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".into();
        conversation.reply = format!("r={},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", conversation.nonce);
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let reply = conversation.finish(last.as_bytes()).unwrap();
        assert_eq!(reply, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    fn converse(mechanism: Mechanism, stored: &str, given: &str) -> Result<(), Error> {
        let prepared = prepare_password(mechanism, "me", stored)?;
        let salt = vec![1; mechanism.salt_bytes()];
        let credentials = Credentials::new(mechanism, &prepared, salt, 4);
        let client = ClientConversation::start(mechanism, "me", "abc");
        let first = ClientFirst::parse(client.first().as_bytes())?;
        let server = ServerConversation::start(mechanism, first, credentials, b"123");
        let proof = client.prove(given, server.reply())?;
        let reply = server.finish(proof.message().as_bytes())?;
        proof.check(&reply)
    }

    #[test]
    fn client_and_server_agree() {
        for mechanism in Mechanism::ALL {
            assert_eq!(converse(mechanism, "p\u{2168}w", "p\u{2168}w"), Ok(()));
            assert_eq!(converse(mechanism, "pw", "pv"), Err(Error::WrongProof));
        }
        let alike = converse(Mechanism::ScramSha256, "\u{2168}", "IX");
        assert_eq!(alike, Ok(()));
    }

    /// Changed messages are refused: no panic, and no login.
    #[test]
    fn mutated_messages_are_refused() {
        let mechanism = Mechanism::ScramSha256;
        let salt = vec![1; mechanism.salt_bytes()];
        let credentials = Credentials::new(mechanism, b"pw", salt, 2);
        let client = ClientConversation::start(mechanism, "me", "abc");
        let mut seed = 1u64;
        let mut random = |limit: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % limit
        };
        let mut accepted = 0;
        for round in 0..10_000 {
            let mut first = client.first().as_bytes().to_vec();
            let place = random(first.len());
            if round % 2 == 0 {
                first[place] = random(256) as u8;
            }
            let Ok(parsed) = ClientFirst::parse(&first) else {
                continue;
            };
            let server = ServerConversation::start(mechanism, parsed, credentials.clone(), b"1");
            let Ok(proof) = client.prove("pw", server.reply()) else {
                continue;
            };
            let mut last = proof.message().as_bytes().to_vec();
            let (place, byte) = (random(last.len()), random(256) as u8);
            match random(3) {
                0 => last[place] = byte,
                1 => last.truncate(place),
                _ => last.insert(place, byte),
            }
            let is_same = first == client.first().as_bytes() && last == proof.message().as_bytes();
            let is_accepted = server.finish(&last).is_ok();
            accepted += usize::from(is_accepted);
            // A change of the last bits of a base64 text is the only one without an effect.
            assert!(!is_accepted || is_same, "{}", last.escape_ascii());
        }
        assert!(accepted < 100);
    }
}
