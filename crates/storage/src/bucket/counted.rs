//! [`CountedBucket`]: an object store whose requests are counted.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::{Bucket, Creation};
use crate::disk::DiskFile;
use crate::error::StorageError;

/// The requests of one server to the object store since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreRequests {
    /// Those that write an object.
    pub writes: u64,
    /// Those that read an object or a part of one, or ask for its size.
    pub reads: u64,
    /// Those that list names.
    pub lists: u64,
    /// Those that delete an object.
    pub deletes: u64,
    /// Those among all of them that have failed.
    pub failed: u64,
    /// The bytes that were written.
    pub bytes_written: u64,
    /// The bytes that were read.
    pub bytes_read: u64,
}

/// An object store whose requests are counted.
pub(crate) struct CountedBucket {
    inner: Arc<dyn Bucket>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    writes: AtomicU64,
    reads: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    failed: AtomicU64,
    bytes_written: AtomicU64,
    bytes_read: AtomicU64,
}

impl CountedBucket {
    pub fn new(inner: Arc<dyn Bucket>) -> Self {
        let counters = Counters::default();
        Self { inner, counters }
    }

    pub fn requests(&self) -> StoreRequests {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        StoreRequests {
            writes: count(&counters.writes),
            reads: count(&counters.reads),
            lists: count(&counters.lists),
            deletes: count(&counters.deletes),
            failed: count(&counters.failed),
            bytes_written: count(&counters.bytes_written),
            bytes_read: count(&counters.bytes_read),
        }
    }

    fn count<T>(
        &self,
        counter: &AtomicU64,
        result: Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        counter.fetch_add(1, Ordering::Relaxed);
        if result.is_err() {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    fn count_write<T>(
        &self,
        bytes: u64,
        result: Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        if result.is_ok() {
            let counter = &self.counters.bytes_written;
            counter.fetch_add(bytes, Ordering::Relaxed);
        }
        self.count(&self.counters.writes, result)
    }

    fn count_read(
        &self,
        result: Result<Option<Bytes>, StorageError>,
    ) -> Result<Option<Bytes>, StorageError> {
        if let Ok(Some(bytes)) = &result {
            let counter = &self.counters.bytes_read;
            counter.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        self.count(&self.counters.reads, result)
    }
}

impl Bucket for CountedBucket {
    fn create(&self, name: &str, bytes: Bytes) -> Result<Creation, StorageError> {
        let count = bytes.len() as u64;
        self.count_write(count, self.inner.create(name, bytes))
    }

    fn put(&self, name: &str, bytes: Bytes) -> Result<(), StorageError> {
        let count = bytes.len() as u64;
        self.count_write(count, self.inner.put(name, bytes))
    }

    fn put_file(&self, name: &str, file: &dyn DiskFile) -> Result<(), StorageError> {
        let count = file.len().unwrap_or_default();
        self.count_write(count, self.inner.put_file(name, file))
    }

    fn get(&self, name: &str) -> Result<Option<Bytes>, StorageError> {
        self.count_read(self.inner.get(name))
    }

    fn get_range(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>, StorageError> {
        self.count_read(self.inner.get_range(name, range))
    }

    fn size(&self, name: &str) -> Result<Option<u64>, StorageError> {
        self.count(&self.counters.reads, self.inner.size(name))
    }

    fn list(&self, folder: &str, after: &str) -> Result<Vec<String>, StorageError> {
        self.count(&self.counters.lists, self.inner.list(folder, after))
    }

    fn delete(&self, name: &str) -> Result<(), StorageError> {
        self.count(&self.counters.deletes, self.inner.delete(name))
    }

    fn place(&self, name: &str) -> String {
        self.inner.place(name)
    }
}
