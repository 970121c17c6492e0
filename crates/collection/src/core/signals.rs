//! The signals between background threads and those that wait for them.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The signals that wake background threads, report their progress and stop them.
#[derive(Default)]
pub(crate) struct BackgroundSignals {
    pub fold: Signal,
    pub folded: Signal,
    pub merge: Signal,
    pub merged: Signal,
    pub create_entries: Signal,
    pub entries_created: Signal,
    /// Raised when shares of builds were given or taken back.
    pub shares: Signal,
    pub closing: AtomicBool,
}

/// An event that one thread signals and others wait for.
#[derive(Default)]
pub(crate) struct Signal {
    called: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    pub fn raise(&self) {
        let mut called = self.called.lock();
        if !*called {
            *called = true;
            self.changed.notify_all();
        }
    }

    /// Waits for the next signal, but at most `at_most`. A signal since the last wait counts.
    pub fn wait(&self, at_most: Duration) {
        let mut called = self.called.lock();
        if !*called {
            self.changed.wait_for(&mut called, at_most);
        }
        *called = false;
    }
}
