//! Errors. Each variant says whose fault it is.

use std::fmt;

/// An error. Its text is a sentence for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The caller's: a configuration, a payload or a token breaks a rule.
    Invalid {
        /// MongoDB's error code.
        code: i32,
        /// The whole message.
        message: String,
    },
    /// The caller's: a part of the protocol that is not supported.
    Unsupported(String),
    /// The data's: a document of a state collection has no valid form.
    Damaged(String),
    /// The machine's: the operating system returns no random numbers.
    NoRandomNumbers(String),
}

/// MongoDB's error codes.
pub(crate) mod code {
    pub const BAD_VALUE: i32 = 2;
    pub const TYPE_MISMATCH: i32 = 14;
    pub const INVALID_BSON: i32 = 22;
    pub const MISSING_FIELD: i32 = 40_414;
    pub const UNKNOWN_FIELD: i32 = 40_415;
    pub const DUPLICATE_FIELD: i32 = 40_413;
}

impl Error {
    pub(crate) fn invalid(code: i32, message: impl Into<String>) -> Error {
        Error::Invalid {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn bad_value(message: impl Into<String>) -> Error {
        Error::invalid(code::BAD_VALUE, message)
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Error {
        Error::Damaged(what.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid { message, .. } | Error::Unsupported(message) => {
                formatter.write_str(message)
            }
            Error::Damaged(what) => {
                write!(
                    formatter,
                    "a state collection of encrypted fields is damaged: {what}"
                )
            }
            Error::NoRandomNumbers(error) => {
                write!(
                    formatter,
                    "the operating system returns no random numbers: {error}"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
