//! The cursors of a reader: over documents, and over the entries of an index.

use bytes::Bytes;
use windrow_fold::{Cursor, EntryKeyBuf};
use windrow_index::{MARK, is_mark};
use windrow_invariant::Bug;

use super::{Reader, RecordId};
use crate::error::Error;

/// Goes through documents.
#[derive(Debug)]
pub struct RecordCursor {
    pub(super) cursor: Cursor,
    /// The place at which it ends.
    pub(super) end: Option<EntryKeyBuf>,
    pub(super) reader: Reader,
}

/// The record id of a place; the beginning has no bytes.
pub(super) fn record_of(place: &[u8]) -> Result<RecordId, Bug> {
    match place.first_chunk() {
        Some(id) => Ok(RecordId(u64::from_be_bytes(*id))),
        None if place.is_empty() => Ok(RecordId::MIN),
        None => Err(Bug::new(format!("the place {place:?} is no record"))),
    }
}

impl RecordCursor {
    /// Goes to the next document; false at the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool, Error> {
        self.reader.check()?;
        if !self.cursor.next()? {
            return Ok(false);
        }
        let end = self.end.as_ref();
        Ok(end.is_none_or(|end| self.cursor.is_before(&end.key, end.id)))
    }

    /// The place where it stands: see [`Reader::range`].
    pub(crate) fn place(&self) -> Vec<u8> {
        if self.reader.is_clustered() {
            self.cursor.key().to_vec()
        } else {
            self.id().0.to_be_bytes().to_vec()
        }
    }

    pub fn id(&self) -> RecordId {
        self.cursor.id()
    }

    /// The document's bytes, while the cursor stands there.
    pub fn document(&self) -> &[u8] {
        self.cursor.payload()
    }

    /// The document's bytes, shared.
    pub fn document_bytes(&mut self) -> Bytes {
        self.cursor.payload_bytes()
    }
}

/// Where the keys of an index begin.
pub(super) const BEHIND_MARKS: &[u8] = &[MARK + 1];

/// Goes through the keys of an index.
#[derive(Debug)]
pub struct EntryCursor {
    pub(super) cursor: Cursor,
    pub(super) reader: Reader,
}

impl EntryCursor {
    /// Goes on from the first entry at or after the place; backward from the last at or before.
    pub fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), Error> {
        Ok(self.cursor.seek(key.max(BEHIND_MARKS), id)?)
    }

    /// Goes on with the entries of exactly this key, see [`Cursor::seek_key`].
    pub fn seek_key(&mut self, key: &[u8]) -> Result<(), Error> {
        Ok(self.cursor.seek_key(key)?)
    }

    /// Goes to the next entry; false at the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool, Error> {
        self.reader.check()?;
        // Backward, marks come last.
        Ok(self.cursor.next()? && !is_mark(self.cursor.key()))
    }

    pub fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    pub fn id(&self) -> RecordId {
        self.cursor.id()
    }

    /// What stands beside the key: the shape, the score of a term, or the document.
    pub fn payload(&self) -> &[u8] {
        self.cursor.payload()
    }

    /// The same, shared: of the index that a clustered collection is, the document.
    pub fn payload_bytes(&mut self) -> Bytes {
        self.cursor.payload_bytes()
    }
}
