//! Access to a data folder: opened in this process, or through the server that has it open.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use windrow_collection::{Engine, EngineOptions, Error, StorageError};
use windrow_storage::RealDisk;

use crate::address_file;
use crate::command_line::Failure;

/// An accessible data folder.
pub enum DataFolder {
    /// Open in this process.
    Local(Arc<Engine>),
    /// Open in a server at this address.
    Server(SocketAddr),
}

impl DataFolder {
    /// Opens the folder, or finds the server that has it open.
    pub fn open(folder: &Path, memory_bytes: u64) -> Result<DataFolder, Failure> {
        let disk = RealDisk::new(folder).map_err(Failure::runtime)?;
        match Engine::open(Arc::new(disk), EngineOptions::with_memory(memory_bytes)) {
            Ok(engine) => Ok(DataFolder::Local(engine)),
            Err(error) => match find_server_address(folder, &error) {
                Some(address) => Ok(DataFolder::Server(address)),
                None => Err(Failure::runtime(error)),
            },
        }
    }
}

/// Returns the address of the server that has the folder open.
fn find_server_address(folder: &Path, error: &Error) -> Option<SocketAddr> {
    let Error::Storage(StorageError::InUse { owner, .. }) = error else {
        return None;
    };
    address_file::read_address(folder, *owner)
}
