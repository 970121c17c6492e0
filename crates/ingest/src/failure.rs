//! Why a file, or something in it, gave no text.

use std::fmt;

use windrow_extract::ExtractError;

/// What went wrong with a file or with one member of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The member, as [`windrow_extract::ExtractedDocument::inner_path`]; `None` for the file itself.
    pub inner: Option<String>,
    pub class: FailureClass,
    /// A sentence for people.
    pub reason: String,
}

/// Kinds of failures, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    /// The system refused to open or read it.
    Unreadable,
    /// Its bytes break the rules of its format.
    Malformed,
    /// It needs a password.
    Encrypted,
    /// It exceeds a limit of size, depth, number or expansion.
    Limit,
    /// It took too long.
    Deadline,
    /// The process that read it died: out of memory, or an error in a library.
    Crashed,
    /// The database did not take what it became.
    Refused,
    /// Not all that it became has been stored yet.
    Unfinished,
}

impl FailureClass {
    pub const ALL: [FailureClass; 8] = [
        FailureClass::Unreadable,
        FailureClass::Malformed,
        FailureClass::Encrypted,
        FailureClass::Limit,
        FailureClass::Deadline,
        FailureClass::Crashed,
        FailureClass::Refused,
        FailureClass::Unfinished,
    ];

    /// The word that documents carry.
    pub fn as_str(self) -> &'static str {
        match self {
            FailureClass::Unreadable => "unreadable",
            FailureClass::Malformed => "malformed",
            FailureClass::Encrypted => "encrypted",
            FailureClass::Limit => "limit",
            FailureClass::Deadline => "deadline",
            FailureClass::Crashed => "crashed",
            FailureClass::Refused => "refused",
            FailureClass::Unfinished => "unfinished",
        }
    }

    /// The class that [`FailureClass::as_str`] calls `word`.
    pub fn from_word(word: &str) -> Option<FailureClass> {
        FailureClass::ALL
            .into_iter()
            .find(|class| class.as_str() == word)
    }
}

impl Failure {
    pub(crate) fn of_file(class: FailureClass, reason: impl fmt::Display) -> Self {
        Failure {
            inner: None,
            class,
            reason: reason.to_string(),
        }
    }

    pub(crate) fn from_error(inner: Option<String>, error: &ExtractError) -> Self {
        let class = FailureClass::from_word(error.code()).unwrap_or(FailureClass::Malformed);
        Failure {
            inner,
            class,
            reason: error.to_string(),
        }
    }
}
