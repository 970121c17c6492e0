//! Access to a data folder: opened in this process, or through the server that has it open.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use windrow_collection::{Engine, EngineOptions, Error, StorageError};
use windrow_storage::RealDisk;

use crate::command_line::Failure;
use crate::{bytes, memory};

/// An accessible data folder.
pub enum Opened {
    /// Open in this process.
    Here(Arc<Engine>),
    /// Open in a server at this address.
    ByServer(SocketAddr),
}

/// Opens the folder, or finds the server that has it open.
pub fn open(folder: &Path, memory_bytes: u64) -> Result<Opened, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Run(error.to_string());
    let disk = RealDisk::new(folder).map_err(|error| failed(&error))?;
    match Engine::open(Arc::new(disk), EngineOptions::with_memory(memory_bytes)) {
        Ok(engine) => Ok(Opened::Here(engine)),
        Err(error) => match server_of(folder, &error) {
            Some(address) => Ok(Opened::ByServer(address)),
            None => Err(failed(&error)),
        },
    }
}

/// Returns the address of the server that has the folder open. A killed server leaves its note
/// behind, so the note must name the process that holds the lock.
fn server_of(folder: &Path, error: &Error) -> Option<SocketAddr> {
    let Error::Storage(StorageError::InUse { owner, .. }) = error else {
        return None;
    };
    let note = fs::read_to_string(folder.join("server.json")).ok()?;
    address_in(&note, *owner)
}

/// Returns the address in a note, if the note is from process `owner`.
fn address_in(note: &str, owner: Option<u32>) -> Option<SocketAddr> {
    let behind = |name: &str| note.split_once(name).map(|(_, rest)| rest);
    let digits = behind("\"pid\":")?.trim_start();
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    let pid: u32 = digits.get(..end.unwrap_or(digits.len()))?.parse().ok()?;
    if owner.is_some_and(|owner| owner != pid) {
        return None;
    }
    behind("\"address\":")?.split('"').nth(1)?.parse().ok()
}

/// Parses the value of `--memory`.
pub fn memory_of(text: &str) -> Result<u64, Failure> {
    let bytes = bytes::parse(text).map_err(|why| Failure::Usage(format!("--memory {why}")))?;
    if bytes < memory::MEMORY_BYTES_MIN {
        let least = memory::MEMORY_BYTES_MIN >> 20;
        return Err(Failure::Usage(format!(
            "--memory {text} is too little; {least}MiB is the least"
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_the_address_of_its_server() {
        let check = |note: &str, owner: Option<u32>, expected: Option<&str>| {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(address_in(note, owner), expected, "{note}");
        };
        let note = "{\"address\":\"127.0.0.1:27018\",\"pid\":7}\n";
        check(note, Some(7), Some("127.0.0.1:27018"));
        check(note, None, Some("127.0.0.1:27018"));
        check(note, Some(8), None);
        let spaced = "{ \"pid\": 7, \"address\": \"[::1]:5\" }";
        check(spaced, Some(7), Some("[::1]:5"));
        check("{\"address\":5,\"pid\":7}", Some(7), None);
        check("{\"address\":\"127.0.0.1:1\"}", None, None);
        check("", None, None);
    }
}
