//! The request to stop the server. A command or a signal sets it, and every thread reads it.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::sync::lock;

/// The request to stop. All threads of a server share it.
#[derive(Debug, Default)]
pub struct Stop {
    requested: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Requests a stop. Further requests have no effect.
    pub fn request(&self) {
        *lock(&self.requested) = true;
        self.changed.notify_all();
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

    /// Requests a stop at SIGTERM or SIGINT. A second signal ends the process immediately.
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

/// Wakes a listener that waits in `accept`, because the standard library cannot interrupt it.
pub(crate) fn wake(listener: SocketAddr) {
    let mut address = listener;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    // A listener that cannot be reached is not waiting any more.
    drop(TcpStream::connect_timeout(&address, Duration::from_secs(1)));
}
