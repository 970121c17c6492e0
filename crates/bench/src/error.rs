//! The errors of a run.

use std::fmt;
use std::io;

/// An error of a run, by whose fault it is.
#[derive(Debug)]
pub enum BenchError {
    /// The command line is invalid.
    Usage(String),
    /// A socket, file or process failed.
    Io(String, io::Error),
    /// The server refused a command or returned a wrong result.
    Server(String),
    /// The baseline failed or printed invalid output.
    Rival(String),
}

impl fmt::Display for BenchError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) => write!(to, "{what}"),
            Self::Io(place, error) => write!(to, "{place}: {error}"),
            Self::Server(what) => write!(to, "the server: {what}"),
            Self::Rival(what) => write!(to, "the baseline: {what}"),
        }
    }
}

impl std::error::Error for BenchError {}

/// Adds the place to an I/O error.
pub trait At<T> {
    /// Converts the error, adding the place.
    fn at(self, place: impl fmt::Display) -> Result<T, BenchError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, place: impl fmt::Display) -> Result<T, BenchError> {
        self.map_err(|error| BenchError::Io(place.to_string(), error))
    }
}
