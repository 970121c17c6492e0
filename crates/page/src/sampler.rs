//! The thread that samples `serverStatus` with the program's own credentials.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use windrow_client::ClientError;
use windrow_document::doc;

use crate::connection::Connection;
use crate::services::ConnectionEnds;
use crate::site::Site;

/// The sampling interval.
pub const INTERVAL: Duration = Duration::from_secs(2);
/// The maximum pause after a connection failed.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Takes samples until it is dropped.
#[derive(Debug)]
pub struct Sampler {
    _stop: Sender<()>,
}

impl Sampler {
    /// Starts the thread. `page` is the address on which the page listens.
    ///
    /// # Errors
    /// Fails if the thread cannot be created.
    pub fn start(site: Arc<Site>, page: SocketAddr) -> io::Result<Sampler> {
        let (stop, stopped) = channel();
        let ends = ConnectionEnds {
            browser: page,
            page,
            is_encrypted: false,
        };
        let thread = thread::Builder::new().name("page samples".into());
        thread.spawn(move || run(&site, ends, &stopped))?;
        Ok(Sampler { _stop: stop })
    }
}

/// Connects, and reconnects after a connection has failed.
fn run(site: &Site, ends: ConnectionEnds, stopped: &Receiver<()>) {
    let mut pause = INTERVAL;
    loop {
        match take_samples(site, ends, stopped, &mut pause) {
            Ok(()) => return,
            Err(error) => site.history.record_problem(error.to_string()),
        }
        if is_stopped(stopped, pause) {
            return;
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Takes samples on one connection until the page stops or the connection fails.
fn take_samples(
    site: &Site,
    ends: ConnectionEnds,
    stopped: &Receiver<()>,
    pause: &mut Duration,
) -> Result<(), ClientError> {
    let login = site.services.own_login.as_ref();
    let mut connection = Connection::open(&site.services, login, ends)?;
    let command = doc! {
        "serverStatus": 1, "opLatencies": { "histograms": true }, "metrics": 0, "$db": "admin",
    };
    loop {
        let status = connection.client.run(command.as_document(), None)?.to_buf();
        site.history.record(status);
        *pause = INTERVAL;
        if is_stopped(stopped, INTERVAL) {
            return Ok(());
        }
    }
}

/// Waits for the pause. Returns `true` if the page stops.
fn is_stopped(stopped: &Receiver<()>, pause: Duration) -> bool {
    stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout)
}
