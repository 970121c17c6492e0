//! Files with secrets: keys, passwords and tokens.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use zeroize::Zeroizing;

use crate::command_line::Failure;

/// The maximum size of a file in bytes.
const BYTES_MAX: u64 = 4096;

/// Reads a file. Fails if other users can read or write it.
pub fn read(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let metadata = fs::metadata(path).map_err(|error| failure(path, error.to_string()))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let what = format!("its mode is {mode:03o}, so other users can use it; run chmod 600");
        return Err(failure(path, what));
    }
    if metadata.len() > BYTES_MAX {
        let what = format!("it has {} bytes, the limit is {BYTES_MAX}", metadata.len());
        return Err(failure(path, what));
    }
    let text = fs::read_to_string(path).map_err(|error| failure(path, error.to_string()))?;
    Ok(Zeroizing::new(text))
}

/// Creates a file with a text and permissions. Fails if the file exists.
pub fn create(path: &Path, text: &str, permissions: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(permissions);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// The permissions of a file that only its owner can read.
pub const PRIVATE: u32 = 0o600;

/// Returns the failure of a command whose options name an unusable file.
pub fn failure(path: &Path, what: String) -> Failure {
    Failure::Usage(format!("the file {}: {what}", path.display()))
}
