//! Turns a panic into an error, so the thread continues.

use std::panic::{AssertUnwindSafe, catch_unwind};

use windrow_invariant::{Bug, tolerate_bugs};

use crate::error::Error;

/// Runs the work. A panic becomes [`Error::Bug`]; `what` names the work in its text.
pub(crate) fn catch_panic<T>(
    what: &str,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked(what)))
}

/// Returns the error of work that panicked. The panic hook has reported the panic itself, so this
/// does not assert again.
#[cold]
pub(crate) fn panicked(what: &str) -> Error {
    Error::Bug(tolerate_bugs(|| {
        Bug::new(format!("{what} panicked: the log has the details"))
    }))
}
