//! Work whose panic is a bug like others: the thread that does it goes on.

use std::panic::{AssertUnwindSafe, catch_unwind};

use windrow_invariant::{Bug, tolerate_bugs};

use crate::error::Error;

/// Does the work; a panic becomes [`Error::Bug`]. `what` names the work.
pub(crate) fn catch_panic<T>(
    what: &str,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(panicked(what)))
}

/// The error of work that has panicked. The panic itself has been reported, also where assertions make
/// panics of bugs.
#[cold]
pub(crate) fn panicked(what: &str) -> Error {
    Error::Bug(tolerate_bugs(|| {
        Bug::new(format!("{what} panicked: the log has the details"))
    }))
}
