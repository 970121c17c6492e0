//! Runs of `windrow index` that are started from the page, as separate processes.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use windrow_page::RunProgress;

use crate::progress_line::parse_line;

/// The active run, and the error of the previous one. Cheap to clone.
#[derive(Clone, Default)]
pub struct PageRuns {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    running: Option<RunProcess>,
    problem: Option<String>,
}

struct RunProcess {
    process: Child,
    started: Instant,
    output: Arc<Mutex<Output>>,
}

/// The output of a run.
#[derive(Default)]
struct Output {
    progress: RunProgress,
    /// The last line that is not progress.
    message: String,
}

/// The maximum length of a line. Longer lines are truncated.
const LINE_BYTES_MAX: usize = 64 << 10;

impl PageRuns {
    /// Starts a run, which writes its progress as lines to standard error.
    ///
    /// # Errors
    /// Fails if a run is active, or if the process cannot be started.
    pub fn start(&self, mut command: Command) -> Result<(), String> {
        let mut state = self.lock();
        if state.running.is_some() {
            return Err("a run is already active".to_owned());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.stderr(Stdio::piped()).spawn();
        let mut process = process.map_err(|error| format!("the run cannot start: {error}"))?;
        let output = Arc::new(Mutex::new(Output::default()));
        if let Some(lines) = process.stderr.take() {
            let output = output.clone();
            // The thread ends with the process.
            thread::spawn(move || read_lines(lines, &output));
        }
        state.problem = None;
        state.running = Some(RunProcess {
            process,
            started: Instant::now(),
            output,
        });
        Ok(())
    }

    /// Returns the progress of the active run.
    pub fn progress(&self) -> Option<RunProgress> {
        let state = self.lock();
        let running = state.running.as_ref()?;
        let output = running.output.lock();
        let progress = output
            .unwrap_or_else(PoisonError::into_inner)
            .progress
            .clone();
        Some(RunProgress {
            elapsed: running.started.elapsed(),
            can_stop: true,
            ..progress
        })
    }

    /// Stops the active run. The next run continues it. Returns `false` if there is none.
    pub fn stop(&self) -> bool {
        let mut state = self.lock();
        let Some(mut running) = state.running.take() else {
            return false;
        };
        // Fails if the process has already exited.
        let _ = running.process.kill();
        let _ = running.process.wait();
        true
    }

    /// Returns the error of the newest run, if it failed.
    pub fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// Returns the state. Removes a run that has ended.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = match &mut state.running {
            Some(running) => running.process.try_wait().transpose(),
            None => None,
        };
        if let Some(status) = ended {
            let has_failed = !status.is_ok_and(|status| status.success());
            state.problem = state.running.take().and_then(|run| {
                let output = run.output.lock();
                let message = output
                    .unwrap_or_else(PoisonError::into_inner)
                    .message
                    .clone();
                has_failed.then_some(message)
            });
        }
        state
    }
}

fn read_lines(lines: ChildStderr, output: &Mutex<Output>) {
    for line in BufReader::new(lines).split(b'\n').map_while(Result::ok) {
        let line = line.get(..LINE_BYTES_MAX).unwrap_or(&line);
        let line = String::from_utf8_lossy(line);
        let mut output = output.lock().unwrap_or_else(PoisonError::into_inner);
        match parse_line(&line) {
            Some(progress) => output.progress = progress,
            None => output.message = line.trim_start_matches("windrow: ").to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn until(condition: impl Fn() -> bool) {
        let began = Instant::now();
        while !condition() {
            assert!(began.elapsed() < Duration::from_secs(30));
            thread::sleep(Duration::from_millis(5));
        }
    }

    const LINE: &str = r#"{"files_total":9,"files_read":4,"bytes_total":1,"bytes_read":1,"documents":4,"failures":0,"elapsed":1.0,"stages":[]}"#;

    #[test]
    fn runs_have_progress_until_they_are_stopped() {
        let runs = PageRuns::default();
        assert!(runs.progress().is_none() && !runs.stop());
        runs.start(shell(&format!("echo '{LINE}' >&2; exec sleep 60")))
            .unwrap();
        assert!(runs.start(shell("true")).is_err());
        until(|| runs.progress().is_some_and(|it| it.files_read == 4));
        assert!(runs.stop() && runs.progress().is_none());
        assert_eq!(runs.problem(), None);
    }

    #[test]
    fn failed_runs_say_why() {
        let runs = PageRuns::default();
        let script =
            format!("echo '{LINE}' >&2; echo 'windrow: the disk is full' >&2; sleep 0.1; exit 1");
        runs.start(shell(&script)).unwrap();
        until(|| runs.progress().is_none());
        assert_eq!(runs.problem().as_deref(), Some("the disk is full"));
        runs.start(shell("true")).unwrap();
        until(|| runs.progress().is_none());
        assert_eq!(runs.problem(), None);
        let missing = runs.start(Command::new("/nothing/windrow")).unwrap_err();
        assert!(missing.starts_with("the run cannot start"));
    }
}
