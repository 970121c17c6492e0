//! Ends the commands of a request whose browser has gone.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

/// Ends the commands of a request. The server interrupts a command whose client has disconnected, so
/// the connections are closed.
#[derive(Debug, Default)]
pub struct Cancellation {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    is_cancelled: bool,
    sockets: Vec<Arc<UnixStream>>,
}

impl Cancellation {
    /// Closes the connections of the request, now and from now on.
    pub fn cancel(&self) {
        let mut state = self.lock();
        state.is_cancelled = true;
        for socket in state.sockets.drain(..) {
            // The connection may already be closed.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Returns `true` if the browser has gone.
    pub fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Closes this connection, too, when the browser goes.
    pub fn watch(&self, socket: &Arc<UnixStream>) {
        let mut state = self.lock();
        if state.is_cancelled {
            let _ = socket.shutdown(Shutdown::Both);
        } else {
            state.sockets.push(socket.clone());
        }
    }

    /// Does not close this connection any more. Returns `false` if it may have been closed.
    pub fn release(&self, socket: &Arc<UnixStream>) -> bool {
        let mut state = self.lock();
        state.sockets.retain(|known| !Arc::ptr_eq(known, socket));
        !state.is_cancelled
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Cancels when it is dropped before it is disarmed.
#[derive(Debug)]
pub struct CancelOnDrop(Option<Arc<Cancellation>>);

impl CancelOnDrop {
    /// Cancels this one.
    pub fn new(cancellation: Arc<Cancellation>) -> CancelOnDrop {
        CancelOnDrop(Some(cancellation))
    }

    /// Does not cancel any more.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancellation) = &self.0 {
            cancellation.cancel();
        }
    }
}
