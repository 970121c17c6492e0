//! Signatures of indexed files. A client that can write to `files.documents` can store a document
//! with any path. A server sends only files whose document has a valid signature.
//!
//! The key is a file in the data folder, `indexed-files.key`, which only its owner can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::walk::FileStamp;

/// The name of the key file.
const KEY_FILE: &str = "indexed-files.key";
const KEY_BYTES: usize = 32;
/// A signature is the beginning of an HMAC-SHA-256.
pub const SIGNATURE_BYTES: usize = 16;

/// Creates and verifies signatures of indexed files.
#[derive(Clone)]
pub struct FileSigner {
    hmac: Hmac<Sha256>,
}

impl std::fmt::Debug for FileSigner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FileSigner")
    }
}

impl FileSigner {
    /// Reads the key of a data folder.
    ///
    /// # Errors
    /// Fails if the key does not exist, which means that nothing was indexed there, or if it is
    /// damaged.
    pub fn open(data_folder: &Path) -> io::Result<FileSigner> {
        let key = fs::read(data_folder.join(KEY_FILE))?;
        if key.len() != KEY_BYTES {
            let message = format!("{KEY_FILE} has {} bytes, not {KEY_BYTES}", key.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        FileSigner::with_key(&key)
    }

    /// Reads the key of a data folder, or creates it.
    ///
    /// # Errors
    /// Fails if the folder cannot be written, or if the key is damaged.
    pub fn open_or_create(data_folder: &Path) -> io::Result<FileSigner> {
        match FileSigner::open(data_folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        // The file is linked when it is complete, so another process that creates it at the same
        // time cannot read a part.
        let own = data_folder.join(format!("{KEY_FILE}.{}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&own)?;
        file.write_all(&key)?;
        file.sync_all()?;
        let linked = fs::hard_link(&own, data_folder.join(KEY_FILE));
        fs::remove_file(&own)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => FileSigner::open(data_folder),
        }
    }

    /// Signs with this key.
    pub(crate) fn with_key(key: &[u8]) -> io::Result<FileSigner> {
        let hmac = Hmac::<Sha256>::new_from_slice(key).map_err(io::Error::other)?;
        Ok(FileSigner { hmac })
    }

    /// Returns the signature of a file with this path, as stored in documents, and this stamp.
    pub fn sign(&self, path: &str, stamp: &FileStamp) -> [u8; SIGNATURE_BYTES] {
        let full = self.compute_hmac(path, stamp).finalize().into_bytes();
        let mut signature = [0; SIGNATURE_BYTES];
        signature
            .iter_mut()
            .zip(full)
            .for_each(|(to, byte)| *to = byte);
        signature
    }

    /// Returns `true` if the signature is valid for the file.
    pub fn verify(&self, path: &str, stamp: &FileStamp, signature: &[u8]) -> bool {
        signature.len() == SIGNATURE_BYTES
            && self
                .compute_hmac(path, stamp)
                .verify_truncated_left(signature)
                .is_ok()
    }

    fn compute_hmac(&self, path: &str, stamp: &FileStamp) -> Hmac<Sha256> {
        let mut hmac = self.hmac.clone();
        hmac.update(&stamp.size.to_le_bytes());
        hmac.update(&stamp.modified_ns.to_le_bytes());
        hmac.update(&stamp.changed_ns.to_le_bytes());
        hmac.update(&stamp.inode.to_le_bytes());
        // The path comes last, because its length is not fixed.
        hmac.update(path.as_bytes());
        hmac
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_file_in_one_state() {
        let folder = tempfile::tempdir().unwrap();
        assert!(FileSigner::open(folder.path()).is_err());
        let signer = FileSigner::open_or_create(folder.path()).unwrap();
        let stamp = FileStamp {
            size: 1,
            modified_ns: 2,
            changed_ns: 3,
            inode: 4,
        };
        let signature = signer.sign("/a", &stamp);
        let again = FileSigner::open_or_create(folder.path()).unwrap();
        assert!(again.verify("/a", &stamp, &signature));
        assert!(!again.verify("/b", &stamp, &signature));
        let changed = FileStamp { inode: 5, ..stamp };
        assert!(!again.verify("/a", &changed, &signature));
        assert!(!again.verify("/a", &stamp, &signature[..15]) && !again.verify("/a", &stamp, &[]));
        let other = tempfile::tempdir().unwrap();
        let other = FileSigner::open_or_create(other.path()).unwrap();
        assert!(!other.verify("/a", &stamp, &signature));
        fs::write(folder.path().join(KEY_FILE), "short").unwrap();
        assert!(FileSigner::open_or_create(folder.path()).is_err());
    }
}
