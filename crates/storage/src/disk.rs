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
    let mut bytes = Vec::new();
    read_all_into(file, &mut bytes)?;
    Ok(bytes)
}

/// The whole of a file, in a buffer that serves many.
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

    /// Both disks do the same with the same calls.
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
    fn real_and_memory_are_alike() {
        check(&MemoryDisk::new());
        check(&RealDisk::new(tempfile::tempdir().unwrap().path()).unwrap());
    }
}
