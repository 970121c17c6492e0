//! The wish to stop: asked for once, by a command or a signal, and seen by every thread.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::sync::lock;

/// Shared by all threads of a server.
#[derive(Debug, Default)]
pub struct Stop {
    requested: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Asks the server to stop; asking again does nothing.
    pub fn request(&self) {
        *lock(&self.requested) = true;
        self.changed.notify_all();
    }

    pub fn is_requested(&self) -> bool {
        *lock(&self.requested)
    }

    /// Waits until a stop is asked for, or for `time`; says whether it was.
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

    /// Asks for a stop at SIGTERM or SIGINT; a second signal ends the process at once.
    pub fn on_signals(self: &Arc<Stop>) -> io::Result<()> {
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        let stop = Arc::clone(self);
        thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                for signal in signals.forever() {
                    if stop.is_requested() {
                        std::process::exit(128 + signal);
                    }
                    stop.request();
                }
            })?;
        Ok(())
    }
}

/// Makes a listener that waits in `accept` look up: the standard library cannot interrupt it.
pub(crate) fn wake(listener: SocketAddr) {
    let mut address = listener;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    // A listener that cannot be reached does not wait any more.
    drop(TcpStream::connect_timeout(&address, Duration::from_secs(1)));
}
