//! The data sets of this server that are open.

use std::sync::{Arc, Mutex};

use crate::placement::DataSetId;
use crate::state::State;
use crate::sync::lock;

/// The states of the data sets of a server. A set that is opened again has none for a while.
#[derive(Clone)]
pub struct Members(Arc<[Mutex<Option<Arc<State>>>]>);

impl Members {
    pub fn new(count: usize) -> Members {
        Members((0..count).map(|_| Mutex::default()).collect())
    }

    pub fn get(&self, set: DataSetId) -> Option<Arc<State>> {
        lock(self.0.get(set.0)?).clone()
    }

    pub fn set(&self, set: DataSetId, state: Option<Arc<State>>) {
        if let Some(slot) = self.0.get(set.0) {
            *lock(slot) = state;
        }
    }

    /// Returns the states of all sets that are open.
    pub fn open(&self) -> Vec<Arc<State>> {
        self.0
            .iter()
            .filter_map(|slot| lock(slot).clone())
            .collect()
    }
}
