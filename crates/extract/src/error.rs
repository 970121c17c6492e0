//! Why bytes did not become text.

use std::fmt;

/// Whose fault it is: the data's in every case; [`ExtractError::Unsupported`] is nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtractError {
    /// A kind that holds no text or is not read yet, by name: `PNG image`. Callers count these as
    /// skipped, not as failed.
    Unsupported(&'static str),
    /// The bytes break the rules of their format.
    Malformed {
        format: &'static str,
        reason: String,
    },
    /// Needs a password.
    Encrypted(&'static str),
    /// A limit was reached: what, the limit, and its unit.
    Limit {
        what: &'static str,
        limit: u64,
        unit: &'static str,
    },
    /// [`crate::Limits::deadline`] has passed.
    Deadline,
}

/// What is too much in [`ExtractError::Limit`] where that ends the whole file.
pub(crate) const EXPANDED: &str = "all that the file unpacks to";
pub(crate) const MEMBERS: &str = "the number of members";

impl ExtractError {
    /// One stable word for counting: `unsupported`, `malformed`, `encrypted`, `limit`, `deadline`.
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

    /// Whether the whole file ends with this error, not only the member that had it.
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
                write!(f, "no text is read from a file of kind {what}")
            }
            ExtractError::Malformed { format, reason } => write!(f, "damaged {format}: {reason}"),
            ExtractError::Encrypted(format) => write!(f, "the {format} needs a password"),
            ExtractError::Limit { what, limit, unit } => {
                write!(f, "{what} exceeds the limit of {limit} {unit}")
            }
            ExtractError::Deadline => write!(f, "the time allowed for the file ran out"),
        }
    }
}

impl std::error::Error for ExtractError {}
