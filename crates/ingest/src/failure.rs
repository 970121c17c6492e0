//! Failures of files and of their members.

use std::fmt;

use windrow_extract::ExtractError;

/// A failure of a file or of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The member, see [`windrow_extract::ExtractedDocument::inner_path`]. `None` for the file
    /// itself.
    pub inner: Option<String>,
    /// The class of failure.
    pub class: FailureClass,
    /// A sentence for users.
    pub reason: String,
}

/// Classes of failures, for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The operating system refused to open or read the file.
    Unreadable,
    /// The bytes violate their format.
    Malformed,
    /// The file is encrypted with a password or key.
    Encrypted,
    /// The file consists of scanned pages. Its document is stored without text.
    NoText,
    /// A limit on size, nesting, members or decompression was exceeded.
    Limit,
    /// Reading the file took too long.
    Deadline,
    /// The worker process died: it exceeded the memory limit, or a library crashed.
    Crashed,
    /// The program that reads the format is not installed.
    MissingConverter,
    /// The program that reads the format failed.
    Converter,
    /// The database refused the document.
    Refused,
    /// The documents of the file are not completely stored.
    Unfinished,
}

impl FailureClass {
    /// All classes.
    pub const ALL: [FailureClass; 11] = [
        FailureClass::Unreadable,
        FailureClass::Malformed,
        FailureClass::Encrypted,
        FailureClass::NoText,
        FailureClass::Limit,
        FailureClass::Deadline,
        FailureClass::Crashed,
        FailureClass::MissingConverter,
        FailureClass::Converter,
        FailureClass::Refused,
        FailureClass::Unfinished,
    ];

    /// The class as a lower-case word, as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::Unreadable => "unreadable",
            FailureClass::Malformed => "malformed",
            FailureClass::Encrypted => "encrypted",
            FailureClass::NoText => "no_text",
            FailureClass::Limit => "limit",
            FailureClass::Deadline => "deadline",
            FailureClass::Crashed => "crashed",
            FailureClass::MissingConverter => "missing_converter",
            FailureClass::Converter => "converter",
            FailureClass::Refused => "refused",
            FailureClass::Unfinished => "unfinished",
        }
    }

    /// Returns the class with this [`FailureClass::as_str`].
    pub fn from_name(name: &str) -> Option<FailureClass> {
        FailureClass::ALL
            .into_iter()
            .find(|class| class.as_str() == name)
    }
}

impl From<&ExtractError> for FailureClass {
    fn from(error: &ExtractError) -> FailureClass {
        match error {
            ExtractError::Encrypted(_) => FailureClass::Encrypted,
            ExtractError::NoText(_) => FailureClass::NoText,
            ExtractError::Limit { .. } => FailureClass::Limit,
            ExtractError::Deadline => FailureClass::Deadline,
            ExtractError::MissingProgram { .. } => FailureClass::MissingConverter,
            ExtractError::ProgramFailed { .. } => FailureClass::Converter,
            // Unsupported formats are recorded as skipped, not as failures.
            ExtractError::Unsupported(_) | ExtractError::Malformed { .. } => {
                FailureClass::Malformed
            }
        }
    }
}

impl Failure {
    pub(crate) fn new(class: FailureClass, reason: impl fmt::Display) -> Self {
        Failure {
            inner: None,
            class,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn from_error(inner: Option<String>, error: &ExtractError) -> Self {
        Failure {
            inner,
            class: FailureClass::from(error),
            reason: error.to_string(),
        }
    }
}
