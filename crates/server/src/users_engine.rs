//! The engine with the users, roles and settings of a server: its own one, or that of the first
//! data set of a cluster.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use windrow_collection::Engine;
use windrow_wire::{CommandError, ErrorCode};

use crate::sync::lock;

/// The longest wait of a request for the first data set, which can be closed and opened again.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(30);

/// The engine of the first data set of a cluster. There is none while the set is opened again.
#[derive(Default)]
pub struct FirstEngine {
    state: Mutex<FirstState>,
    changed: Condvar,
}

#[derive(Default)]
enum FirstState {
    Open(Arc<Engine>),
    #[default]
    Opening,
    /// The server stops.
    Ended,
}

impl FirstEngine {
    /// Sets the engine, or that there is none.
    pub fn set(&self, engine: Option<Arc<Engine>>) {
        let mut state = lock(&self.state);
        if !matches!(*state, FirstState::Ended) {
            *state = engine.map_or(FirstState::Opening, FirstState::Open);
        }
        self.changed.notify_all();
    }

    /// Ends all waits for the engine: the server stops.
    pub fn end(&self) {
        *lock(&self.state) = FirstState::Ended;
        self.changed.notify_all();
    }

    /// Returns the engine, and waits for it if there is none.
    ///
    /// # Errors
    /// Fails if there is none for long.
    pub fn get(&self) -> Result<Arc<Engine>, CommandError> {
        let deadline = Instant::now() + OPEN_WAIT_MAX;
        let mut state = lock(&self.state);
        loop {
            if let FirstState::Open(engine) = &*state {
                return Ok(Arc::clone(engine));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || matches!(*state, FirstState::Ended) {
                let message = "the first data set, which has the users, is not open";
                return Err(CommandError::new(ErrorCode::NotPrimaryOrSecondary, message));
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The engine with the users of a server.
#[derive(Clone, Default)]
pub enum UsersEngine {
    /// In the engine of the server.
    #[default]
    Own,
    /// In the first data set.
    First(Arc<FirstEngine>),
}
