//! What can go wrong in a run, by whose fault it is.

use std::fmt;
use std::io;

#[derive(Debug)]
pub enum BenchError {
    /// The command line asks for something that does not exist.
    Usage(String),
    /// The machine: a socket, a file, a process.
    Io(String, io::Error),
    /// The server refused a command or answered with something other than was asked for.
    Server(String),
    /// The baseline failed or printed what cannot be read.
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

/// Adds to an error of the machine where it happened.
pub trait At<T> {
    fn at(self, place: impl fmt::Display) -> Result<T, BenchError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, place: impl fmt::Display) -> Result<T, BenchError> {
        self.map_err(|error| BenchError::Io(place.to_string(), error))
    }
}
