//! The request to stop the server. A command or a signal sets it, and every thread reads it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sync::lock;

/// The request to stop. All threads of a server share it.
#[derive(Debug, Default)]
pub struct Stop {
    requested: Mutex<bool>,
    step_down: Mutex<Option<Duration>>,
    changed: Condvar,
}

impl Stop {
    /// Requests a stop. Further requests have no effect.
    pub fn request(&self) {
        *lock(&self.requested) = true;
        self.changed.notify_all();
    }

    /// Requests a stop, after which the process starts again as a follower. It must not become the
    /// primary for `period`.
    pub fn request_step_down(&self, period: Duration) {
        *lock(&self.step_down) = Some(period);
        self.request();
    }

    /// Returns for which time the process must not become the primary after it has started again.
    /// `None` if it ends.
    pub fn step_down(&self) -> Option<Duration> {
        *lock(&self.step_down)
    }

    /// Returns `true` if a stop was requested.
    pub fn is_requested(&self) -> bool {
        *lock(&self.requested)
    }

    /// Waits until a stop is requested, or for `time`. Returns `true` if it was requested.
    pub fn wait(&self, time: Duration) -> bool {
        let deadline = Instant::now() + time;
        let mut requested = lock(&self.requested);
        while !*requested {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            requested = self
                .changed
                .wait_timeout(requested, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *requested
    }
}
