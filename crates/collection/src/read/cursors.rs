//! The cursors of a reader, over documents and over index entries.

use bytes::Bytes;
use windrow_fold::{Cursor, EntryKeyBuf};
use windrow_index::{MARK, is_mark};
use windrow_invariant::Bug;

use super::{Reader, RecordId};
use crate::error::Error;

/// A cursor over documents.
#[derive(Debug)]
pub struct RecordCursor {
    pub(super) cursor: Cursor,
    /// The exclusive end.
    pub(super) end: Option<EntryKeyBuf>,
    pub(super) reader: Reader,
}

/// Returns the record id of a bound. The empty bound is the first id.
pub(super) fn record_of(bound: &[u8]) -> Result<RecordId, Bug> {
    match bound.first_chunk() {
        Some(id) => Ok(RecordId(u64::from_be_bytes(*id))),
        None if bound.is_empty() => Ok(RecordId::MIN),
        None => Err(Bug::new(format!("the bound {bound:?} is no record id"))),
    }
}

impl RecordCursor {
    /// Moves to the next document. Returns `false` at the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool, Error> {
        self.reader.check()?;
        if !self.cursor.next()? {
            return Ok(false);
        }
        let end = self.end.as_ref();
        Ok(end.is_none_or(|end| self.cursor.is_before(&end.key, end.id)))
    }

    /// Returns the current document as a bound for [`Reader::range`]: its record id, or in a
    /// clustered collection its key.
    pub(crate) fn bound(&self) -> Vec<u8> {
        if self.reader.is_clustered() {
            self.cursor.key().to_vec()
        } else {
            self.id().0.to_be_bytes().to_vec()
        }
    }

    /// Returns the record id of the current document.
    pub fn id(&self) -> RecordId {
        self.cursor.id()
    }

    /// Returns the bytes of the current document.
    pub fn document(&self) -> &[u8] {
        self.cursor.payload()
    }

    /// Returns the bytes of the current document, shared.
    pub fn document_bytes(&mut self) -> Bytes {
        self.cursor.payload_bytes()
    }
}

/// The first possible key of an index after the marks.
pub(super) const BEHIND_MARKS: &[u8] = &[MARK + 1];

/// A cursor over the keys of an index.
#[derive(Debug)]
pub struct EntryCursor {
    pub(super) cursor: Cursor,
    pub(super) reader: Reader,
}

impl EntryCursor {
    /// Moves before the first entry at or after this key and record id, backward before the last at
    /// or before it.
    pub fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), Error> {
        Ok(self.cursor.seek(key.max(BEHIND_MARKS), id)?)
    }

    /// Moves before the entries of exactly this key; see [`Cursor::seek_key`].
    pub fn seek_key(&mut self, key: &[u8]) -> Result<(), Error> {
        Ok(self.cursor.seek_key(key)?)
    }

    /// Moves to the next entry. Returns `false` at the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool, Error> {
        self.reader.check()?;
        // Backward, the marks come last.
        Ok(self.cursor.next()? && !is_mark(self.cursor.key()))
    }

    /// Returns the key of the current entry.
    pub fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    /// Returns the record id of the current entry.
    pub fn id(&self) -> RecordId {
        self.cursor.id()
    }

    /// Returns the payload of the current entry: the shape of the key, the score of a term, or the
    /// document.
    pub fn payload(&self) -> &[u8] {
        self.cursor.payload()
    }

    /// Returns the payload, shared. In the clustered index of a clustered collection, it is the
    /// document.
    pub fn payload_bytes(&mut self) -> Bytes {
        self.cursor.payload_bytes()
    }
}
