//! The hash functions of the mechanisms.

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::mechanism::Mechanism;

/// The result of a hash. It is overwritten when it is dropped.
pub type Key = Zeroizing<Vec<u8>>;

/// Returns the hash of a message.
pub fn hash(mechanism: Mechanism, message: &[u8]) -> Key {
    Zeroizing::new(match mechanism {
        Mechanism::ScramSha1 => Sha1::digest(message).to_vec(),
        Mechanism::ScramSha256 => Sha256::digest(message).to_vec(),
    })
}

/// An HMAC with a key. Cloning it is cheaper than hashing the key again.
#[derive(Clone)]
enum HmacKey {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
}

impl HmacKey {
    fn new(mechanism: Mechanism, key: &[u8]) -> HmacKey {
        // HMAC accepts keys of every length. An error is impossible, and an empty key would only
        // make logins fail.
        match mechanism {
            Mechanism::ScramSha1 => HmacKey::Sha1(
                Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default())),
            ),
            Mechanism::ScramSha256 => HmacKey::Sha256(
                Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default())),
            ),
        }
    }

    fn finish(mut self, message: &[u8]) -> Vec<u8> {
        match &mut self {
            HmacKey::Sha1(mac) => mac.update(message),
            HmacKey::Sha256(mac) => mac.update(message),
        }
        match self {
            HmacKey::Sha1(mac) => mac.finalize().into_bytes().to_vec(),
            HmacKey::Sha256(mac) => mac.finalize().into_bytes().to_vec(),
        }
    }
}

/// Returns the HMAC of a message.
pub fn keyed_hash(mechanism: Mechanism, key: &[u8], message: &[u8]) -> Key {
    Zeroizing::new(HmacKey::new(mechanism, key).finish(message))
}

/// Returns the salted password: `Hi` of RFC 5802, which is PBKDF2 with one block.
pub fn salted_password(mechanism: Mechanism, password: &[u8], salt: &[u8], iterations: u32) -> Key {
    let keyed = HmacKey::new(mechanism, password);
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
