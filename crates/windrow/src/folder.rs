//! A data folder for a command that wants its documents: opened here, or by asking the server that
//! has it open.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use windrow_collection::{Engine, EngineOptions, Error, StorageError};
use windrow_storage::RealDisk;

use crate::command_line::Failure;
use crate::{bytes, memory};

/// How a data folder can be reached.
pub enum Opened {
    Here(Arc<Engine>),
    ByServer(SocketAddr),
}

/// Opens the folder, or finds the server that has.
pub fn open(folder: &Path, memory_bytes: u64) -> Result<Opened, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Run(error.to_string());
    let disk = RealDisk::new(folder).map_err(|error| failed(&error))?;
    match Engine::open(Arc::new(disk), EngineOptions::with_memory(memory_bytes)) {
        Ok(engine) => Ok(Opened::Here(engine)),
        Err(error @ Error::Storage(StorageError::InUse { .. })) => match server_of(folder) {
            Some(address) => Ok(Opened::ByServer(address)),
            None => Err(failed(&error)),
        },
        Err(error) => Err(failed(&error)),
    }
}

/// Where the server listens that has the folder open, by the note that it leaves there.
fn server_of(folder: &Path) -> Option<SocketAddr> {
    let note = fs::read_to_string(folder.join("server.json")).ok()?;
    address_in(&note)
}

/// The address in a note: `{"address": "127.0.0.1:27017", "pid": 1}`.
fn address_in(note: &str) -> Option<SocketAddr> {
    let (_, behind_name) = note.split_once("\"address\"")?;
    behind_name.split('"').nth(1)?.parse().ok()
}

/// The value of `--memory`, in bytes.
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
    fn a_note_names_an_address() {
        let check = |note: &str, expected: Option<&str>| {
            let expected = expected.map(|address| address.parse().unwrap());
            assert_eq!(address_in(note), expected, "{note}");
        };
        check(
            "{\"address\": \"127.0.0.1:27018\", \"pid\": 7}\n",
            Some("127.0.0.1:27018"),
        );
        check(
            "{ \"pid\" : 7, \"address\" : \"[::1]:5\" }",
            Some("[::1]:5"),
        );
        check("{\"address\": 5}", None);
        check("", None);
    }
}
