//! The data keys of an open data folder, and the keys of its files.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::Zeroizing;

use super::{Cipher, KEY_BYTES, NONCE_BYTES, fill_random};

/// The kind of a file that has a key of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Segment,
    Run,
    Checkpoint,
    /// An object of an object store, or a file for the operator.
    Object,
}

/// The key of a new file.
pub(crate) struct FileKey {
    pub cipher: Cipher,
    /// The field for the header of the file, by which a reader finds the key.
    pub header_field: [u8; 8],
}

/// The key of a new file that may be unencrypted.
pub(crate) struct OptionalFileKey {
    /// `None` if the file is not encrypted.
    pub cipher: Option<Cipher>,
    /// The field for the header of the file. It has zeros if the file is not encrypted.
    pub header_field: [u8; 8],
}

/// Creates the key of a new file, if there are data keys. Fails if the operating system has no
/// random numbers.
pub(crate) fn new_file_key(
    keys: Option<&DataKeys>,
    kind: FileKind,
    number: u64,
) -> io::Result<OptionalFileKey> {
    let key = keys.map(|keys| keys.create_file_key(kind, number));
    Ok(match key.transpose()? {
        Some(FileKey {
            cipher,
            header_field,
        }) => OptionalFileKey {
            cipher: Some(cipher),
            header_field,
        },
        None => OptionalFileKey {
            cipher: None,
            header_field: [0; 8],
        },
    })
}

impl FileKind {
    fn label(self) -> &'static [u8] {
        match self {
            FileKind::Segment => b"windrow log segment",
            FileKind::Run => b"windrow run",
            FileKind::Checkpoint => b"windrow checkpoint",
            FileKind::Object => b"windrow object",
        }
    }
}

/// The reference to a data key and the salt, in the header of a file.
///
/// ```text
/// 0  2  generation of the data key, from 1 on; 0: the file is not encrypted
/// 2  6  salt
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KeyReference {
    generation: u16,
    salt: [u8; SALT_BYTES],
}

const SALT_BYTES: usize = 6;

impl KeyReference {
    fn to_bytes(self) -> [u8; 8] {
        let [low, high] = self.generation.to_le_bytes();
        let [a, b, c, d, e, f] = self.salt;
        [low, high, a, b, c, d, e, f]
    }

    fn from_bytes([low, high, a, b, c, d, e, f]: [u8; 8]) -> KeyReference {
        KeyReference {
            generation: u16::from_le_bytes([low, high]),
            salt: [a, b, c, d, e, f],
        }
    }
}

/// The data keys of an open data folder.
#[derive(Debug)]
pub(crate) struct DataKeys {
    keys: Vec<DataKey>,
    nonces: NonceCounter,
}

/// A data key.
pub(crate) struct DataKey {
    pub generation: u16,
    pub key: Zeroizing<[u8; KEY_BYTES]>,
}

impl std::fmt::Debug for DataKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DataKey(generation {})", self.generation)
    }
}

impl DataKeys {
    /// Returns the keys. Their generations ascend.
    pub fn new(keys: Vec<DataKey>) -> io::Result<DataKeys> {
        debug_assert!(keys.is_sorted_by_key(|key| key.generation));
        let nonces = NonceCounter::new()?;
        Ok(DataKeys { keys, nonces })
    }

    /// Returns the generation of the key that new files use.
    pub fn newest(&self) -> u16 {
        self.keys.last().map_or(0, |key| key.generation)
    }

    /// Creates the key of a new file. Fails if the operating system has no random numbers.
    pub fn create_file_key(&self, kind: FileKind, number: u64) -> io::Result<FileKey> {
        let newest = self.newest();
        let mut salt = [0; SALT_BYTES];
        fill_random(&mut salt)?;
        let reference = KeyReference {
            generation: newest,
            salt,
        };
        let cipher = self.derive(kind, number, reference);
        let cipher = cipher.ok_or_else(|| io::Error::other("the data folder has no data key"))?;
        Ok(FileKey {
            cipher,
            header_field: reference.to_bytes(),
        })
    }

    /// Returns the key of a file by the field in its header. Returns `None` if the data key that
    /// the file uses is missing.
    pub fn file_key(&self, kind: FileKind, number: u64, field: [u8; 8]) -> Option<Cipher> {
        self.derive(kind, number, KeyReference::from_bytes(field))
    }

    fn derive(&self, kind: FileKind, number: u64, reference: KeyReference) -> Option<Cipher> {
        let mut keys = self.keys.iter();
        let data_key = keys.find(|key| key.generation == reference.generation)?;
        let hkdf = Hkdf::<Sha256>::new(Some(&reference.salt), data_key.key.as_slice());
        let number = number.to_le_bytes();
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        hkdf.expand_multi_info(&[kind.label(), &number], key.as_mut_slice())
            .ok()?;
        Some(Cipher::new(&key))
    }

    /// Returns a nonce that this and other processes have not used.
    pub fn next_nonce(&self) -> [u8; NONCE_BYTES] {
        self.nonces.next()
    }
}

/// Nonces: 6 bytes that are random at each start of the process, and a counter of 6 bytes.
#[derive(Debug)]
struct NonceCounter {
    process: [u8; 6],
    next: AtomicU64,
}

impl NonceCounter {
    fn new() -> io::Result<NonceCounter> {
        let mut process = [0; 6];
        fill_random(&mut process)?;
        Ok(NonceCounter {
            process,
            next: AtomicU64::new(0),
        })
    }

    fn next(&self) -> [u8; NONCE_BYTES] {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let mut nonce = [0; NONCE_BYTES];
        let bytes = self.process.into_iter().chain(count.to_le_bytes());
        nonce
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = from);
        nonce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(generations: &[u16]) -> DataKeys {
        let key = |generation: &u16| DataKey {
            generation: *generation,
            key: Zeroizing::new([*generation as u8; KEY_BYTES]),
        };
        DataKeys::new(generations.iter().map(key).collect()).unwrap()
    }

    #[test]
    fn file_keys_differ_by_kind_number_salt_and_generation() {
        let (old, both) = (keys(&[1]), keys(&[1, 2]));
        let FileKey {
            cipher,
            header_field: field,
        } = both.create_file_key(FileKind::Run, 7).unwrap();
        assert_eq!(field[..2], [2, 0]);
        let mut sealed = *b"some bytes";
        let tag = cipher
            .encrypt([9; NONCE_BYTES], b"here", &mut sealed)
            .unwrap();
        assert_ne!(sealed, *b"some bytes");
        let open = |cipher: Option<Cipher>, context: &[u8]| {
            let mut bytes = sealed;
            cipher?.decrypt([9; NONCE_BYTES], context, &mut bytes, tag)?;
            Some(bytes)
        };
        let same = || both.file_key(FileKind::Run, 7, field);
        assert_eq!(open(same(), b"here"), Some(*b"some bytes"));
        assert_eq!(open(same(), b"there"), None);
        assert_eq!(open(both.file_key(FileKind::Run, 8, field), b"here"), None);
        assert_eq!(
            open(both.file_key(FileKind::Segment, 7, field), b"here"),
            None
        );
        let mut other = field;
        other[7] ^= 1;
        assert_eq!(open(both.file_key(FileKind::Run, 7, other), b"here"), None);
        assert!(old.file_key(FileKind::Run, 7, field).is_none());
    }

    #[test]
    fn nonces_are_not_repeated() {
        let keys = keys(&[1]);
        let (first, second) = (keys.next_nonce(), keys.next_nonce());
        assert_eq!(first[..6], second[..6]);
        assert_ne!(first, second);
    }
}
