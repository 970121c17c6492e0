//! What a statement of a retryable write has done, and its bytes.
//!
//! ```text
//! 0 inserted | document        1 updated
//! 2 updated | old version      3 updated | new version
//! 4 deleted                    5 deleted | document
//! ```
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use windrow_document::{Document, DocumentBuf};

/// What a statement has done to a document.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementResult {
    /// The document, or one of its `_id` alone where nobody asked for more.
    Inserted(DocumentBuf),
    /// With the version that its command gave, where it gave one.
    Updated(Option<Image>),
    /// With the document, where the command gave it.
    Deleted(Option<DocumentBuf>),
}

/// A version of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Image {
    Before(DocumentBuf),
    After(DocumentBuf),
}

/// The first bytes that are none of these.
pub(crate) const CODES_END: u8 = 6;

impl StatementResult {
    /// The document that is remembered.
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

    /// Whether a document follows this code; None where it is no code.
    pub(crate) fn has_document(code: u8) -> Option<bool> {
        (code < CODES_END).then_some(!matches!(code, 1 | 4))
    }

    /// What [`push`](Self::push) wrote: the code, and the bytes of the document where one follows.
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
