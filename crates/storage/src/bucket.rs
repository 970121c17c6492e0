//! The interface to an object store: [`Bucket`].

pub(crate) mod counted;
pub(crate) mod encrypted;
pub(crate) mod memory;
#[cfg(feature = "object-store")]
pub(crate) mod remote;

use std::ops::Range;

use bytes::Bytes;

use crate::disk::DiskFile;
use crate::error::StorageError;

/// The result of [`Bucket::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Creation {
    /// The object did not exist and has the bytes now.
    Created,
    /// An object with this name existed. It is unchanged.
    Exists,
}

/// The objects below one prefix of an object store. Names are relative to the prefix and use `/`.
///
/// A read that begins after a write has ended sees the write. If a call fails with `Unavailable`,
/// it may have had its effect, now or later.
///
/// ```
/// use windrow_storage::{Bucket, Creation, MemoryBucket};
///
/// let bucket = MemoryBucket::new();
/// let first = bucket.create("name", b"one".to_vec().into())?;
/// let second = bucket.create("name", b"two".to_vec().into())?;
/// assert_eq!((first, second), (Creation::Created, Creation::Exists));
/// assert_eq!(bucket.get("name")?.as_deref(), Some(&b"one"[..]));
/// # Ok::<(), windrow_storage::StorageError>(())
/// ```
pub trait Bucket: Send + Sync {
    /// Creates an object if none has this name (`PutMode::Create`, `If-None-Match: *`). Of
    /// concurrent calls with one name, one creates the object.
    fn create(&self, name: &str, bytes: Bytes) -> Result<Creation, StorageError>;
    /// Writes an object, and replaces an existing one.
    fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError>;
    /// Writes the whole content of a file to an object.
    fn put_file(&self, name: &str, file: &dyn DiskFile) -> Result<(), StorageError>;
    /// Returns the content of an object, or `None` if there is none.
    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError>;
    /// Returns a part of an object, or `None` if there is no such object. The result is shorter
    /// than the range if the object ends before.
    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>, StorageError>;
    /// Returns the size of an object in bytes, or `None` if there is none.
    fn size(&self, name: &str) -> Result<Option<u64>, StorageError>;
    /// Returns the names of the objects in a folder that come after `after` in byte order, without
    /// the folder, in any order. "" is before all names.
    fn list(&self, folder: &str, after: &str) -> Result<Vec<String>, StorageError>;
    /// Removes an object. Does nothing if there is none.
    fn delete(&self, name: &str) -> Result<(), StorageError>;
    /// Returns the text that names an object in messages to the operator. "" is the prefix.
    fn place(&self, name: &str) -> String;
}

/// Decides if a failed call to the object store is tried again.
pub trait RetryPolicy {
    /// Waits before the next attempt. Returns `false` if there is none. `attempt` counts from
    /// 0 for one call.
    fn should_retry(&self, attempt: u32, error: &StorageError) -> bool;
}

/// Never tries again.
pub(crate) struct NoRetries;

impl RetryPolicy for NoRetries {
    fn should_retry(&self, _: u32, _: &StorageError) -> bool {
        false
    }
}

/// Calls the object store until it answers or `retry_policy` refuses another attempt.
///
/// # Errors
/// Fails with the error of the last call.
pub fn retry<T>(
    retry_policy: &dyn RetryPolicy,
    call: impl Fn() -> Result<T, StorageError>,
) -> Result<T, StorageError> {
    let mut attempt = 0;
    loop {
        match call() {
            Err(error @ StorageError::Unavailable { .. }) => {
                if !retry_policy.should_retry(attempt, &error) {
                    return Err(error);
                }
                attempt += 1;
            }
            result => return result,
        }
    }
}
