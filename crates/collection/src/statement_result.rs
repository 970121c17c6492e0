//! The result of one statement of a retryable write, and its encoding.
//!
//! ```text
//! 0 inserted | document        1 updated
//! 2 updated | old version      3 updated | new version
//! 4 deleted                    5 deleted | document
//! ```
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use windrow_document::{Document, DocumentBuf};

/// The result of a statement: what it did to one document.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementResult {
    /// It inserted a document. Contains only the `_id` if the command returns no more.
    Inserted(DocumentBuf),
    /// It updated a document. Contains the version that the command returned, if any.
    Updated(Option<Image>),
    /// It deleted a document. Contains the document if the command returned it.
    Deleted(Option<DocumentBuf>),
}

/// A version of an updated document.
#[derive(Clone, Debug, PartialEq)]
pub enum Image {
    /// The version before the update.
    Before(DocumentBuf),
    /// The version after the update.
    After(DocumentBuf),
}

/// The first byte that is no code of a result.
pub(crate) const CODES_END: u8 = 6;

impl StatementResult {
    /// Returns the document that the result contains.
    pub(crate) fn document(&self) -> Option<&DocumentBuf> {
        match self {
            StatementResult::Inserted(document) | StatementResult::Deleted(Some(document)) => {
                Some(document)
            }
            StatementResult::Updated(Some(Image::Before(document) | Image::After(document))) => {
                Some(document)
            }
            StatementResult::Updated(None) | StatementResult::Deleted(None) => None,
        }
    }

    fn code(&self) -> u8 {
        match self {
            StatementResult::Inserted(_) => 0,
            StatementResult::Updated(None) => 1,
            StatementResult::Updated(Some(Image::Before(_))) => 2,
            StatementResult::Updated(Some(Image::After(_))) => 3,
            StatementResult::Deleted(None) => 4,
            StatementResult::Deleted(Some(_)) => 5,
        }
    }

    pub(crate) fn push(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.code());
        if let Some(document) = self.document() {
            bytes.extend_from_slice(document.as_bytes());
        }
    }

    /// Returns `true` if a document follows this code, or `None` if the code is invalid.
    pub(crate) fn has_document(code: u8) -> Option<bool> {
        (code < CODES_END).then_some(!matches!(code, 1 | 4))
    }

    /// Reads what [`push`](Self::push) wrote: the code, and the document's bytes if one follows.
    pub(crate) fn read(code: u8, document: &[u8]) -> Option<StatementResult> {
        let document = || Some(Document::from_bytes(document).ok()?.to_buf());
        Some(match code {
            0 => StatementResult::Inserted(document()?),
            1 => StatementResult::Updated(None),
            2 => StatementResult::Updated(Some(Image::Before(document()?))),
            3 => StatementResult::Updated(Some(Image::After(document()?))),
            4 => StatementResult::Deleted(None),
            5 => StatementResult::Deleted(Some(document()?)),
            _ => return None,
        })
    }
}
