//! Signals of the operating system.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;
use windrow_document::doc;

use crate::auditing::{RotatedLogs, rotate_logs};
use crate::log::Severity;
use crate::state::State;

/// Handles the signals of the process from now on, in a thread:
///
/// - SIGTERM and SIGINT stop the server. A second one ends the process immediately.
/// - SIGHUP reads the files of TLS again and calls `reload`. If the terminal of the server was
///   closed, it stops the server.
/// - SIGUSR1 rotates the log of the server and the audit log.
pub(crate) fn handle_signals(
    state: &Arc<State>,
    mut reload: impl FnMut() + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1])?;
    let state = Arc::clone(state);
    let had_terminal = io::stdin().is_terminal();
    let run = move || {
        for signal in signals.forever() {
            match signal {
                SIGUSR1 => rotate_log(&state),
                SIGHUP if !had_terminal || io::stdin().is_terminal() => {
                    rotate_certificates(&state);
                    reload();
                }
                _ if state.stop.is_requested() => std::process::exit(128 + signal),
                _ => state.stop.request(),
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(run)?;
    Ok(())
}

fn rotate_log(state: &State) {
    let log = &state.services.log;
    if let Err(error) = rotate_logs(state, None, RotatedLogs::All) {
        let attr = doc! { "error": (error.to_string()) };
        let message = "The log cannot be rotated";
        log.write(Severity::Error, "CONTROL", 23_166, "signals", message, attr);
    }
}

fn rotate_certificates(state: &State) {
    // The outcome is in the log.
    let _ = state.rotate_certificates("signals");
}
