//! The receiver of the entries of a document, and the buffers in which they are built.

use windrow_mql::Error;
use windrow_text::{DocumentTerms, TermGeneration, TextVersion};

use crate::definition::Definition;
use crate::marks::DocumentMarks;
use crate::search::SearchScratch;

/// The maximum number of entries of one document in one index. Without a limit, a few arrays in one
/// document could produce millions of entries.
pub const ENTRIES_PER_DOCUMENT_MAX: usize = 10_000;

/// Receives an entry: the key bytes and the payload.
pub type Emit<'e> = dyn FnMut(&[u8], &[u8]) + 'e;

/// The number of a key that further documents will probably have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyNumber {
    /// The generation in which the number stands for the key.
    pub generation: TermGeneration,
    /// The number. Numbers begin at 0 and have few gaps.
    pub number: u32,
}

/// Receives the entries of a document, some of them by the numbers of their keys.
pub trait EntrySink {
    /// Receives an entry: the key bytes and the payload.
    fn entry(&mut self, key: &[u8], payload: &[u8]);

    /// Receives an entry whose key has a number. Returns `false` if it does not know the key of
    /// this number; [`numbered_entry`](Self::numbered_entry) is called then.
    fn known_entry(&mut self, number: KeyNumber, payload: &[u8]) -> bool;

    /// Receives an entry, and the number of its key.
    fn numbered_entry(&mut self, number: KeyNumber, key: &[u8], payload: &[u8]);
}

/// A receiver that does not use the numbers of keys.
pub(crate) struct Unnumbered<'s, 'e>(pub(crate) &'s mut Emit<'e>);

impl EntrySink for Unnumbered<'_, '_> {
    fn entry(&mut self, key: &[u8], payload: &[u8]) {
        (self.0)(key, payload);
    }

    fn known_entry(&mut self, _: KeyNumber, _: &[u8]) -> bool {
        false
    }

    fn numbered_entry(&mut self, _: KeyNumber, key: &[u8], payload: &[u8]) {
        (self.0)(key, payload);
    }
}

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
