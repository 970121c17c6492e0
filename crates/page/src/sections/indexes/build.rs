//! Index builds that continue when the browser leaves the page.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use windrow_document::DocumentBuf;

use crate::error::PageError;
use crate::request::Request;

/// The time limit of a build.
const BUILD_TIME_MAX: Duration = Duration::from_secs(7 * 86_400);
/// The time that the page waits for a build. Builds of small collections end within it, and errors
/// are reported.
const WAIT_MAX: Duration = Duration::from_millis(1_500);

/// Runs a command that builds an index. Returns the value of `done` in the address of the page:
/// `created`, or `started` if the build takes longer than the page waits.
///
/// # Errors
/// Fails with the server's message.
pub fn run_build(request: &Request, command: DocumentBuf) -> Result<&'static str, PageError> {
    let mut database = request.lasting_database()?;
    database.set_time_max(BUILD_TIME_MAX);
    let (sender, built) = channel();
    let thread = thread::Builder::new().name("page build".into());
    let started = thread.spawn(move || {
        let result = database.run(command);
        // Fails if the page no longer waits. The result is in the server log.
        let _ = sender.send(result);
    });
    started.map_err(|error| PageError::unavailable(&error))?;
    match built.recv_timeout(WAIT_MAX) {
        Ok(result) => result.map(|_| "created"),
        Err(RecvTimeoutError::Timeout) => Ok("started"),
        Err(error) => Err(PageError::unavailable(&error)),
    }
}
