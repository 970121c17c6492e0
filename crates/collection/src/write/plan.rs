//! Which documents of an insert go in.

use bytes::Bytes;
use windrow_document::{Document, ValueRef};
use windrow_index::Definition;

use crate::error::Error;
use crate::record::KeyHashes;

/// Which documents of a buffer go in.
#[derive(Debug, Default)]
pub(crate) struct InsertPlan {
    /// Offset and length of the kept ones, with their numbers in the buffer.
    pub kept: Vec<(usize, usize, usize)>,
    seen: usize,
    pub count: usize,
    pub errors: Vec<(usize, Error)>,
    /// Of the unique keys that were claimed, also for documents that are left out.
    pub hashes: Vec<KeyHashes>,
}

impl InsertPlan {
    pub fn add(&mut self, offset: usize, length: usize, fits: Result<(), Error>) {
        match fits {
            Ok(()) => {
                self.kept.push((offset, length, self.seen));
                self.count += 1;
            }
            Err(error) => self.errors.push((self.seen, error)),
        }
        self.seen += 1;
    }

    pub fn refused(&self, ordered: bool) -> bool {
        ordered && !self.errors.is_empty()
    }

    pub fn last_is_kept(&self) -> bool {
        self.kept
            .last()
            .is_some_and(|(_, _, number)| number + 1 == self.seen)
    }

    /// The kept documents one after the other: the same buffer where none is left out.
    pub fn kept_bytes(&self, documents: &Bytes) -> Bytes {
        let length: usize = self.kept.iter().map(|(_, length, _)| length).sum();
        if length == documents.len() {
            return documents.clone();
        }
        let mut bytes = Vec::with_capacity(length);
        for (offset, length, _) in &self.kept {
            bytes.extend_from_slice(documents.get(*offset..offset + length).unwrap_or_default());
        }
        Bytes::from(bytes)
    }
}

/// The `_id` keys of a batch, to see whether they grow.
#[derive(Debug, Default)]
pub(crate) struct IdKeys {
    first: Vec<u8>,
    last: Vec<u8>,
    next: Vec<u8>,
    count: usize,
    unordered: bool,
}

impl IdKeys {
    pub fn push(&mut self, of_ids: &Definition, document: Document<'_>) {
        if self.unordered {
            return;
        }
        self.next.clear();
        let id = document.get("_id").unwrap_or(ValueRef::Null);
        of_ids.append_only_value(&mut self.next, id);
        if self.count == 0 {
            self.first.clone_from(&self.next);
        } else if self.next <= self.last {
            self.unordered = true;
        }
        std::mem::swap(&mut self.last, &mut self.next);
        self.count += 1;
    }

    pub fn grows(&self) -> bool {
        self.count > 0 && !self.unordered
    }

    pub fn first(&self) -> &[u8] {
        &self.first
    }

    pub fn last(&self) -> &[u8] {
        &self.last
    }
}
