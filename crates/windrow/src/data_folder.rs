//! Access to a data folder: opened in this process, or through the server that has it open.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use windrow_collection::{Engine, EngineOptions, Error, StorageError};
use windrow_storage::{MasterKey, RealDisk};

use crate::address_file::{self, ServerAddress};
use crate::command_line::Failure;
use crate::encryption;

/// The maximum time for which the lock of a dead process can remain. The process may have forked
/// just before: the child holds the lock until it executes its program.
const DEAD_OWNER_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum time that a command waits for another one.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval of attempts to take the lock.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The advice if another process holds the lock for longer.
const WAIT_UNTIL_ENDED: &str = "wait until it has ended";

/// A file that exists in every data folder.
const FORMAT_FILE: &str = "FORMAT";

/// An accessible data folder.
pub enum DataFolder {
    /// Open in this process.
    Local(Arc<Engine>),
    /// Open in this server.
    Server(ServerAddress),
}

impl DataFolder {
    /// Returns `true` if the folder contains a database. Opening a folder without one would create
    /// it.
    pub fn exists(folder: &Path) -> bool {
        folder.join(FORMAT_FILE).exists()
    }

    /// Opens the folder, or finds the server that has it open. Waits up to 10 s for other
    /// processes, because most commands end quickly.
    pub fn open(folder: &Path, memory_bytes: u64) -> Result<DataFolder, Failure> {
        let options = engine_options(memory_bytes, encryption::key_from_environment()?);
        DataFolder::open_with(folder, &options, BUSY_TIMEOUT).map_err(|error| match owner(&error) {
            Some(_) => Failure::runtime(format_args!("{error}; {WAIT_UNTIL_ENDED}")),
            None => Failure::runtime(error),
        })
    }

    /// Like [`open`](Self::open), with options of the engine. `busy_timeout` is the maximum time to
    /// wait for a process that is not a server.
    pub fn open_with(
        folder: &Path,
        options: &EngineOptions,
        busy_timeout: Duration,
    ) -> Result<DataFolder, Error> {
        let disk = Arc::new(RealDisk::new(folder)?);
        let opened = open_when_free(
            || Engine::open(disk.clone(), options.clone()),
            |owner| match owner {
                Some(process) if is_dead(process) => DEAD_OWNER_TIMEOUT.max(busy_timeout),
                Some(_) if address_file::read_address(folder, owner).is_some() => Duration::ZERO,
                Some(_) => busy_timeout,
                None => Duration::ZERO,
            },
        );
        opened.map(DataFolder::Local).or_else(|error| {
            let address = find_server_address(folder, &error);
            address.map(DataFolder::Server).ok_or(error)
        })
    }
}

/// Calls `open` until it succeeds. While another process holds the lock, waits for the time that
/// `wait_max` returns for this process. Its id is `None` if it is unknown.
pub fn open_when_free<T>(
    open: impl Fn() -> Result<T, Error>,
    wait_max: impl Fn(Option<u32>) -> Duration,
) -> Result<T, Error> {
    let started = Instant::now();
    loop {
        match open() {
            Err(Error::Storage(StorageError::InUse { owner, .. }))
                if started.elapsed() < wait_max(owner) =>
            {
                thread::sleep(CHECK_INTERVAL);
            }
            result => return result,
        }
    }
}

/// Returns the permissions of a folder if other users can access it.
pub fn mode_for_others(folder: &Path) -> Option<u32> {
    let mode = fs::metadata(folder).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

/// Returns engine options with this memory and, for an encrypted folder, its key.
pub fn engine_options(memory_bytes: u64, key: Option<Arc<MasterKey>>) -> EngineOptions {
    let mut options = EngineOptions::with_memory(memory_bytes);
    options.storage.encryption = key;
    options
}

/// Returns the process that has the folder open.
fn owner(error: &Error) -> Option<u32> {
    match error {
        Error::Storage(StorageError::InUse { owner, .. }) => *owner,
        _ => None,
    }
}

fn is_dead(process: u32) -> bool {
    let id = i32::try_from(process)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id) == Err(rustix::io::Errno::SRCH))
}

/// Returns the address of the server that has the folder open.
fn find_server_address(folder: &Path, error: &Error) -> Option<ServerAddress> {
    let Error::Storage(StorageError::InUse { owner, .. }) = error else {
        return None;
    };
    address_file::read_address(folder, *owner)
}
