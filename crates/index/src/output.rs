//! The buffers in which the entries of a document are built.

use windrow_mql::Error;
use windrow_text::{DocumentTerms, TextVersion};

use crate::definition::Definition;
use crate::marks::DocumentMarks;
use crate::search::SearchScratch;

/// The maximum number of entries of one document in one index. Without a limit, a few arrays in one
/// document could produce millions of entries.
pub const ENTRIES_PER_DOCUMENT_MAX: usize = 10_000;

/// Buffers that are reused between documents. Create one for many calls of
/// [`Definition::entries`](crate::Definition::entries).
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) key: Vec<u8>,
    pub(crate) shape: Vec<u8>,
    pub(crate) marks: DocumentMarks,
    pub(crate) text: Option<TextScratch>,
    pub(crate) search: SearchScratch,
}

/// Buffers for the terms of a document in a text index.
pub(crate) struct TextScratch {
    pub(crate) version: TextVersion,
    pub(crate) terms: DocumentTerms,
    pub(crate) path: String,
    pub(crate) key: Vec<u8>,
    pub(crate) suffix: Vec<u8>,
    pub(crate) term: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) positions: Vec<u8>,
}

impl std::fmt::Debug for TextScratch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "TextScratch({} terms)", self.terms.len())
    }
}

impl TextScratch {
    pub(crate) fn new(version: TextVersion) -> TextScratch {
        TextScratch {
            version,
            terms: DocumentTerms::new(version),
            path: String::new(),
            key: Vec::new(),
            suffix: Vec::new(),
            term: Vec::new(),
            payload: Vec::new(),
            positions: Vec::new(),
        }
    }
}

impl Definition {
    /// Returns the error for a document with too many entries.
    pub(crate) fn too_many(&self, count: usize) -> Error {
        Error::bad_value(format!(
            "the document has at least {count} entries for index '{}', more than the limit of \
             {ENTRIES_PER_DOCUMENT_MAX}",
            self.name
        ))
    }
}
