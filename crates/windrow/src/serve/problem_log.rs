//! Logs failures of the engine's background work, each once per interval.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use windrow_collection::Error;
use windrow_document::doc;
use windrow_server::{Log, Severity};

/// The log for failures of the engine's background work. The engine reports them through a plain
/// function, which needs a global.
static LOG: OnceLock<Arc<Log>> = OnceLock::new();

/// Sets the log of the process. Only the first call has an effect.
pub fn set_log(log: Arc<Log>) {
    let _ = LOG.set(log);
}

/// The id of the log line about failed background work. MongoDB has no such event.
const ENGINE_PROBLEM_ID: i32 = 9_000_003;

/// Logs a failure of background work, unless the same one was logged a short time ago.
pub fn log_problem(what: &str, error: &Error) {
    static RECENT: Mutex<RecentProblems> = Mutex::new(RecentProblems(Vec::new()));
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let error = error.to_string();
    if !recent.add(what, &error, Instant::now()) {
        return;
    }
    let attr = doc! { "error": (error.clone()) };
    match LOG.get() {
        Some(log) => log.write(
            Severity::Error,
            "STORAGE",
            ENGINE_PROBLEM_ID,
            "engine",
            what,
            attr,
        ),
        None => eprintln!("{what}: {error}"),
    }
}

/// The problems that were logged in the last [`PROBLEM_INTERVAL`]. Background work is repeated
/// until it succeeds, for example a fold while the disk is full. A problem is logged once per
/// interval.
struct RecentProblems(Vec<RecentProblem>);

struct RecentProblem {
    what: String,
    error: String,
    logged: Instant,
}

const PROBLEM_INTERVAL: Duration = Duration::from_secs(10);

/// The maximum number of different problems that are logged per interval.
const RECENT_PROBLEMS_MAX: usize = 20;

impl RecentProblems {
    /// Records a problem. Returns `true` if it must be logged.
    fn add(&mut self, what: &str, error: &str, now: Instant) -> bool {
        let RecentProblems(recent) = self;
        recent.retain(|problem| now.duration_since(problem.logged) < PROBLEM_INTERVAL);
        let is_known = recent
            .iter()
            .any(|problem| problem.what == what && problem.error == error);
        if is_known || recent.len() >= RECENT_PROBLEMS_MAX {
            return false;
        }
        recent.push(RecentProblem {
            what: what.to_owned(),
            error: error.to_owned(),
            logged: now,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fold that failed for a second reason within ten seconds was not logged again.
    #[test]
    fn each_problem_is_logged_once_per_interval() {
        let mut recent = RecentProblems(Vec::new());
        let start = Instant::now();
        let mut add = |seconds, error: &str| {
            recent.add("a fold failed", error, start + Duration::from_secs(seconds))
        };
        assert!(add(0, "the disk is full"));
        assert!(!add(1, "the disk is full"));
        assert!(add(2, "a block is damaged"));
        assert!(!add(3, "the disk is full"));
        assert!(!add(4, "a block is damaged"));
        assert!(add(11, "the disk is full"));
        assert!(!add(11, "a block is damaged"));
        let logged = (0..100).filter(|number| add(30, &number.to_string()));
        assert_eq!(logged.count(), RECENT_PROBLEMS_MAX);
    }
}
