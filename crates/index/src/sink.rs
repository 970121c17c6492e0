//! The receivers of the entries of a document.

use windrow_text::TermGeneration;

/// Receives an entry: the key bytes and the payload.
pub type Emit<'e> = dyn FnMut(&[u8], &[u8]) + 'e;

/// The number of a key that further documents will probably have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyNumber {
    /// Within a generation, a number always stands for the same key.
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
