//! Replaces the keys of an encrypted data folder that is not open.

use std::sync::Arc;

use crate::disk::Disk;
use crate::encryption::{MasterKey, add_key};
use crate::error::StorageError;
use crate::folder::lock_encrypted;

/// Adds a data key for new files, and wraps all data keys with the master key `new`. Files are not
/// rewritten: merges do that. Returns the generation of the new data key. The folder must not be
/// open.
///
/// # Errors
/// Fails with `InUse` if a process has the folder open, with `WrongKey` if `old` is not the master
/// key, with `NotEncrypted` if the folder is not encrypted, and if the file system fails.
///
/// ```
/// use std::sync::Arc;
/// use windrow_storage::{MasterKey, MemoryDisk, Storage, StorageOptions, rotate_keys};
///
/// let disk = Arc::new(MemoryDisk::new());
/// let (old, new) = (MasterKey::generate()?, MasterKey::generate()?);
/// let open = |key: &MasterKey| {
///     let encryption = Some(Arc::new(key.clone()));
///     Storage::open(disk.clone(), StorageOptions { encryption, ..StorageOptions::default() })
/// };
/// drop(open(&old)?);
/// assert_eq!(rotate_keys(disk.clone(), &old, &new)?, 2);
/// assert!(open(&old).is_err());
/// assert!(open(&new).is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn rotate_keys(
    disk: Arc<dyn Disk>,
    old: &MasterKey,
    new: &MasterKey,
) -> Result<u16, StorageError> {
    let _lock = lock_encrypted(&disk)?;
    add_key(&disk, old, new)
}
