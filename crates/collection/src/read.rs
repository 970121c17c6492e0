//! Reading: a snapshot of a collection's documents and indexes.

use std::sync::Arc;

use bytes::Bytes;
use windrow_document::ValueRef;
use windrow_fold::{Cursor, Direction, Snapshot, View};
use windrow_index::{Definition, Multikey};

use crate::error::Error;
use crate::state::{IndexState, State};

/// The number of a document in its collection, given in order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u64);

/// A collection at a position of the log. Cheap to clone; merges keep what it sees while it lives.
#[derive(Clone, Debug)]
pub struct Reader(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Arc<State>,
    snapshot: Snapshot,
    records: View,
    indexes: Vec<ReaderIndex>,
    next_record: u64,
}

/// A ready index as a reader knows it.
#[derive(Clone, Debug)]
pub struct ReaderIndex {
    state: IndexState,
}

impl ReaderIndex {
    pub fn definition(&self) -> &Arc<Definition> {
        &self.state.index.definition
    }

    pub fn name(&self) -> &str {
        &self.state.index.definition.name
    }

    /// Which paths have met arrays: true of all entries that were made before the call.
    pub fn multikey(&self) -> Multikey {
        self.state.index.multikey()
    }

    /// Counts a plan that uses it.
    pub fn note_use(&self) {
        self.state.index.note_use();
    }

    /// The number of its map.
    pub fn map(&self) -> u64 {
        self.state.index.map
    }
}

impl Reader {
    /// `next_record`: one more than the largest record id there can be.
    pub(crate) fn new(state: Arc<State>, snapshot: Snapshot, next_record: u64) -> Reader {
        let position = snapshot.position();
        let mut chunks = Vec::new();
        for generation in state.generations() {
            chunks.extend(generation.records(position).iter().cloned());
        }
        let records = View {
            sections: state.records.clone(),
            chunks,
            snapshot: position,
        };
        let ready = state.indexes.iter().filter(|it| it.index.is_ready());
        let indexes = ready
            .map(|state| ReaderIndex {
                state: state.clone(),
            })
            .collect();
        Reader(Arc::new(Inner {
            state,
            snapshot,
            records,
            indexes,
            next_record,
        }))
    }

    /// Fails once the snapshot is too old.
    fn check(&self) -> Result<(), Error> {
        match self.0.snapshot.has_ended() {
            true => Err(Error::SnapshotTooOld),
            false => Ok(()),
        }
    }

    /// The log position that is read at.
    pub fn position(&self) -> u64 {
        self.0.snapshot.position()
    }

    /// One more than the largest record id there can be.
    pub fn next_record(&self) -> RecordId {
        RecordId(self.0.next_record)
    }

    /// A document's bytes.
    pub fn get(&self, id: RecordId) -> Result<Option<Bytes>, Error> {
        self.check()?;
        Ok(self.0.records.get(b"", id.0)?)
    }

    /// The record of an `_id`.
    pub fn find_id(&self, id: ValueRef<'_>) -> Result<Option<RecordId>, Error> {
        let Some(of_ids) = self.0.indexes.first() else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        of_ids.definition().append_only_value(&mut bytes, id);
        Ok(self.index_view(0)?.first_id(&bytes)?.map(RecordId))
    }

    /// All documents, in natural order or backward.
    pub fn records(&self, direction: Direction) -> RecordCursor {
        let cursor = self.0.records.cursor(direction).past_cache();
        RecordCursor {
            cursor,
            end: u64::MAX,
            reader: self.clone(),
        }
    }

    /// Documents with ids from the first up to, without, the end.
    pub fn record_range(&self, first: RecordId, end: RecordId) -> Result<RecordCursor, Error> {
        let mut cursor = self.0.records.cursor(Direction::Forward).past_cache();
        cursor.seek(b"", first.0)?;
        Ok(RecordCursor {
            cursor,
            end: end.0,
            reader: self.clone(),
        })
    }

    /// The indexes that can be used; the first is the one on `_id`.
    pub fn indexes(&self) -> &[ReaderIndex] {
        &self.0.indexes
    }

    fn index_view(&self, number: usize) -> Result<View, Error> {
        let Some(ReaderIndex { state }) = self.0.indexes.get(number) else {
            return Err(Error::IndexNotFound(format!("number {number}")));
        };
        Ok(self.view_of(state))
    }

    /// The entries of an index that is still being built, by its map: for its own checks.
    pub(crate) fn entries_of_unready(&self, map: u64) -> Result<EntryCursor, Error> {
        let found = self
            .0
            .state
            .indexes
            .iter()
            .find(|state| state.index.map == map);
        let Some(state) = found else {
            return Err(Error::IndexNotFound(format!("of map {map}")));
        };
        let cursor = self.view_of(state).cursor(Direction::Forward);
        Ok(EntryCursor {
            cursor,
            reader: self.clone(),
        })
    }

    fn view_of(&self, state: &IndexState) -> View {
        let position = self.position();
        let mut chunks = Vec::new();
        for generation in self.0.state.generations() {
            chunks.extend(generation.index(&state.index, position).iter().cloned());
        }
        View {
            sections: state.sections.clone(),
            chunks,
            snapshot: position,
        }
    }

    /// Makes the entries of an index up to the snapshot, so that its [`ReaderIndex::multikey`] holds
    /// for all that this reader sees.
    pub fn settle(&self, index: usize) -> Result<(), Error> {
        self.index_view(index).map(drop)
    }

    /// The entries of an index, in the order of their keys or backward.
    pub fn entries(&self, index: usize, direction: Direction) -> Result<EntryCursor, Error> {
        let cursor = self.index_view(index)?.cursor(direction);
        Ok(EntryCursor {
            cursor,
            reader: self.clone(),
        })
    }

    /// The entries of an index from exactly this key on. Filters spare reads where the key is not
    /// there; entries of other keys, which may follow, are not complete.
    pub fn postings(&self, index: usize, key: &[u8]) -> Result<EntryCursor, Error> {
        let mut cursor = self.index_view(index)?.cursor_of_key(key)?;
        cursor.seek(key, 0)?;
        Ok(EntryCursor {
            cursor,
            reader: self.clone(),
        })
    }

    /// About how many entries have keys from `from` up to, without, `to`. See [`View::count_about`].
    pub fn count_about(&self, index: usize, from: &[u8], to: &[u8]) -> Result<u64, Error> {
        Ok(self.index_view(index)?.count_about((from, 0), (to, 0))?)
    }
}

/// Goes through documents.
#[derive(Debug)]
pub struct RecordCursor {
    cursor: Cursor,
    end: u64,
    reader: Reader,
}

impl RecordCursor {
    /// Goes on from the document of that id, or the next in the cursor's direction.
    pub fn seek(&mut self, id: RecordId) -> Result<(), Error> {
        Ok(self.cursor.seek(b"", id.0)?)
    }

    /// Goes to the next document; false at the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool, Error> {
        self.reader.check()?;
        Ok(self.cursor.next()? && self.cursor.id() < self.end)
    }

    pub fn id(&self) -> RecordId {
        RecordId(self.cursor.id())
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

/// Goes through the entries of an index.
#[derive(Debug)]
pub struct EntryCursor {
    cursor: Cursor,
    reader: Reader,
}

impl EntryCursor {
    /// Goes on from the first entry at or after the place; backward from the last at or before.
    pub fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), Error> {
        Ok(self.cursor.seek(key, id.0)?)
    }

    /// Goes to the next entry; false at the end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool, Error> {
        self.reader.check()?;
        Ok(self.cursor.next()?)
    }

    pub fn key(&self) -> &[u8] {
        self.cursor.key()
    }

    pub fn id(&self) -> RecordId {
        RecordId(self.cursor.id())
    }

    /// What stands beside the key: the shape, or the score of a term.
    pub fn payload(&self) -> &[u8] {
        self.cursor.payload()
    }
}
