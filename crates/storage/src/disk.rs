//! The interface to the file system: [`Disk`] and [`DiskFile`]. All durable bytes pass through
//! these two traits, so a simulation can observe, lose or change each of them.

pub(crate) mod memory;
pub(crate) mod real;

use std::any::Any;
use std::io;
use std::sync::Arc;

use crate::error::StorageError;

/// The lock of a data folder. Dropping it releases the lock.
pub type DiskLock = Box<dyn Any + Send + Sync>;

/// The result of [`Disk::lock`].
pub enum LockOutcome {
    /// The caller has the lock.
    Ours(DiskLock),
    /// Another process has the lock. Its process id, if the lock file has it.
    Theirs(Option<u32>),
}

/// A data folder. Paths are relative to it and use `/`; "" is the folder itself.
///
/// A change of a name (create, rename, remove) is durable after [`sync_dir`](Disk::sync_dir) of its
/// folder. Content is durable after [`sync_data`](DiskFile::sync_data) of its file. Neither sync
/// implies the other.
///
/// ```
/// use windrow_storage::{Disk, MemoryDisk};
///
/// let disk = MemoryDisk::new();
/// let file = disk.create("file")?;
/// file.write_at(0, b"content")?;
/// file.sync_data()?;
/// disk.sync_dir("")?;
/// assert_eq!(disk.open("file")?.len()?, 7);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait Disk: Send + Sync {
    /// Creates a file, or truncates an existing one, and opens it for reading and writing. Fails
    /// with `NotFound` if the folder of `path` does not exist.
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file for reading and writing. Fails with `NotFound` if it does not exist.
    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// Renames a file. Replaces `to` if it exists.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file. Fails with `NotFound` if it does not exist.
    fn remove(&self, path: &str) -> io::Result<()>;
    /// Returns the names in a folder, in any order.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Creates a folder and its parents if they do not exist.
    fn create_dir_all(&self, folder: &str) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, folder: &str) -> io::Result<()>;
    /// Tries to take the advisory lock on the file `path`, without waiting. Creates the file if it
    /// does not exist.
    fn lock(&self, path: &str) -> io::Result<LockOutcome>;
    /// Returns the text that names `path` in messages to the operator.
    fn place(&self, path: &str) -> String;
}

/// An open file. Each read and write has an offset, so threads can share the file without a common
/// cursor.
pub trait DiskFile: Send + Sync {
    /// Writes all of `bytes` at `offset`, and grows the file if necessary. After an error, any part
    /// of them may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Reads until `bytes` is full or the file ends. Returns the number of bytes read.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize>;
    /// Makes the content and the length durable.
    fn sync_data(&self) -> io::Result<()>;
    /// Returns the length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Returns `true` if the length is 0.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Truncates the file to `bytes`, or extends it with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
}

/// Returns a function for `map_err` that adds the place of `path` to an I/O error.
pub(crate) fn at(
    disk: &Arc<dyn Disk>,
    path: &str,
) -> impl FnOnce(std::io::Error) -> StorageError + use<> {
    let place = disk.place(path);
    move |error| StorageError::from_io(place, error)
}

/// Replaces a file durably. A crash leaves the old content or the new one:
///
/// 1. Write and sync the bytes under the name `temporary`. If that fails, remove them: the disk may
///    be full.
/// 2. Rename the file and sync its folder.
pub(crate) fn replace(
    disk: &Arc<dyn Disk>,
    temporary: &str,
    path: &str,
    bytes: &[u8],
) -> Result<(), StorageError> {
    let file = disk.create(temporary).map_err(at(disk, path))?;
    let written = file.write_at(0, bytes).and_then(|()| file.sync_data());
    if let Err(error) = written {
        // What remains is overwritten by the next attempt.
        let _ = disk.remove(temporary);
        return Err(StorageError::from_io(disk.place(path), error));
    }
    disk.rename(temporary, path).map_err(at(disk, path))?;
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    disk.sync_dir(folder).map_err(at(disk, folder))
}

/// Returns the whole content of a file.
pub(crate) fn read_all(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_all_into(file, &mut bytes)?;
    Ok(bytes)
}

/// Reads the whole content of a file into `bytes`. The buffer can be used for many files.
pub(crate) fn read_all_into(file: &dyn DiskFile, bytes: &mut Vec<u8>) -> io::Result<()> {
    let length = usize::try_from(file.len()?).map_err(|_| io::ErrorKind::FileTooLarge)?;
    bytes.resize(length, 0);
    let count = file.read_at(0, bytes)?;
    bytes.truncate(count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::memory::MemoryDisk;
    use super::real::RealDisk;
    use super::*;

    /// Makes the same calls on both disks and expects the same results.
    fn check(disk: &dyn Disk) {
        disk.create_dir_all("a").unwrap();
        assert_eq!(
            disk.create("b/missing").err().unwrap().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(
            disk.open("a/one").err().unwrap().kind(),
            io::ErrorKind::NotFound
        );
        let file = disk.create("a/one").unwrap();
        assert!(file.is_empty().unwrap());
        file.write_at(5, b"world").unwrap();
        file.write_at(0, b"hello").unwrap();
        let mut bytes = [9; 20];
        assert_eq!(file.read_at(3, &mut bytes).unwrap(), 7);
        assert_eq!(&bytes[..8], b"loworld\x09");
        assert_eq!(file.read_at(50, &mut bytes).unwrap(), 0);
        file.set_len(3).unwrap();
        file.set_len(4).unwrap();
        assert_eq!(read_all(file.as_ref()).unwrap(), b"hel\0");
        file.sync_data().unwrap();
        disk.rename("a/one", "a/two").unwrap();
        disk.sync_dir("a").unwrap();
        file.write_at(3, b"p").unwrap();
        assert_eq!(
            read_all(disk.open("a/two").unwrap().as_ref()).unwrap(),
            b"help"
        );
        disk.create("a/three").unwrap();
        let mut names = disk.list("a").unwrap();
        names.sort();
        assert_eq!(names, ["three", "two"]);
        disk.rename("a/three", "a/two").unwrap();
        assert_eq!(
            disk.open("a/two").unwrap().len().unwrap(),
            0,
            "rename replaces"
        );
        assert_eq!(
            disk.remove("a/three").err().unwrap().kind(),
            io::ErrorKind::NotFound
        );
        disk.remove("a/two").unwrap();
        assert!(disk.list("a").unwrap().is_empty());
        assert_eq!(disk.list("").unwrap(), ["a"]);
        let held = disk.lock("LOCK").unwrap();
        assert!(matches!(disk.lock("LOCK").unwrap(), LockOutcome::Theirs(_)));
        drop(held);
        assert!(matches!(disk.lock("LOCK").unwrap(), LockOutcome::Ours(_)));
    }

    #[test]
    fn memory_disk_behaves_like_real_disk() {
        check(&MemoryDisk::new());
        check(&RealDisk::new(tempfile::tempdir().unwrap().path()).unwrap());
    }
}
