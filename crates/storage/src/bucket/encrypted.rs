//! [`EncryptedBucket`]: an object store in which the content of a database is encrypted.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::{Bucket, Creation};
use crate::disk::DiskFile;
use crate::encryption::{DataKeys, SEALED_HEADER_BYTES};
use crate::error::StorageError;

/// The folders whose objects are encrypted as a whole. Runs are encrypted block by block, as in a
/// data folder. The others have no content of documents and no names.
const SEALED_FOLDERS: [&str; 3] = ["log", "catalog", "shares"];

/// Encrypts and decrypts the objects of an object store.
pub(crate) struct EncryptedBucket {
    inner: Arc<dyn Bucket>,
    keys: Arc<DataKeys>,
}

fn is_sealed(name: &str) -> bool {
    let folder = name.split_once('/').map(|(folder, _)| folder);
    folder.is_some_and(|folder| SEALED_FOLDERS.contains(&folder))
}

impl EncryptedBucket {
    pub fn new(inner: Arc<dyn Bucket>, keys: Arc<DataKeys>) -> Self {
        Self { inner, keys }
    }

    fn seal(&self, name: &str, bytes: Bytes) -> Result<Bytes, StorageError> {
        if !is_sealed(name) {
            return Ok(bytes);
        }
        let sealed = self.keys.seal(name, &bytes);
        let sealed = sealed.map_err(|error| StorageError::from_io(self.place(name), error))?;
        Ok(sealed.into())
    }

    fn damaged(&self, name: &str, what: &'static str) -> StorageError {
        StorageError::damaged(self.place(name), what)
    }
}

impl Bucket for EncryptedBucket {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Creation, StorageError> {
        self.inner.create(name, self.seal(name, bytes)?)
    }

    fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        self.inner.put(name, self.seal(name, bytes)?)
    }

    fn put_file(&self, name: &str, file: &dyn DiskFile) -> Result<(), StorageError> {
        debug_assert!(!is_sealed(name), "{name} is no run");
        self.inner.put_file(name, file)
    }

    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        let found = self.inner.get(name)?;
        if !is_sealed(name) {
            return Ok(found);
        }
        let unseal = |bytes: Bytes| self.keys.unseal(name, &bytes);
        let opened = found.map(unseal).transpose();
        let opened = opened.map_err(|what| self.damaged(name, what))?;
        Ok(opened.map(Bytes::from))
    }

    /// The range of an encrypted object must be in it, and is not authenticated: see
    /// [`DataKeys::unseal_beginning`].
    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>, StorageError> {
        if !is_sealed(name) {
            return self.inner.get_range(name, range);
        }
        let sealed = 0..range.end.saturating_add(SEALED_HEADER_BYTES as u64);
        let Some(bytes) = self.inner.get_range(name, sealed)? else {
            return Ok(None);
        };
        let opened = self.keys.unseal_beginning(name, &bytes);
        let mut opened = Bytes::from(opened.map_err(|what| self.damaged(name, what))?);
        Ok(Some(
            opened.split_off(opened.len().min(range.start as usize)),
        ))
    }

    fn size(&self, name: &str) -> Result<Option<u64>, StorageError> {
        self.inner.size(name)
    }

    fn list(&self, folder: &str, after: &str) -> Result<Vec<String>, StorageError> {
        self.inner.list(folder, after)
    }

    fn delete(&self, name: &str) -> Result<(), StorageError> {
        self.inner.delete(name)
    }

    fn place(&self, name: &str) -> String {
        self.inner.place(name)
    }
}
