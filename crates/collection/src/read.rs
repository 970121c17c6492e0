//! Reads at a snapshot: documents and indexes of a collection.

mod cursors;
mod indexes;
mod presence;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use windrow_document::{Document, ValueRef};
use windrow_fold::sections::Sections;
use windrow_fold::{
    Cursor, Direction, EntryDigest, EntryKey, EntryKeyBuf, KeyLists, Position, PostingList,
    RecordId, Snapshot, TailPart, View,
};
use windrow_index::{Definition, MARK, Multikey};
use windrow_interrupt::PacedInterrupt;
use windrow_invariant::Bug;

use crate::error::Error;
use crate::generation::{Backlog, Generation, append_id_key};
use crate::ids::MapId;
use crate::index::Index;
use crate::state::{IndexState, State};
use crate::unique_keys::key_probe::KeyProbe;
use cursors::{BEHIND_MARKS, record_of};

pub use cursors::{EntryCursor, RecordCursor};
pub use indexes::{ReaderIndex, SearchIndex};

/// A collection at a log position. Cheap to clone. Until it is dropped, merges keep the versions it
/// sees.
#[derive(Clone, Debug)]
pub struct Reader(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Arc<State>,
    snapshot: Snapshot,
    /// The map by record id, opened at first use.
    records: OnceLock<View>,
    /// The map of each index, opened at first use.
    views: Vec<OnceLock<View>>,
    /// `true` if the map by `_id` contains the documents.
    is_clustered: bool,
    /// Search indexes are last.
    indexes: Vec<ReaderIndex>,
    /// The number of indexes that are not search indexes.
    ordinary: usize,
    next_record: RecordId,
    own: Option<OwnWrites>,
}

/// The uncommitted writes of a transaction. Its readers see them up to a position in the
/// transaction's tail, on top of the snapshot.
#[derive(Debug)]
pub(crate) struct OwnWrites {
    pub tail: Arc<Generation>,
    pub position: Position,
}

impl Reader {
    /// Creates a reader. `next_record` exceeds all record ids. An index that became ready after the
    /// snapshot is left out: its build may have missed versions of that time, and an older state
    /// lacks its sections.
    pub(crate) fn new(
        state: Arc<State>,
        snapshot: Snapshot,
        next_record: RecordId,
        own: Option<OwnWrites>,
    ) -> Reader {
        let position = snapshot.position();
        // In this order: an index that becomes ready in between has set its position by then.
        let was_ready = |index: &Index| index.is_ready() && index.ready_from() <= position;
        let ready = state.indexes.iter().filter(|it| was_ready(&it.index));
        let mut indexes: Vec<ReaderIndex> = ready
            .map(|state| ReaderIndex {
                state: state.clone(),
            })
            .collect();
        indexes.sort_by_key(|index| index.definition().is_search());
        let ordinary = indexes.partition_point(|index| !index.definition().is_search());
        let is_clustered = State::clustered_by(&state.indexes).is_some();
        Reader(Arc::new(Inner {
            state,
            snapshot,
            records: OnceLock::new(),
            views: indexes.iter().map(|_| OnceLock::new()).collect(),
            is_clustered,
            indexes,
            ordinary,
            next_record,
            own,
        }))
    }

    /// Opens a map over these sections and tails, and what the reader's transaction has written.
    fn view(
        &self,
        sections: &Arc<Sections>,
        parts_of: impl Fn(&Generation, Position) -> Arc<Vec<Arc<TailPart>>>,
    ) -> View {
        let position = self.position();
        let mut parts = Vec::new();
        for generation in self.0.state.generations() {
            parts.extend(parts_of(generation, position).iter().cloned());
        }
        let others = parts.len();
        if let Some(own) = &self.0.own {
            parts.extend(parts_of(&own.tail, own.position).iter().cloned());
        }
        View {
            sections: sections.visible_at(position),
            own_parts: parts.len() - others,
            parts,
            snapshot: position,
        }
    }

    /// Fails once the snapshot is too old.
    fn check(&self) -> Result<(), Error> {
        if self.0.snapshot.has_ended() {
            Err(Error::SnapshotTooOld)
        } else {
            Ok(())
        }
    }

    /// Returns the log position of the snapshot.
    pub fn position(&self) -> Position {
        self.0.snapshot.position()
    }

    /// Returns a bound that exceeds all record ids.
    pub fn next_record(&self) -> RecordId {
        self.0.next_record
    }

    /// Returns `true` if documents are stored by `_id`, which is then the natural order.
    pub fn is_clustered(&self) -> bool {
        self.0.is_clustered
    }

    /// Returns the map by record id.
    fn records_view(&self) -> &View {
        let records = &self.0.state.records;
        self.0
            .records
            .get_or_init(|| self.view(records, Generation::records))
    }

    /// Returns the definition of the index on `_id`, the first of all.
    fn id_index(&self) -> Result<&Definition, Error> {
        let (ReaderIndex { state }, _) = self.index_at(0)?;
        Ok(&state.index.definition)
    }

    /// Returns the map of the index on `_id`.
    fn ids_view(&self) -> Result<&View, Error> {
        self.index_view(0)
    }

    /// Returns the map that contains the documents.
    ///
    /// # Panics
    ///
    /// Panics if the collection has no index on `_id`. The other map has no documents.
    fn documents_view(&self) -> &View {
        if self.0.is_clustered {
            self.ids_view().unwrap_or_else(|error| panic!("{error}"))
        } else {
            self.records_view()
        }
    }

    /// Returns a document by record id.
    pub fn get(&self, id: RecordId) -> Result<Option<Bytes>, Error> {
        self.check()?;
        if !self.0.is_clustered {
            return Ok(self.records_view().get(b"", id)?);
        }
        match self
            .records_view()
            .get(&id.0.to_be_bytes(), RecordId::MIN)?
        {
            Some(key) => Ok(self.ids_view()?.get(&key, id)?),
            None => Ok(None),
        }
    }

    /// Returns the documents of the first of `ids`, as [`get`](Self::get) does. It stops before a
    /// second document that is not in memory. In a clustered collection the result is empty: its
    /// documents can be read only one by one.
    pub fn get_all(&self, ids: &[RecordId]) -> Result<Vec<Option<Bytes>>, Error> {
        if self.0.is_clustered {
            return Ok(Vec::new());
        }
        self.check()?;
        Ok(self.records_view().get_all(ids)?)
    }

    /// Returns a document like [`get`](Self::get), given any of its versions. In a clustered
    /// collection its `_id` avoids a lookup.
    pub(crate) fn get_seen(
        &self,
        id: RecordId,
        seen: Document<'_>,
    ) -> Result<Option<Bytes>, Error> {
        if !self.0.is_clustered || seen.get("_id").is_none() {
            return self.get(id);
        }
        self.check()?;
        let mut key = Vec::new();
        append_id_key(self.id_index()?, seen, &mut key);
        Ok(self.ids_view()?.get(&key, id)?)
    }

    /// Returns the position of the commit that wrote the newest version of a document, 0 if it is
    /// older than all snapshots, or `None` if the document does not exist. `seen` is any version of
    /// it.
    pub(crate) fn version(
        &self,
        id: RecordId,
        seen: Document<'_>,
    ) -> Result<Option<Position>, Error> {
        self.check()?;
        let mut key = Vec::new();
        if self.0.is_clustered {
            append_id_key(self.id_index()?, seen, &mut key);
        }
        let mut cursor = self.documents_view().cursor(Direction::Forward);
        cursor.seek(&key, id)?;
        let is_there = cursor.next()? && cursor.id() == id && cursor.key() == key;
        Ok(is_there.then(|| cursor.position()))
    }

    /// Returns the document with an `_id`, and its record id.
    pub fn find(&self, id: ValueRef<'_>) -> Result<Option<(RecordId, Bytes)>, Error> {
        if !self.0.is_clustered {
            let Some(record) = self.find_id(id)? else {
                return Ok(None);
            };
            return Ok(self.get(record)?.map(|document| (record, document)));
        }
        self.first_of_id(id, Cursor::payload_bytes)
    }

    /// Returns the record id of the document with an `_id`.
    pub fn find_id(&self, id: ValueRef<'_>) -> Result<Option<RecordId>, Error> {
        let found = self.first_of_id(id, |_| ())?;
        Ok(found.map(|(record, ())| record))
    }

    /// Looks an `_id` up, and returns what `take` reads from the entry.
    fn first_of_id<T>(
        &self,
        id: ValueRef<'_>,
        take: impl FnOnce(&mut Cursor) -> T,
    ) -> Result<Option<(RecordId, T)>, Error> {
        self.check()?;
        let mut key = Vec::new();
        self.id_index()?.append_only_value(&mut key, id);
        let mut cursor = self.ids_view()?.cursor_for_key(&key)?;
        cursor.seek(&key, RecordId::MIN)?;
        let found = cursor.next()? && cursor.key() == key;
        Ok(found.then(|| (cursor.id(), take(&mut cursor))))
    }

    /// Iterates over all documents in natural order or backward. Natural order is by record id, in
    /// a clustered collection by `_id`.
    pub fn records(&self, direction: Direction) -> RecordCursor {
        let mut records = self.all_records(direction);
        records.cursor = records
            .cursor
            .with_tombstone_ranges(self.0.state.document_tombstone_ranges());
        records
    }

    fn all_records(&self, direction: Direction) -> RecordCursor {
        RecordCursor {
            cursor: self.documents_view().cursor(direction).for_scan(),
            end: None,
            reader: self.clone(),
        }
    }

    /// Iterates over documents from `first` up to, but without, `end`, in natural order. A bound is
    /// a record id, big-endian, or in a clustered collection the key of an `_id`; `None` is
    /// unbounded. It ignores the tombstone ranges that other cursors recorded, because validation,
    /// backups and index builds must read everything.
    pub fn range(&self, first: Option<&[u8]>, end: Option<&[u8]>) -> Result<RecordCursor, Error> {
        let mut records = self.all_records(Direction::Forward);
        let bound = |place: &[u8]| {
            if self.0.is_clustered {
                Ok(EntryKey::first_of(place).into())
            } else {
                Ok::<EntryKeyBuf, Bug>(EntryKey::new(b"", record_of(place)?).into())
            }
        };
        if let Some(first) = first.map(bound).transpose()? {
            records.cursor.seek(&first.key, first.id)?;
        }
        records.end = end.map(bound).transpose()?;
        Ok(records)
    }

    /// Iterates over documents with record ids from `first` up to, but without, `end`. For ordinary
    /// collections only.
    pub fn record_range(&self, first: RecordId, end: RecordId) -> Result<RecordCursor, Error> {
        self.range(Some(&first.0.to_be_bytes()), Some(&end.0.to_be_bytes()))
    }

    /// Returns an upper estimate of the number of documents. It includes those that were deleted
    /// before and inserted after the snapshot.
    pub fn approximate_document_count(&self) -> u64 {
        let entries = self.documents_view().approximate_entries();
        entries.min(self.0.next_record.0)
    }

    /// Returns about `count` keys that divide the documents into parts of similar size, as bounds
    /// for [`range`](Self::range).
    pub fn split_keys(&self, count: u64) -> Result<Vec<Vec<u8>>, Error> {
        if self.0.is_clustered {
            return Ok(self.documents_view().split_keys(count)?);
        }
        let size = self.0.next_record.0.div_ceil(count.max(1)).max(1);
        let records = (0..self.0.next_record.0).step_by(size as usize);
        Ok(records.map(|id| id.to_be_bytes().to_vec()).collect())
    }

    /// Iterates over a clustered collection's `_id` keys by record id, for validation.
    pub(crate) fn id_keys(&self) -> Cursor {
        self.records_view().cursor(Direction::Forward).for_scan()
    }

    /// Returns the `_id` key of one record from that map.
    pub(crate) fn id_key_of(&self, id: RecordId) -> Result<Option<Bytes>, Error> {
        Ok(self
            .records_view()
            .get(&id.0.to_be_bytes(), RecordId::MIN)?)
    }

    /// Returns the map of an index, for the first index of a clustered collection the map by record
    /// id.
    fn entries_view(&self, number: usize) -> Result<&View, Error> {
        if self.0.is_clustered && number == 0 {
            Ok(self.records_view())
        } else {
            self.index_view(number)
        }
    }

    /// Returns the digest of an index's entries, if it is known without reading them; see
    /// [`View::digest`].
    pub(crate) fn digest(&self, number: usize) -> Result<Option<EntryDigest>, Error> {
        Ok(self.entries_view(number)?.digest())
    }

    /// Reads and checks all sections of an index; see [`windrow_fold::Section::check`].
    pub(crate) fn check_sections(
        &self,
        number: usize,
        interrupt: &mut PacedInterrupt<'_>,
    ) -> Result<(), Error> {
        let view = self.entries_view(number)?;
        for section in view.sections.present().iter() {
            let mut check = section.check()?;
            while check.check_next()? {
                interrupt.check()?;
            }
        }
        Ok(())
    }

    /// Returns the readable indexes. The first is the index on `_id`. Other methods identify an
    /// index by its place in this list.
    pub fn indexes(&self) -> &[ReaderIndex] {
        &self.0.indexes
    }

    /// Returns the start of [`indexes`](Self::indexes) without the search indexes: those that the
    /// planner may use.
    pub fn ordinary_indexes(&self) -> &[ReaderIndex] {
        self.0.indexes.get(..self.0.ordinary).unwrap_or_default()
    }

    /// Returns the search index with this name. While the index is being updated, this is the
    /// newest version that is ready.
    pub fn search_index(&self, name: &str) -> Option<SearchIndex> {
        let numbered = self.0.indexes.iter().enumerate().skip(self.0.ordinary);
        let versions = numbered.filter_map(|(number, index)| {
            let definition = index.definition().search.as_ref()?;
            (definition.name == name).then(|| SearchIndex {
                number,
                definition: definition.clone(),
            })
        });
        versions.max_by_key(|version| version.definition.version)
    }

    /// Returns an index and the cell of its map.
    fn index_at(&self, number: usize) -> Result<(&ReaderIndex, &OnceLock<View>), Error> {
        let found = self.0.indexes.get(number).zip(self.0.views.get(number));
        Ok(found.ok_or_else(|| {
            let indexes = self.0.indexes.len();
            Bug::new(format!(
                "a reader of {indexes} indexes has no index {number}"
            ))
        })?)
    }

    fn index_view(&self, number: usize) -> Result<&View, Error> {
        let (ReaderIndex { state }, view) = self.index_at(number)?;
        Ok(view.get_or_init(|| self.make_view(state)))
    }

    /// Iterates over the entries of an index during its build, for the build's own checks.
    pub(crate) fn entries_of_unready(&self, map: MapId) -> Result<EntryCursor, Error> {
        let found = self
            .0
            .state
            .indexes
            .iter()
            .find(|state| state.index.map == map);
        let Some(state) = found else {
            return Err(Error::IndexNotFound(format!("of map {map}")));
        };
        let cursor = self.make_view(state).cursor(Direction::Forward);
        self.keys_of(cursor, Direction::Forward)
    }

    /// Wraps a cursor of an index so that it skips the multikey marks, which sort before the keys.
    fn keys_of(&self, mut cursor: Cursor, direction: Direction) -> Result<EntryCursor, Error> {
        if direction == Direction::Forward {
            cursor.seek(BEHIND_MARKS, RecordId::MIN)?;
        }
        Ok(EntryCursor {
            cursor,
            reader: self.clone(),
        })
    }

    fn make_view(&self, state: &IndexState) -> View {
        self.view(&state.sections, |generation, position| {
            generation.index(&state.index, position)
        })
    }

    /// Returns which paths of an index contain arrays in the documents that this reader sees. A
    /// path may be reported until merges have removed its last array.
    pub fn multikey(&self, index: usize) -> Result<Multikey, Error> {
        self.check()?;
        let (ReaderIndex { state }, view) = self.index_at(index)?;
        let definition = &state.index.definition;
        if view.get().is_none() && definition.has_plain_keys() && self.backlog_only_inserts(state) {
            // If all paths that can contain arrays do, the commits without entries cannot add one.
            let existing = self.view(&state.sections, |generation, _| {
                generation.existing_index_parts(&state.index)
            });
            let multikey = multikey_of(&existing, definition)?;
            if multikey.is_whole(&definition.fields) {
                return Ok(multikey);
            }
        }
        multikey_of(self.index_view(index)?, definition)
    }

    /// Returns `true` if commits lack entries of an index, and all of them only insert.
    fn backlog_only_inserts(&self, state: &IndexState) -> bool {
        let own = self.0.own.iter().map(|own| &own.tail);
        let generations = self.0.state.generations().chain(own);
        let behind = generations.map(|generation| generation.backlog(&state.index));
        behind.max() == Some(Backlog::Inserts)
    }

    /// Iterates over the keys of an index, in order or backward.
    pub fn entries(&self, index: usize, direction: Direction) -> Result<EntryCursor, Error> {
        let (ReaderIndex { state }, _) = self.index_at(index)?;
        let cursor = self.index_view(index)?.cursor(direction);
        self.keys_of(
            cursor.with_tombstone_ranges(&state.tombstone_ranges),
            direction,
        )
    }

    /// Iterates over the keys and the marks of an index, for validation.
    pub(crate) fn all_entries(&self, index: usize) -> Result<Cursor, Error> {
        self.check()?;
        Ok(self.index_view(index)?.cursor(Direction::Forward))
    }

    /// Iterates over the entries of an index from exactly this key on. Filters avoid reads if the
    /// key is absent. Entries of later keys may be incomplete.
    pub fn postings(&self, index: usize, key: &[u8]) -> Result<EntryCursor, Error> {
        let (ReaderIndex { state }, _) = self.index_at(index)?;
        let mut cursor = self.view_of_key(index, key)?.cursor_for_key(key)?;
        cursor = cursor.with_tombstone_ranges(&state.tombstone_ranges);
        cursor.seek(key, RecordId::MIN)?;
        Ok(EntryCursor {
            cursor,
            reader: self.clone(),
        })
    }

    /// Returns the postings of a term in a text index. See [`PostingList`].
    pub fn posting_list(&self, index: usize, key: &[u8]) -> Result<PostingList, Error> {
        self.check()?;
        Ok(self.view_of_key(index, key)?.postings(key)?)
    }

    /// Returns the keys from `from` up to, but without, `to` in an index of postings, with their
    /// records. See [`KeyLists`].
    pub fn key_lists(&self, index: usize, from: &[u8], to: &[u8]) -> Result<KeyLists, Error> {
        self.check()?;
        Ok(self.index_view(index)?.key_lists(from, to)?)
    }

    /// Returns the map of an index for a reader of one key. Entries of other keys may be missing.
    fn view_of_key(&self, index: usize, key: &[u8]) -> Result<Cow<'_, View>, Error> {
        let (ReaderIndex { state }, view) = self.index_at(index)?;
        let probe = match view.get() {
            // A transaction's own tail is read as of the first use, so it is not searched again.
            None if self.0.own.is_none() => KeyProbe::new(&state.index.definition, key),
            _ => None,
        };
        Ok(match probe {
            Some(probe) => Cow::Owned(self.view(&state.sections, |generation, position| {
                generation.index_parts_of_key(&state.index, position, &probe)
            })),
            None => Cow::Borrowed(self.index_view(index)?),
        })
    }

    /// Returns the number of entries from `from` up to, but without, `to`, or `None` if they
    /// would have to be read for this; see [`View::count`].
    pub fn count_entries(
        &self,
        index: usize,
        from: &[u8],
        to: &[u8],
    ) -> Result<Option<u64>, Error> {
        self.check()?;
        let from = EntryKey::first_of(from.max(BEHIND_MARKS));
        Ok(self
            .index_view(index)?
            .count(from, EntryKey::first_of(to))?)
    }

    /// Returns about `count` keys, in order, that divide the entries of an index into parts of
    /// similar size.
    pub fn entry_split_keys(&self, index: usize, count: u64) -> Result<Vec<Vec<u8>>, Error> {
        self.check()?;
        Ok(self.index_view(index)?.split_keys(count)?)
    }

    /// Estimates the number of entries from `from` up to, but without, `to`; see
    /// [`View::approximate_count`].
    pub fn approximate_count(&self, index: usize, from: &[u8], to: &[u8]) -> Result<u64, Error> {
        let from = EntryKey::first_of(from.max(BEHIND_MARKS));
        let view = self.index_view(index)?;
        Ok(view.approximate_count(from, EntryKey::first_of(to))?)
    }
}

fn multikey_of(view: &View, definition: &Definition) -> Result<Multikey, Error> {
    let fields = definition.fields.len();
    Ok(match view.marks(MARK)? {
        Some(marks) => Multikey::from_marks(fields, marks.iter().map(Vec::as_slice)),
        None => Multikey::everywhere(fields),
    })
}
