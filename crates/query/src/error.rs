//! The errors of queries, by whose fault they are.

use std::fmt;

use windrow_collection::StorageError;
use windrow_interrupt::Interrupted;
use windrow_invariant::Bug;

/// The error of a query. Its text is a sentence for the caller.
#[derive(Clone, Debug)]
pub enum Error {
    /// The caller's fault: the query breaks a rule of the language, or fails on the values of the
    /// documents. Carries MongoDB's code.
    Language(windrow_mql::Error),
    /// The operation was killed or exceeded its time limit.
    Interrupted(Interrupted),
    /// A bug in Windrow.
    Bug(Bug),
    /// An error of the collection or of the machine.
    Collection(windrow_collection::Error),
}

impl Error {
    /// An error of the caller, with MongoDB's code.
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error::Language(windrow_mql::Error::new(code, message))
    }

    /// The error for an index entry that cannot have been written as it is.
    pub(crate) fn damaged_entry(index: &str, what: &str) -> Error {
        Error::Collection(windrow_collection::Error::Storage(StorageError::Damaged {
            place: format!("an entry of the index '{index}'"),
            what: what.to_owned(),
        }))
    }

    /// MongoDB's code, if the error has one.
    pub fn code(&self) -> Option<i32> {
        match self {
            Error::Language(error) => Some(error.code),
            Error::Interrupted(interrupted) => Some(interrupted.code()),
            Error::Bug(_) | Error::Collection(_) => None,
        }
    }

    /// Returns `true` if the error comes from an expression whose operands are constants.
    pub fn is_constant_error(&self) -> bool {
        matches!(self, Error::Language(error) if error.is_constant_error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Language(error) => error.fmt(formatter),
            Error::Interrupted(interrupted) => interrupted.fmt(formatter),
            Error::Bug(bug) => bug.fmt(formatter),
            Error::Collection(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for Error {}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::Interrupted(interrupted)
    }
}

impl From<Bug> for Error {
    fn from(bug: Bug) -> Error {
        Error::Bug(bug)
    }
}

impl From<windrow_mql::Error> for Error {
    fn from(error: windrow_mql::Error) -> Error {
        match error.bug() {
            Some(bug) => Error::Bug(bug.clone()),
            None => Error::Language(error),
        }
    }
}

impl From<windrow_collection::Error> for Error {
    fn from(error: windrow_collection::Error) -> Error {
        match error {
            windrow_collection::Error::Language(error) => Error::from(error),
            windrow_collection::Error::Bug(bug) => Error::Bug(bug),
            other => Error::Collection(other),
        }
    }
}
