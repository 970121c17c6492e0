//! Errors of access control.

use std::fmt;

/// An error of access control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A document or an argument is invalid. The sentence says what is wrong.
    Invalid(String),
    /// An action has no such name.
    UnknownAction(String),
    /// A SCRAM message does not follow RFC 5802.
    Malformed(&'static str),
    /// A SCRAM proof is wrong, which means a wrong password.
    WrongProof,
    /// Roles inherit from too many roles.
    TooManyRoles {
        /// The largest number.
        max: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(sentence) => formatter.write_str(sentence),
            Error::UnknownAction(name) => {
                write!(formatter, "Unrecognized action privilege strings: {name}")
            }
            Error::Malformed(what) => write!(formatter, "invalid SCRAM message: {what}"),
            Error::WrongProof => formatter.write_str("the proof of the password is wrong"),
            Error::TooManyRoles { max } => {
                write!(formatter, "the roles inherit from more than {max} roles")
            }
        }
    }
}

impl std::error::Error for Error {}
