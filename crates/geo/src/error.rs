//! The error of an invalid shape, condition or distance.

use std::fmt;

use windrow_interrupt::Interrupted;

/// An error in a shape, a condition or a distance. It is always the caller's fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// MongoDB's error code. Most are 2, `BadValue`.
    pub code: i32,
    /// A sentence with the offending value.
    pub message: String,
}

impl Error {
    /// Creates an error with one of MongoDB's codes.
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
        }
    }

    /// Creates an error with code 2, `BadValue`.
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(2, message)
    }
}

/// The work on a shape was stopped.
impl From<Interrupted> for Error {
    fn from(interrupted: Interrupted) -> Error {
        Error::new(interrupted.code(), interrupted.into_message())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
