//! [`ComparedLog`]: up to where the local log is known to be equal to the shared one.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::Disk;
use crate::error::StorageError;
use crate::local_state::{ComparedObject, Id, LocalState};
use crate::log::Log;
use crate::position::Position;

/// Saves in the file STORE from where on the next start compares the local log with the shared one.
/// The local log is needed from there on.
pub(crate) struct ComparedLog {
    log: Arc<Log>,
    disk: Arc<dyn Disk>,
    state: Mutex<LocalState>,
}

impl ComparedLog {
    pub fn new(log: Arc<Log>, disk: Arc<dyn Disk>, state: LocalState) -> ComparedLog {
        ComparedLog {
            log,
            disk,
            state: Mutex::new(state),
        }
    }

    /// The id of this server.
    pub fn server(&self) -> Id {
        self.state.lock().server
    }

    /// Returns the first position from which the local log is needed.
    pub fn needed_from(&self) -> Position {
        let compared = self.state.lock().compared;
        compared.map_or(Position::ZERO, |object| object.first)
    }

    /// Saves that the local log was compared up to `object`. The next start reads that object
    /// again, because its header names the server that wrote it.
    ///
    /// # Errors
    /// Fails if the local log cannot be synced or the file cannot be replaced.
    pub fn save(&self, object: ComparedObject) -> Result<(), StorageError> {
        let first = object.first;
        self.log.sync(first.previous().min(self.log.written()))?;
        let mut state = self.state.lock();
        state.compared = Some(object);
        state.save(&self.disk)
    }

    /// Saves that the copy is not whole. The next start loads it again.
    ///
    /// # Errors
    /// Fails if the file cannot be replaced.
    pub fn forget(&self) -> Result<(), StorageError> {
        let mut state = self.state.lock();
        state.compared = None;
        state.save(&self.disk)
    }
}
