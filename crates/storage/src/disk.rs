//! The disk as the database sees it. Everything durable goes through these two traits, so that a
//! simulation sees and may spoil every byte.

pub(crate) mod memory;
pub(crate) mod real;

use std::any::Any;
use std::io;
use std::sync::Arc;

/// Kept for as long as the data folder is ours; dropping it lets the next process in.
pub type DiskLock = Box<dyn Any + Send + Sync>;

pub enum LockOutcome {
    Ours(DiskLock),
    /// Another process has it; its id where it could be read.
    Theirs(Option<u32>),
}

/// A data folder. Paths are relative to it and use `/`; "" is the folder itself.
///
/// Names (create, rename, remove) are durable after `sync_dir` of their folder, contents after
/// `sync_data` of their file, and neither implies the other.
pub trait Disk: Send + Sync {
    /// A new or emptied file.
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// An existing file, for reading and writing.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Replaces `to` if it exists.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, path: &str) -> io::Result<()>;
    /// The names in a folder, in no order.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    fn create_dir_all(&self, folder: &str) -> io::Result<()>;
    fn sync_dir(&self, folder: &str) -> io::Result<()>;
    /// Takes the advisory lock on `path`, creating it, without waiting.
    fn lock(&self, path: &str) -> io::Result<LockOutcome>;
    /// How to name a path to the operator.
    fn place(&self, path: &str) -> String;
}

/// An open file. Reads and writes name their offset, so that threads share it without a cursor.
pub trait DiskFile: Send + Sync {
    /// Writes all of `bytes`, growing the file where needed. After an error any part of them may
    /// have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Reads until `bytes` is full or the file ends; returns the count read.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;
    /// Makes the contents and the length durable.
    fn sync_data(&self) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()>;
}

/// The whole of a file.
pub(crate) fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let length = usize::try_from(file.len()?).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut bytes = vec![0; length];
    let count = file.read_at(0, &mut bytes)?;
    bytes.truncate(count);
    Ok(bytes)
}
