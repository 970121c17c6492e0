//! The errors of an extraction.

use std::fmt;

/// The reason why a file or member could not be read. All are properties of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtractError {
    /// The format has no text, or no extractor reads it. Contains its name, for example `font`.
    /// Callers count such files as skipped, not as failed.
    Unsupported(&'static str),
    /// The bytes violate their format.
    Malformed {
        /// The format's name.
        format: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The file of this format is encrypted with a password or key.
    Encrypted(&'static str),
    /// The file of this format consists of scanned pages. Its document was emitted without text.
    NoText(&'static str),
    /// A limit was exceeded.
    Limit {
        /// The limit.
        limit: Limit,
        /// The value of the limit, in its unit.
        value_max: u64,
    },
    /// [`crate::Limits::deadline`] has passed.
    Deadline,
    /// The program that reads files of this type is not installed.
    MissingProgram {
        /// Its name.
        program: String,
        /// The media type.
        media_type: String,
    },
    /// The program that reads the file failed.
    ProgramFailed {
        /// Its name.
        program: String,
        /// What went wrong.
        reason: String,
    },
}

/// The limits in [`crate::Limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The size of a file or member in bytes.
    InputSize,
    /// The size of a message of an mbox in bytes.
    MessageSize,
    /// The decompressed size of all members together in bytes.
    ExpandedSize,
    /// The ratio of a member's decompressed to its compressed size.
    ExpansionRatio,
    /// The number of nested containers.
    Depth,
    /// The number of members of a file.
    Members,
}

impl Limit {
    /// Returns the subject of the error message.
    fn subject(self) -> &'static str {
        match self {
            Limit::InputSize => "the size",
            Limit::MessageSize => "a message",
            Limit::ExpandedSize => "the total decompressed size",
            Limit::ExpansionRatio => "the ratio of decompressed to compressed size",
            Limit::Depth => "the depth of containers",
            Limit::Members => "the number of members",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Limit::InputSize | Limit::MessageSize | Limit::ExpandedSize => "bytes",
            Limit::ExpansionRatio => "times",
            Limit::Depth => "levels",
            Limit::Members => "members",
        }
    }
}

impl ExtractError {
    /// A stable identifier for statistics: `unsupported`, `malformed`, `encrypted`, `no_text`,
    /// `limit`, `deadline`, `missing_converter` or `converter`.
    pub fn code(&self) -> &'static str {
        match self {
            ExtractError::Unsupported(_) => "unsupported",
            ExtractError::Malformed { .. } => "malformed",
            ExtractError::Encrypted(_) => "encrypted",
            ExtractError::NoText(_) => "no_text",
            ExtractError::Limit { .. } => "limit",
            ExtractError::Deadline => "deadline",
            ExtractError::MissingProgram { .. } => "missing_converter",
            ExtractError::ProgramFailed { .. } => "converter",
        }
    }

    pub(crate) fn malformed(format: &'static str, reason: impl fmt::Display) -> Self {
        ExtractError::Malformed {
            format,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn limit(limit: Limit, value_max: u64) -> Self {
        ExtractError::Limit { limit, value_max }
    }

    /// Returns `true` if the error ends the extraction of the whole file, `false` if only that of a
    /// member.
    pub(crate) fn ends_file(&self) -> bool {
        matches!(
            self,
            ExtractError::Deadline
                | ExtractError::Limit {
                    limit: Limit::ExpandedSize | Limit::Members,
                    ..
                }
        )
    }
}

impl fmt::Display for ExtractError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExtractError::Unsupported(what) => {
                write!(f, "no text can be extracted from this format: {what}")
            }
            ExtractError::Malformed { format, reason } => write!(f, "damaged {format}: {reason}"),
            ExtractError::Encrypted(format) => {
                write!(f, "the {format} is encrypted")
            }
            ExtractError::NoText(format) => {
                write!(f, "the {format} has no text, its pages are pictures")
            }
            ExtractError::Limit { limit, value_max } => {
                let (subject, unit) = (limit.subject(), limit.unit());
                write!(f, "{subject} exceeds the limit of {value_max} {unit}")
            }
            ExtractError::Deadline => write!(f, "the time limit for the file was exceeded"),
            ExtractError::MissingProgram {
                program,
                media_type,
            } => write!(f, "missing converter {program} for {media_type}"),
            ExtractError::ProgramFailed { program, reason } => write!(f, "{program}: {reason}"),
        }
    }
}

impl std::error::Error for ExtractError {}
