//! Encrypted bytes that are written as a whole under a name: objects of an object store that are no
//! runs, and files for the operator.
//!
//! ```text
//!  0  8  "WRenc-01"
//!  8  8  key field
//! 16 12  nonce
//! 28  …  encrypted bytes
//!  …  16  tag
//! ```
//!
//! The number of the key is the checksum of the name. The first 16 bytes and the name are bound to
//! the encrypted bytes.

use std::io;

use super::data_keys::{DataKeys, FileKind};
use super::{Cipher, NONCE_BYTES, TAG_BYTES};
use crate::checksum::checksum;

const MAGIC: &[u8; 8] = b"WRenc-01";
const CONTEXT_BYTES: usize = 16;
/// The number of bytes before the encrypted ones.
pub(crate) const HEADER_BYTES: usize = CONTEXT_BYTES + NONCE_BYTES;

/// The parts of sealed bytes.
struct SealedParts<'b> {
    cipher: Cipher,
    context: Vec<u8>,
    nonce: [u8; NONCE_BYTES],
    /// The encrypted bytes and the tag.
    rest: &'b [u8],
}

fn number(name: &str) -> u64 {
    checksum(0, name.as_bytes())
}

impl DataKeys {
    /// Encrypts bytes that get a name.
    pub fn seal(&self, name: &str, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let key = self.create_file_key(FileKind::Object, number(name))?;
        let nonce = self.next_nonce();
        let mut sealed = Vec::with_capacity(HEADER_BYTES + bytes.len() + TAG_BYTES);
        sealed.extend_from_slice(MAGIC);
        sealed.extend_from_slice(&key.header_field);
        let context = [sealed.as_slice(), name.as_bytes()].concat();
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(bytes);
        let plain = sealed.split_at_mut(HEADER_BYTES).1;
        let tag = key.cipher.encrypt(nonce, &context, plain);
        let tag = tag.ok_or_else(|| io::Error::other("it is too long to be encrypted"))?;
        sealed.extend_from_slice(&tag);
        Ok(sealed)
    }

    /// Returns the bytes that were sealed under this name. The error describes the defect.
    pub fn unseal(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, &'static str> {
        let parts = self.parts(name, sealed)?;
        let (bytes, tag) = parts
            .rest
            .split_last_chunk::<TAG_BYTES>()
            .ok_or("it ends too early")?;
        let mut bytes = bytes.to_vec();
        let decrypted = (parts.cipher).decrypt(parts.nonce, &parts.context, &mut bytes, *tag);
        decrypted.ok_or("it cannot be decrypted")?;
        Ok(bytes)
    }

    /// Returns the first bytes that were sealed under this name, from the beginning of the sealed
    /// bytes. They are not authenticated, because the tag covers all bytes. The error describes the
    /// defect.
    pub fn unseal_beginning(&self, name: &str, sealed: &[u8]) -> Result<Vec<u8>, &'static str> {
        let parts = self.parts(name, sealed)?;
        let mut bytes = parts.rest.to_vec();
        // The mode is a stream cipher: a second encryption is the decryption.
        let decrypted = parts
            .cipher
            .encrypt(parts.nonce, &parts.context, &mut bytes);
        decrypted.ok_or("it cannot be decrypted")?;
        Ok(bytes)
    }

    fn parts<'b>(&self, name: &str, sealed: &'b [u8]) -> Result<SealedParts<'b>, &'static str> {
        let short = "it ends too early";
        let (context, rest) = sealed.split_at_checked(CONTEXT_BYTES).ok_or(short)?;
        let (magic, field) = context.split_first_chunk::<8>().ok_or(short)?;
        if magic != MAGIC {
            return Err("it is not encrypted");
        }
        let field = field.first_chunk().ok_or(short)?;
        let (nonce, rest) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(short)?;
        let cipher = self.file_key(FileKind::Object, number(name), *field);
        Ok(SealedParts {
            cipher: cipher.ok_or("the data key that it uses is missing")?,
            context: [context, name.as_bytes()].concat(),
            nonce: *nonce,
            rest,
        })
    }
}

#[cfg(test)]
mod tests {
    use zeroize::Zeroizing;

    use super::super::KEY_BYTES;
    use super::super::data_keys::DataKey;
    use super::*;

    #[test]
    fn sealed_bytes_belong_to_their_name() {
        let key = |byte| DataKey {
            generation: 1,
            key: Zeroizing::new([byte; KEY_BYTES]),
        };
        let keys = DataKeys::new(vec![key(1)]).unwrap();
        for plain in [&b""[..], b"a text", &[7; 100_000]] {
            let sealed = keys.seal("log/1", plain).unwrap();
            assert_ne!(sealed, keys.seal("log/1", plain).unwrap());
            assert_eq!(sealed.len(), HEADER_BYTES + plain.len() + TAG_BYTES);
            assert_eq!(keys.unseal("log/1", &sealed).unwrap(), plain);
            assert!(keys.unseal("log/2", &sealed).is_err());
            let beginning = plain.len().min(10);
            let part = keys.unseal_beginning("log/1", &sealed[..HEADER_BYTES + beginning]);
            assert_eq!(part.unwrap(), &plain[..beginning]);
            for at in [0, 8, 16, HEADER_BYTES, sealed.len() - 1] {
                let mut changed = sealed.clone();
                changed[at] ^= 1;
                assert!(keys.unseal("log/1", &changed).is_err(), "byte {at}");
            }
            assert!(keys.unseal("log/1", &sealed[..sealed.len() - 1]).is_err());
            assert!(keys.unseal("log/1", &sealed[..20]).is_err());
            let other = DataKeys::new(vec![key(2)]).unwrap();
            assert!(other.unseal("log/1", &sealed).is_err());
        }
    }
}
