//! The file with the process id, for supervisors.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command_line::Failure;

/// The file with the id of this process. Dropping it removes the file.
pub struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes the file.
    pub fn write(path: &Path) -> Result<PidFile, Failure> {
        let content = format!("{}\n", std::process::id());
        let written = fs::write(path, content);
        written.map_err(|error| {
            Failure::runtime(format!("the process id file {}: {error}", path.display()))
        })?;
        let path = path.to_owned();
        Ok(PidFile { path })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Fails if the file was already removed.
        let _ = fs::remove_file(&self.path);
    }
}
