//! The temporary files of a converter: a folder for its input, and one that it may write.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use windrow_extract::{ProgramContent, ProgramInput};

use crate::command::safe_extension;

/// Two folders, removed on drop:
///
/// ```text
/// windrow-converter-…/input   copies of files; read-only for the converter
/// windrow-converter-…/work    temporary files; writable for the converter
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

    /// Copies a file or member into the input folder. The copy keeps the extension, because many
    /// converters depend on it, but not the name.
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

    /// Returns the path at which a converter reads its input: the path of the file, or of a copy.
    pub(crate) fn provide(&self, input: &ProgramInput<'_>) -> io::Result<PathBuf> {
        match input.content {
            ProgramContent::File(file) if file.is_absolute() => Ok(file.to_path_buf()),
            _ => self.copy(input),
        }
    }

    /// Removes the files of the previous file of a persistent converter.
    pub(crate) fn clear(&self) {
        for folder in [self.input(), self.work()] {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                remove(&entry.path());
            }
        }
    }
}

/// Removes a file or folder. An error is ignored: the private folder is removed on drop.
fn remove(path: &Path) {
    let is_folder = path.symlink_metadata().is_ok_and(|it| it.is_dir());
    let _ = if is_folder {
        std::fs::remove_dir_all(path)
    } else {
        std::fs::remove_file(path)
    };
}
