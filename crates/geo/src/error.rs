//! What is wrong with a shape or a condition.

use std::fmt;

/// MongoDB's number for the error, mostly 2 BadValue, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: i32,
    pub message: String,
}

impl Error {
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
        }
    }

    /// 2 BadValue.
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(2, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
