//! Interrupts the commands of a request whose browser has disconnected.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

/// Tells the commands of a request to stop, by closing the connections on which they run. The
/// server interrupts a command when its client disconnects.
#[derive(Debug, Default)]
pub struct RequestInterrupt {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_interrupted: bool,
    sockets: Vec<Arc<UnixStream>>,
}

impl RequestInterrupt {
    /// Closes the connections of the request. Connections that are added later are closed at once.
    pub fn interrupt(&self) {
        let mut state = self.lock();
        state.is_interrupted = true;
        for socket in state.sockets.drain(..) {
            // The connection may already be closed.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Returns `true` if [`interrupt`](Self::interrupt) was called.
    pub fn is_interrupted(&self) -> bool {
        self.lock().is_interrupted
    }

    /// Adds a connection, which an interrupt closes.
    pub fn add_connection(&self, socket: &Arc<UnixStream>) {
        let mut state = self.lock();
        if state.is_interrupted {
            let _ = socket.shutdown(Shutdown::Both);
        } else {
            state.sockets.push(socket.clone());
        }
    }

    /// Removes a connection. Returns `false` if it may have been closed.
    pub fn remove_connection(&self, socket: &Arc<UnixStream>) -> bool {
        let mut state = self.lock();
        state.sockets.retain(|known| !Arc::ptr_eq(known, socket));
        !state.is_interrupted
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard that interrupts the request if it is dropped before it is disarmed.
#[derive(Debug)]
pub struct InterruptOnDrop(Option<Arc<RequestInterrupt>>);

impl InterruptOnDrop {
    /// Creates a guard for an interrupt.
    pub fn new(interrupt: Arc<RequestInterrupt>) -> InterruptOnDrop {
        InterruptOnDrop(Some(interrupt))
    }

    /// Drops the guard without an interrupt.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        if let Some(interrupt) = &self.0 {
            interrupt.interrupt();
        }
    }
}
