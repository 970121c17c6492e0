//! Broken invariants: states that Windrow's own code rules out.
//!
//! A function that meets such a state returns a [`Bug`] and does not continue with a default. The
//! operation is rolled back, its client receives error 8, and the server continues. The log of
//! records refuses further writes if the bug is on its write path.
//!
//! Not for: invalid requests, damaged files and failures of the machine. Each crate's error has
//! variants for those.
//!
//! ```
//! use windrow_invariant::{Bug, tolerate_bugs};
//!
//! fn last(entries: &[u32]) -> Result<u32, Bug> {
//!     let last = entries.last().copied();
//!     last.ok_or_else(|| Bug::new("a section has no entries"))
//! }
//!
//! assert_eq!(last(&[1, 2]), Ok(2));
//! // With debug assertions, `Bug::new` panics unless the test expects the bug.
//! let bug = tolerate_bugs(|| last(&[]).unwrap_err());
//! assert_eq!(bug.message(), "a section has no entries");
//! ```
#![deny(missing_docs)]

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::sync::OnceLock;

/// A broken invariant. Creating one reports it, see [`set_reporter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    message: String,
}

impl Bug {
    /// Reports the broken invariant with a backtrace. `message` is a sentence that states what was
    /// found, with its values.
    ///
    /// # Panics
    /// Panics in builds with debug assertions, except inside [`tolerate_bugs`].
    #[track_caller]
    pub fn new(message: impl Into<String>) -> Bug {
        let message = message.into();
        let location = Location::caller();
        let tolerated = TOLERATED.get();
        if cfg!(debug_assertions) && !tolerated {
            panic!("broken invariant at {location}: {message}");
        }
        let bug = Bug { message };
        let report = Report {
            bug: &bug,
            location,
            backtrace: &Backtrace::force_capture(),
        };
        match REPORTER.get() {
            Some(reporter) => reporter(&report),
            None if tolerated => {}
            None => eprintln!("{report}"),
        }
        bug
    }

    /// What was found.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "broken invariant: {}", self.message)
    }
}

impl std::error::Error for Bug {}

/// What a reporter receives.
pub struct Report<'a> {
    /// The bug.
    pub bug: &'a Bug,
    /// The line of code that found it.
    pub location: &'a Location<'a>,
    /// The calls that led there.
    pub backtrace: &'a Backtrace,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            bug,
            location,
            backtrace,
        } = self;
        write!(formatter, "{bug} at {location}\n{backtrace}")
    }
}

/// Writes a report to the server's log.
pub type Reporter = Box<dyn Fn(&Report<'_>) + Send + Sync>;

static REPORTER: OnceLock<Reporter> = OnceLock::new();

/// Sets the process-wide reporter. Without one, reports go to standard error. Returns `false` if a
/// reporter was set before; the first one stays.
pub fn set_reporter(reporter: Reporter) -> bool {
    REPORTER.set(reporter).is_ok()
}

thread_local! {
    static TOLERATED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a test that breaks an invariant on purpose: on this thread, [`Bug::new`] returns in builds
/// with debug assertions too.
pub fn tolerate_bugs<T>(run: impl FnOnce() -> T) -> T {
    let _reset = Reset(TOLERATED.replace(true));
    run()
}

/// Restores the previous state, after a panic too.
struct Reset(bool);

impl Drop for Reset {
    fn drop(&mut self) {
        TOLERATED.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_bug_is_reported_with_its_place() {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&reports);
        assert!(set_reporter(Box::new(move |report| {
            sink.lock().unwrap().push(report.to_string());
        })));
        assert!(!set_reporter(Box::new(|_| {})));
        let bug = tolerate_bugs(|| Bug::new("2 sections cover record 7"));
        assert_eq!(
            bug.to_string(),
            "broken invariant: 2 sections cover record 7"
        );
        let reports = reports.lock().unwrap();
        let expected = "broken invariant: 2 sections cover record 7 at ";
        // The other test reports to the same sink.
        let report = reports.iter().find(|report| report.starts_with(expected));
        let first_line = report.unwrap().lines().next().unwrap();
        assert!(first_line.contains("lib.rs"), "{first_line}");
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_bug_panics_in_debug_builds() {
        let found = std::panic::catch_unwind(|| Bug::new("no entries"));
        assert!(found.is_err());
        tolerate_bugs(|| Bug::new("no entries"));
        assert!(std::panic::catch_unwind(|| Bug::new("no entries")).is_err());
    }
}
