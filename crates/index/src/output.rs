//! Where the entries of a document go, and the buffers that they are made in.

use windrow_mql::Error;
use windrow_text::{DocumentTerms, TextVersion};

use crate::definition::Definition;
use crate::marks::Met;
use crate::score;

/// A document that would contribute more entries to one index is refused.
pub const ENTRIES_PER_DOCUMENT_MAX: usize = 10_000;

/// Where an entry goes: its key bytes and its payload.
pub type Emit<'e> = dyn FnMut(&[u8], &[u8]) + 'e;

/// Buffers that are used again from document to document.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(crate) key: Vec<u8>,
    pub(crate) shape: Vec<u8>,
    pub(crate) met: Met,
    pub(crate) text: Option<TextScratch>,
}

/// Buffers for the terms of a document.
pub(crate) struct TextScratch {
    pub(crate) version: TextVersion,
    pub(crate) terms: DocumentTerms,
    pub(crate) path: String,
    pub(crate) key: Vec<u8>,
    pub(crate) suffix: Vec<u8>,
    pub(crate) term: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    pub(crate) scores: score::Encoder,
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
            scores: score::Encoder::default(),
        }
    }
}

impl Definition {
    pub(crate) fn too_many(&self, count: usize) -> Error {
        Error::bad_value(format!(
            "the document has at least {count} entries for index '{}', more than the limit of \
             {ENTRIES_PER_DOCUMENT_MAX}",
            self.name
        ))
    }
}
