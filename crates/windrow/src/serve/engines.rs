//! Opens the engines of a server: that of its data folder, or those of its data sets.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use windrow_collection::{Engine, EngineOptions, Error, StorageError};
use windrow_server::Log;
use windrow_storage::{Disk, RealDisk};

use super::options::Options;
use super::problem_log::log_problem;
use super::shared_store::{OpenedEngine, SharedDatabase, open_shared};
use crate::command_line::Failure;
use crate::data_folder::open_when_free;
use crate::encryption;

/// Exit codes of mongod: incompatible format of the data folder, unusable data folder.
const OTHER_FORMAT: u8 = 62;
const UNUSABLE_FOLDER: u8 = 100;

/// The time to wait for the lock of the data folder. A process that was just killed, or readers of
/// a closed data set, can hold it for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The source of an engine.
#[derive(Clone, Copy)]
pub struct EngineSource<'a> {
    pub folder: &'a Path,
    pub memory_bytes: u64,
    /// The database in an object store. `None` if the folder contains it.
    pub shared: Option<SharedDatabase<'a>>,
}

/// Opens an engine.
///
/// # Errors
/// Fails if the folder or the object store cannot be used.
pub fn open_engine(
    options: &Options,
    source: EngineSource<'_>,
    log: &Arc<Log>,
) -> Result<OpenedEngine, Failure> {
    let unusable = |error: StorageError| Failure::WithCode(UNUSABLE_FOLDER, error.to_string());
    let disk = RealDisk::new(source.folder).map_err(unusable)?;
    let mut engine_options = EngineOptions {
        on_problem: log_problem,
        build_priority: options.build_priority,
        snapshot_age_max: options.snapshot_age_max,
        history_bytes: options.history_bytes,
        ..EngineOptions::with_memory(source.memory_bytes)
    };
    engine_options.storage.encryption =
        encryption::find_key(options.encryption_key_file.as_deref())?;
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let open = || match source.shared {
        Some(database) => open_shared(
            database,
            disk.clone(),
            source.folder,
            engine_options.clone(),
            log,
        ),
        None => {
            let engine = Engine::open(disk.clone(), engine_options.clone())?;
            Ok(OpenedEngine {
                engine,
                follow: None,
            })
        }
    };
    open_when_free(open, |_| LOCK_TIMEOUT).map_err(|error| {
        let code = match &error {
            Error::Storage(StorageError::UnknownFormat { .. }) => OTHER_FORMAT,
            _ => UNUSABLE_FOLDER,
        };
        Failure::WithCode(code, error.to_string())
    })
}
