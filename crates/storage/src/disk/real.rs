//! [`RealDisk`]: the file system of the operating system.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, DiskFile, LockOutcome};
use crate::StorageError;

/// The permissions of new files and folders: only their owner can use them, whatever the umask is.
const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// A folder in the file system of the operating system.
#[derive(Clone, Debug)]
pub struct RealDisk {
    folder: PathBuf,
}

impl RealDisk {
    /// Uses `folder` as the data folder. If it does not exist, it is created for its owner alone,
    /// and durably: otherwise a power loss could remove the folder together with files that were
    /// synced in it. The permissions of an existing folder stay as they are.
    ///
    /// # Errors
    /// Fails if the folder, or one of its parents, cannot be created.
    ///
    /// ```
    /// use windrow_storage::RealDisk;
    ///
    /// # let parent = tempfile::tempdir().unwrap();
    /// # let folder = parent.path().join("data");
    /// let disk = RealDisk::new(&folder)?;
    /// assert!(folder.is_dir());
    /// # Ok::<(), windrow_storage::StorageError>(())
    /// ```
    pub fn new(folder: impl Into<PathBuf>) -> Result<Self, StorageError> {
        let folder = folder.into();
        create_durably(&folder)
            .map_err(|error| StorageError::from_io(folder.display().to_string(), error))?;
        Ok(Self { folder })
    }

    fn path(&self, path: &str) -> PathBuf {
        if path.is_empty() {
            self.folder.clone()
        } else {
            self.folder.join(path)
        }
    }
}

impl Disk for RealDisk {
    fn create(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .mode(FILE_MODE)
            .truncate(true)
            .open(self.path(path))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.path(path))?;
        Ok(Arc::new(RealFile(file)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        std::fs::remove_file(self.path(path))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        std::fs::read_dir(self.path(folder))?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect()
    }

    fn create_dir_all(&self, folder: &str) -> io::Result<()> {
        create_private(&self.path(folder))
    }

    fn sync_dir(&self, folder: &str) -> io::Result<()> {
        File::open(self.path(folder))?.sync_all()
    }

    /// Locks the file and writes the process id into it, as text. Another process reports that id
    /// if it cannot take the lock.
    fn lock(&self, path: &str) -> io::Result<LockOutcome> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .mode(FILE_MODE)
            .truncate(false)
            .open(self.path(path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                file.read_to_string(&mut text)?;
                return Ok(LockOutcome::Theirs(text.trim().parse().ok()));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // Errors are ignored: the id is only for the message, and a full disk must not prevent a
        // database from opening.
        let _ = file.set_len(0);
        let _ = file.rewind();
        let _ = writeln!(file, "{}", std::process::id());
        Ok(LockOutcome::Ours(Box::new(file)))
    }

    fn place(&self, path: &str) -> String {
        self.path(path).display().to_string()
    }
}

/// Creates `folder` and its parents, outermost first, and syncs the parent after each of them.
fn create_durably(folder: &Path) -> io::Result<()> {
    if folder.as_os_str().is_empty() || folder.exists() {
        return Ok(());
    }
    let parent = folder.parent().unwrap_or(Path::new(""));
    create_durably(parent)?;
    create_private(folder)?;
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    File::open(parent)?.sync_all()
}

/// Creates `folder`, and its parents if they are missing, for their owner alone.
fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(FOLDER_MODE).create(folder)
}

struct RealFile(File);

impl DiskFile for RealFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while let Some(rest) = bytes.get_mut(count..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, offset + count as u64) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        let metadata = std::fs::metadata(path).unwrap();
        metadata.permissions().mode() & 0o777
    }

    /// Data files had been readable for every user of the machine, as the umask says.
    #[test]
    fn only_the_owner_can_use_new_files_and_folders() {
        let outer = tempfile::tempdir().unwrap();
        let data = outer.path().join("data");
        let disk = RealDisk::new(&data).unwrap();
        disk.create_dir_all("log/a").unwrap();
        drop(disk.create("log/1").unwrap());
        drop(disk.lock("LOCK").unwrap());
        for folder in ["", "log", "log/a"] {
            assert_eq!(mode(&data.join(folder)), 0o700, "{folder}");
        }
        for file in ["log/1", "LOCK"] {
            assert_eq!(mode(&data.join(file)), 0o600, "{file}");
        }
        std::fs::set_permissions(&data, Permissions::from_mode(0o750)).unwrap();
        drop(RealDisk::new(&data).unwrap());
        assert_eq!(mode(&data), 0o750);
    }

    #[test]
    fn new_creates_missing_parents() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("a/b/c");
        for _ in 0..2 {
            RealDisk::new(&inner).unwrap();
            assert!(inner.is_dir());
        }
        let file = outer.path().join("file");
        std::fs::write(&file, b"").unwrap();
        assert!(RealDisk::new(file.join("a")).is_err());
        assert!(create_durably(Path::new("")).is_ok());
    }
}
