//! The errors of an extraction.

use std::fmt;

/// Why a file or member could not be read. All are properties of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtractError {
    /// The format has no text or is not implemented. Contains its name, for example `PNG image`.
    /// Callers count such files as skipped, not as failed.
    Unsupported(&'static str),
    /// The bytes violate their format.
    Malformed {
        /// The format's name.
        format: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The file of this format is encrypted with a password.
    Encrypted(&'static str),
    /// A limit was exceeded.
    Limit {
        /// What exceeds the limit.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// The limit's unit.
        unit: &'static str,
    },
    /// [`crate::Limits::deadline`] has passed.
    Deadline,
}

/// The values of [`ExtractError::Limit`]'s `what` that end the whole file.
pub(crate) const EXPANDED: &str = "the total decompressed size";
pub(crate) const MEMBERS: &str = "the number of members";

impl ExtractError {
    /// A stable identifier for statistics: `unsupported`, `malformed`, `encrypted`, `limit` or
    /// `deadline`.
    pub fn code(&self) -> &'static str {
        match self {
            ExtractError::Unsupported(_) => "unsupported",
            ExtractError::Malformed { .. } => "malformed",
            ExtractError::Encrypted(_) => "encrypted",
            ExtractError::Limit { .. } => "limit",
            ExtractError::Deadline => "deadline",
        }
    }

    pub(crate) fn malformed(format: &'static str, reason: impl fmt::Display) -> Self {
        ExtractError::Malformed {
            format,
            reason: reason.to_string(),
        }
    }

    /// Returns `true` if the error ends the whole file, `false` if only a member.
    pub(crate) fn ends_file(&self) -> bool {
        matches!(
            self,
            ExtractError::Deadline
                | ExtractError::Limit {
                    what: EXPANDED | MEMBERS,
                    ..
                }
        )
    }
}

impl fmt::Display for ExtractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtractError::Unsupported(what) => {
                write!(f, "files of kind {what} have no readable text")
            }
            ExtractError::Malformed { format, reason } => write!(f, "damaged {format}: {reason}"),
            ExtractError::Encrypted(format) => {
                write!(f, "the {format} is encrypted with a password")
            }
            ExtractError::Limit { what, limit, unit } => {
                write!(f, "{what} exceeds the limit of {limit} {unit}")
            }
            ExtractError::Deadline => write!(f, "the time limit for the file was exceeded"),
        }
    }
}

impl std::error::Error for ExtractError {}
