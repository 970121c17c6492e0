//! What is wrong with a query, an update or a pipeline, or with the values it met.

use std::fmt;

use windrow_invariant::Bug;

/// MongoDB's number for the error and a sentence. The numbers are part of the documented language,
/// so they are given where the rule is that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: i32,
    pub message: String,
    /// Operands that are constants came to it, before any document was seen.
    pub is_of_constants: bool,
}

impl Error {
    pub fn new(code: i32, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
            is_of_constants: false,
        }
    }

    pub(crate) fn of_constants(self) -> Error {
        Error {
            is_of_constants: true,
            ..self
        }
    }

    /// 2 BadValue.
    pub fn bad_value(message: impl Into<String>) -> Error {
        Error::new(2, message)
    }

    /// 9 FailedToParse.
    pub fn failed_to_parse(message: impl Into<String>) -> Error {
        Error::new(9, message)
    }

    /// 14 TypeMismatch.
    pub fn type_mismatch(message: impl Into<String>) -> Error {
        Error::new(14, message)
    }

    /// What MongoDB says of an operator that runs scripts where scripting is off.
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

impl From<windrow_geo::Error> for Error {
    fn from(error: windrow_geo::Error) -> Error {
        Error::new(error.code, error.message)
    }
}

/// 8 UnknownError.
impl From<Bug> for Error {
    fn from(bug: Bug) -> Error {
        Error::new(8, bug.to_string())
    }
}
