//! The error of a parse or of an evaluation.

use std::fmt;

use windrow_interrupt::Interrupted;
use windrow_invariant::Bug;

/// MongoDB's error number and a message. The numbers are part of the documented language, so the
/// code that implements a rule also sets the number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// MongoDB's error number.
    pub code: i32,
    /// The message for the client.
    pub message: String,
    /// `true` if constant operands caused the error, before any document was read.
    pub is_constant_error: bool,
    bug: Option<Bug>,
}

impl Error {
    /// Creates an error with MongoDB's error number.
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
            is_constant_error: false,
            bug: None,
        }
    }

    /// Returns the broken invariant that caused the error, if there is one. Errors of other crates
    /// keep it as a variant of their own.
    pub fn bug(&self) -> Option<&Bug> {
        self.bug.as_ref()
    }

    pub(crate) fn into_constant_error(self) -> Error {
        Error {
            is_constant_error: true,
            ..self
        }
    }

    /// Error 2, BadValue.
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(2, message)
    }

    /// Error 9, FailedToParse.
    pub fn failed_to_parse(message: impl Into<String>) -> Error {
        Error::new(9, message)
    }

    /// Error 14, TypeMismatch.
    pub fn type_mismatch(message: impl Into<String>) -> Error {
        Error::new(14, message)
    }

    /// Error 31264 of an operator that runs JavaScript. Windrow has no JavaScript engine.
    pub fn no_scripts(operator: &str) -> Error {
        let message = "Cannot run server-side javascript without the javascript engine enabled";
        Error::new(31_264, format!("{message}: {operator}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::new(interrupted.code(), interrupted.into_message())
    }
}

impl From<windrow_geo::Error> for Error {
    fn from(error: windrow_geo::Error) -> Error {
        Error::new(error.code, error.message)
    }
}

/// Becomes error 8, UnknownError.
impl From<Bug> for Error {
    fn from(bug: Bug) -> Error {
        Error {
            bug: Some(bug.clone()),
            ..Error::new(8, bug.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_invariant::tolerate_bugs;

    #[test]
    fn the_error_of_a_bug_keeps_it() {
        let bug = tolerate_bugs(|| Bug::new("no entries"));
        let error = Error::from(bug.clone());
        assert_eq!((error.code, error.bug()), (8, Some(&bug)));
        assert_eq!(Error::new(8, "a failure").bug(), None);
    }
}
