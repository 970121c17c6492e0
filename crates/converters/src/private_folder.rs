//! The files of a converter: a folder for copies that it reads, and one that it may write.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windrow_extract::{ProgramContent, ProgramInput};

use crate::command::safe_extension;

/// Two folders that are removed on drop:
///
/// ```text
/// windrow-converter-…/input   copies of files; the converter reads it
/// windrow-converter-…/work    temporary files; the converter writes it
/// ```
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    folder: TempDir,
}

impl PrivateFolder {
    pub(crate) fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("windrow-converter-")
            .tempdir()?;
        let private = PrivateFolder { folder };
        std::fs::create_dir(private.input())?;
        std::fs::create_dir(private.work())?;
        Ok(private)
    }

    pub(crate) fn input(&self) -> PathBuf {
        self.folder.path().join("input")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Copies a file or member into the folder that the converter reads. Its name does not matter to
    /// converters, but often its extension.
    pub(crate) fn copy(&self, input: &ProgramInput<'_>) -> io::Result<PathBuf> {
        let name = match safe_extension(input.name) {
            Some(extension) => format!("file.{extension}"),
            None => "file".to_owned(),
        };
        let path = self.input().join(name);
        match input.content {
            ProgramContent::File(file) => {
                io::copy(
                    &mut std::fs::File::open(file)?,
                    &mut std::fs::File::create(&path)?,
                )?;
            }
            ProgramContent::Bytes(bytes) => std::fs::write(&path, bytes)?,
        }
        Ok(path)
    }

    /// Returns the path at which a converter that ends after the file reads it: its own, or that of a
    /// copy.
    pub(crate) fn provide(&self, input: &ProgramInput<'_>) -> io::Result<PathBuf> {
        match input.content {
            ProgramContent::File(file) if file.is_absolute() => Ok(file.to_path_buf()),
            _ => self.copy(input),
        }
    }

    /// Removes the files between two files of a converter that stays running.
    pub(crate) fn clear(&self) {
        for folder in [self.input(), self.work()] {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                remove(&entry.path());
            }
        }
    }
}

/// Removes a file or folder. What cannot be removed goes with the private folder, or stays.
fn remove(path: &Path) {
    let is_folder = path.symlink_metadata().is_ok_and(|it| it.is_dir());
    let _ = if is_folder {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    };
}
