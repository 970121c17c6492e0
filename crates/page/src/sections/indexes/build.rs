//! Builds that go on when their page is left.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use windrow_document::DocumentBuf;

use crate::error::PageError;
use crate::request::Request;

/// A build may take so long.
const BUILD_TIME_MAX: Duration = Duration::from_secs(7 * 86_400);
/// The page waits so long for a build. Builds of small collections are ready then, and mistakes found.
const WAIT_MAX: Duration = Duration::from_millis(1_500);

/// Runs a command that builds an index. Returns what the address of the page says of it: `created`, or
/// `started` if the build takes longer than the page waits.
///
/// # Errors
/// Fails with the server's sentence.
pub fn run_build(request: &Request, command: DocumentBuf) -> Result<&'static str, PageError> {
    let mut database = request.lasting_database()?;
    database.set_time_max(BUILD_TIME_MAX);
    let (sender, built) = channel();
    let thread = thread::Builder::new().name("page build".into());
    let started = thread.spawn(move || {
        let result = database.run(command);
        // The page may have stopped waiting. The log of the server has the result.
        let _ = sender.send(result);
    });
    started.map_err(|error| PageError::unavailable(&error))?;
    match built.recv_timeout(WAIT_MAX) {
        Ok(result) => result.map(|_| "created"),
        Err(RecvTimeoutError::Timeout) => Ok("started"),
        Err(error) => Err(PageError::unavailable(&error)),
    }
}
