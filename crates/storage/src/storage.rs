use std::sync::Arc;

use crate::catalog::{Catalog, CatalogOptions, Loaded};
use crate::disk::Disk;
use crate::error::StorageError;
use crate::folder::open_folder;
use crate::log::{Log, LogOptions, Position};
use crate::runs::{Runs, RunsOptions};

#[derive(Clone, Copy, Debug, Default)]
pub struct StorageOptions {
    pub log: LogOptions,
    pub runs: RunsOptions,
    pub catalog: CatalogOptions,
}

/// An open data folder. It is ours until the last of the three is dropped.
pub struct Storage {
    pub log: Arc<Log>,
    pub runs: Arc<Runs>,
    pub catalog: Arc<Catalog>,
}

impl Storage {
    /// Opens the data folder that `disk` is, or makes one of an empty folder. Cuts a torn end of
    /// the log off; refuses damage.
    pub fn open(disk: Arc<dyn Disk>, options: StorageOptions) -> Result<Storage, StorageError> {
        let lock = Arc::new(open_folder(&disk)?);
        let mut loaded = Loaded::checkpoint(&disk)?;
        let needed = loaded.checkpointed();
        let apply = |position, payload: &[u8]| loaded.apply(position, payload);
        let log = Log::open(disk.clone(), options.log, lock.clone(), needed, apply)?;
        check_together(&disk, &log, loaded.checkpointed())?;
        let runs = Runs::open(disk.clone(), &options.runs, lock)?;
        let log = Arc::new(log);
        let catalog = Catalog::new(disk, options.catalog, log.clone(), loaded);
        Ok(Storage {
            log,
            runs: Arc::new(runs),
            catalog: Arc::new(catalog),
        })
    }

    /// Lets go of the log before `position`, as far as the catalog does not need it: makes a
    /// checkpoint of the catalog first where that frees something.
    pub fn drop_log_before(&self, position: Position) -> Result<(), StorageError> {
        if !self.log.can_drop_before(position) {
            return Ok(());
        }
        if self.catalog.checkpointed().next() < position {
            self.catalog.checkpoint()?;
        }
        self.log
            .drop_before(position.min(self.catalog.checkpointed().next()))
    }
}

/// The log must reach from the checkpoint on; if it does not, segments are missing.
fn check_together(
    disk: &Arc<dyn Disk>,
    log: &Log,
    checkpointed: Position,
) -> Result<(), StorageError> {
    let what = if log.written() < checkpointed {
        format!("it ends with record {}", log.written())
    } else if log.first() > checkpointed.next() {
        format!("it begins with record {}", log.first())
    } else {
        return Ok(());
    };
    let what = format!("{what}, but the catalog's checkpoint is of record {checkpointed}");
    Err(StorageError::damaged(disk.place("log"), what))
}
