//! Encryption at rest with AES-256-GCM.
//!
//! ```text
//! master key       32 bytes that the operator keeps outside of the data folder
//!  └ data keys     random, wrapped by the master key in the file KEYS; each has a generation
//!     └ file keys  HKDF-SHA-256 of a data key with the kind, the number and a random salt of the file
//! ```
//!
//! Blocks of runs, the payloads of log records and checkpoints are encrypted one by one. New files
//! use the newest data key. Merges therefore replace files that use an older one.
//!
//! Temporary files have random keys of their own, which are never stored ([`TemporaryWriter`]).
//!
//! A key is never used twice with one nonce:
//!
//! - A run has a new salt each time it is written, and the nonce of a block is its offset.
//! - The nonce of a log record is random at each start of the process and counted up from there,
//!   because a record that power loss tore is written again at its place.
//! - A checkpoint has a new salt, and is encrypted once.
//! - An object of an object store has a new salt and a new nonce each time it is written.
//!
//! Sources: NIST SP 800-38D (GCM), RFC 5869 (HKDF).

mod data_keys;
mod key_file;
mod sealed;
mod temporary;

use std::fmt;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit, Nonce, Tag};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::fields::put;

pub(crate) use data_keys::{DataKeys, FileKind, new_file_key};
pub(crate) use key_file::{
    KEYS_PATH, KEYS_TEMPORARY, add_key, create_keys, first_keys_text, load_keys, read_keys_text,
};
pub(crate) use sealed::HEADER_BYTES as SEALED_HEADER_BYTES;
pub use temporary::{TemporaryReader, TemporaryWriter};

/// The length of a key, in bytes.
pub const KEY_BYTES: usize = 32;
pub(crate) const NONCE_BYTES: usize = 12;
pub(crate) const TAG_BYTES: usize = 16;

/// The key that protects the data keys of a data folder.
///
/// ```
/// use windrow_storage::MasterKey;
///
/// let key = MasterKey::generate()?;
/// let same = MasterKey::parse(&key.to_text()).unwrap();
/// assert_eq!(same.to_text(), key.to_text());
/// assert!(MasterKey::parse("c2hvcnQ=").is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; KEY_BYTES]>);

impl MasterKey {
    /// Returns the key in the text of a key file: 32 bytes in base64, with white space around it.
    /// Returns `None` if the text is no such key.
    pub fn parse(text: &str) -> Option<MasterKey> {
        let bytes = Zeroizing::new(STANDARD.decode(text.trim()).ok()?);
        let key: [u8; KEY_BYTES] = bytes.as_slice().try_into().ok()?;
        Some(MasterKey(Zeroizing::new(key)))
    }

    /// Returns a random key.
    ///
    /// # Errors
    /// Fails if the operating system has no random bytes.
    pub fn generate() -> std::io::Result<MasterKey> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        fill_random(key.as_mut())?;
        Ok(MasterKey(key))
    }

    /// Returns the text of a key file.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(self.0.as_slice()) + "\n")
    }

    fn cipher(&self) -> Cipher {
        Cipher::new(&self.0)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("MasterKey(secret)")
    }
}

/// Returns the nonce with a number, for a key that encrypts each number once.
pub(crate) fn numbered_nonce(number: u64) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    put(&mut nonce, 0, &number.to_le_bytes());
    nonce
}

/// Fills a buffer with random bytes.
pub(crate) fn fill_random(bytes: &mut [u8]) -> std::io::Result<()> {
    getrandom::fill(bytes).map_err(std::io::Error::other)
}

/// Encrypts and decrypts with one key.
pub(crate) struct Cipher(Aes256Gcm);

impl Cipher {
    fn new(key: &[u8; KEY_BYTES]) -> Cipher {
        Cipher(Aes256Gcm::new(key.into()))
    }

    #[cfg(test)]
    pub fn for_tests() -> Cipher {
        Cipher::new(&[7; KEY_BYTES])
    }

    /// Encrypts bytes in place and returns the tag. `context` is not encrypted, but decryption
    /// fails if it differs. A nonce must not be used twice. Returns `None` if there are more than
    /// 64 GB.
    pub fn encrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        context: &[u8],
        bytes: &mut [u8],
    ) -> Option<[u8; TAG_BYTES]> {
        let nonce = Nonce::from(nonce);
        let tag = self.0.encrypt_inout_detached(&nonce, context, bytes.into());
        tag.ok().map(Into::into)
    }

    /// Decrypts bytes in place. Returns `None` if the bytes, the context, the nonce or the tag are
    /// not those of the encryption, or the key is another one.
    pub fn decrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        context: &[u8],
        bytes: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> Option<()> {
        let (nonce, tag) = (Nonce::from(nonce), Tag::from(tag));
        let decrypted = self
            .0
            .decrypt_inout_detached(&nonce, context, bytes.into(), &tag);
        decrypted.ok()
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Cipher(secret)")
    }
}
