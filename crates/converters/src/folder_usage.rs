//! Measures the disk space that a converter uses while it runs.
//!
//! The kernel limits the size of each file. The sum is measured, because a converter can write many
//! files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum size of a temporary file of a converter, and of all its temporary files together.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 30;
/// The maximum number of files and folders that are measured.
const ENTRIES_MAX: usize = 10_000;
const INTERVAL: Duration = Duration::from_millis(250);

/// Measures a folder at intervals.
#[derive(Debug)]
pub(crate) struct FolderUsage {
    folder: PathBuf,
    measured: Instant,
}

impl FolderUsage {
    pub(crate) fn new(folder: &Path) -> Self {
        FolderUsage {
            folder: folder.to_path_buf(),
            measured: Instant::now(),
        }
    }

    /// Returns `true` if the folder has too many bytes or files. Measures at most once per
    /// interval.
    pub(crate) fn exceeds_limit(&mut self) -> bool {
        if self.measured.elapsed() < INTERVAL {
            return false;
        }
        let exceeds = exceeds(&self.folder, FILE_BYTES_MAX, ENTRIES_MAX);
        self.measured = Instant::now();
        exceeds
    }
}

fn exceeds(folder: &Path, bytes_max: u64, entries_max: usize) -> bool {
    let (mut bytes, mut entries) = (0u64, 0);
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        // Files can be removed meanwhile.
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            entries += 1;
            if entries > entries_max {
                return true;
            }
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) => bytes = bytes.saturating_add(metadata.len()),
                Err(_) => {}
            }
        }
    }
    bytes > bytes_max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_files_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/b"), [0; 100]).unwrap();
        std::fs::write(folder.path().join("c"), [0; 100]).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
        assert!(!exceeds(folder.path(), 1000, 4));
        assert!(exceeds(folder.path(), 199, 4));
        assert!(exceeds(folder.path(), 1000, 3));
        assert!(!exceeds(&folder.path().join("gone"), 0, 0));
    }
}
