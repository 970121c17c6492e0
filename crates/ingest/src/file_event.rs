//! The events of a file that a worker reads.

use windrow_extract::{ExtractedDocument, ExtractionCounts, MailReference};

use crate::failure::Failure;

/// An event of a file.
#[derive(Debug, PartialEq)]
pub enum FileEvent {
    /// A document of the file. It stays valid if the file fails later.
    Document(Box<ExtractedDocument>),
    /// A member of the file failed. The other members are still read.
    MemberFailure {
        /// The failure.
        failure: Failure,
        /// The mail to which the member is attached.
        attached_to: Option<MailReference>,
    },
    /// A member of the file has a format without an extractor.
    MemberSkipped {
        /// The member, see [`ExtractedDocument::inner_path`].
        inner: String,
        /// The name of the format.
        format: String,
        /// The mail to which the member is attached.
        attached_to: Option<MailReference>,
    },
    /// The last event of the file.
    End(FileOutcome),
}

/// The outcome of a file.
#[derive(Debug, PartialEq)]
pub enum FileOutcome {
    /// The file was read.
    Done(ExtractionCounts),
    /// The format of the file has no extractor. Contains the name of the format.
    Skipped(String),
    /// The file failed.
    Failed(Failure),
}
