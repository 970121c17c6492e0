//! The hash functions of the mechanisms.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::mechanism::Mechanism;

/// The result of a hash. It is overwritten when it is dropped.
pub type Key = Zeroizing<Vec<u8>>;

/// The hash of a message.
pub fn hash(mechanism: Mechanism, message: &[u8]) -> Key {
    Zeroizing::new(match mechanism {
        Mechanism::ScramSha1 => Sha1::digest(message).to_vec(),
        Mechanism::ScramSha256 => Sha256::digest(message).to_vec(),
    })
}

/// An HMAC with a key. Cloning it is cheaper than hashing the key again.
#[derive(Clone)]
enum Keyed {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
}

impl Keyed {
    fn new(mechanism: Mechanism, key: &[u8]) -> Keyed {
        // HMAC accepts keys of every length. An error is impossible, and an empty key would only
        // make logins fail.
        match mechanism {
            Mechanism::ScramSha1 => Keyed::Sha1(
                Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default())),
            ),
            Mechanism::ScramSha256 => Keyed::Sha256(
                Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default())),
            ),
        }
    }

    fn finish(mut self, message: &[u8]) -> Vec<u8> {
        match &mut self {
            Keyed::Sha1(mac) => mac.update(message),
            Keyed::Sha256(mac) => mac.update(message),
        }
        match self {
            Keyed::Sha1(mac) => mac.finalize().into_bytes().to_vec(),
            Keyed::Sha256(mac) => mac.finalize().into_bytes().to_vec(),
        }
    }
}

/// The HMAC of a message.
pub fn keyed_hash(mechanism: Mechanism, key: &[u8], message: &[u8]) -> Key {
    Zeroizing::new(Keyed::new(mechanism, key).finish(message))
}

/// `Hi` of RFC 5802: PBKDF2 with one block.
pub fn salted_password(mechanism: Mechanism, password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let keyed = Keyed::new(mechanism, password);
    let mut block = keyed.clone().finish(&[salt, &[0, 0, 0, 1]].concat());
    let mut sum = Zeroizing::new(block.clone());
    for _ in 1..iterations {
        block = keyed.clone().finish(&block);
        sum.iter_mut()
            .zip(&block)
            .for_each(|(sum, byte)| *sum ^= byte);
    }
    sum
}
