//! Cursors: read a map in order, forward or backward. They merge the sources and show one version
//! of each entry.
//!
//! A source is a chain of sections or a sorted buffer of a tail. Sources are ordered by age. Of the
//! versions of an entry, the newest one at or before the snapshot in the youngest source counts.

mod merge;
mod source;

use std::sync::Arc;

use bytes::Bytes;
use windrow_storage::{Caching, Position, StorageError};

use crate::entry::{Direction, Entry, EntryKey, RecordId, same_key};
use crate::sections::Chain;
use crate::sorted_buffer::SortedBuffer;
use crate::tombstone_ranges::{RangeRecorder, TombstoneRanges};
pub use merge::MergeCursor;
use merge::{SeekScope, SeekTarget};
use source::EntrySource;

/// Shows the entries of a map that are visible at a snapshot, in order. A new cursor is before the
/// first entry.
#[derive(Debug)]
pub struct Cursor {
    merge: MergeCursor,
    snapshot: Position,
    /// The index of the first source that belongs to the transaction of the reader. All its
    /// versions are visible.
    first_own: u32,
    started: bool,
    /// The merge is still at the entry that was shown.
    shown: bool,
    last_key: Vec<u8>,
    last_id: Option<RecordId>,
    /// The cursor shows entries of this key only. Of other keys, some entries may be missing.
    only_key: Option<Vec<u8>>,
    /// The sources were chosen for `only_key`. It never changes.
    is_single_key: bool,
    recorder: Option<RangeRecorder>,
}

impl Cursor {
    /// Creates a cursor over chains and buffers, oldest first.
    pub(crate) fn new<'c>(
        chains: impl Iterator<Item = &'c Chain>,
        buffers: impl Iterator<Item = Arc<SortedBuffer>>,
        snapshot: Position,
        direction: Direction,
    ) -> Cursor {
        let chains =
            chains.map(|chain| EntrySource::chain(chain.clone(), direction, Caching::Keep));
        let buffers = buffers.map(|buffer| EntrySource::buffer(buffer, direction));
        Cursor {
            merge: MergeCursor::new(chains.chain(buffers).collect(), direction),
            snapshot,
            first_own: u32::MAX,
            started: false,
            shown: false,
            last_key: Vec::new(),
            last_id: None,
            only_key: None,
            is_single_key: false,
            recorder: None,
        }
    }

    /// Skips the recorded tombstone ranges, and records those that the cursor finds.
    pub fn with_tombstone_ranges(mut self, ranges: &Arc<TombstoneRanges>) -> Cursor {
        self.recorder = Some(RangeRecorder::new(ranges.clone(), self.merge.direction));
        self
    }

    /// Restricts the cursor to a key. Its sources need to have the entries of this key only.
    pub(crate) fn for_key(mut self, key: &[u8]) -> Cursor {
        self.only_key = Some(key.to_vec());
        self.is_single_key = true;
        self
    }

    /// Makes all versions in the youngest `sources` sources visible, whatever their positions: they
    /// are the writes of the reader's transaction.
    pub(crate) fn with_own_sources(mut self, sources: usize) -> Cursor {
        let all = self.merge.sources.len();
        assert!(
            sources <= all,
            "{sources} of {all} sources belong to a transaction"
        );
        self.first_own = (all - sources) as u32;
        self
    }

    /// Returns `true` if the next entry is from a source of the reader's transaction.
    #[inline]
    fn is_own(&self) -> bool {
        let first = self.merge.heap.first();
        first.is_some_and(|heap_entry| heap_entry.source >= self.first_own)
    }

    /// Caches blocks only if the cache has room, since a long scan would evict everything else.
    pub fn for_scan(mut self) -> Cursor {
        let sources = self.merge.sources.iter_mut();
        sources.for_each(|source| source.set_caching(Caching::KeepWhereRoomIs));
        self
    }

    /// Moves before the first entry at or after an entry key, or, backward, before the last one at
    /// or before it.
    pub fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        let scope = if self.is_single_key {
            SeekScope::OnlyKey
        } else {
            SeekScope::AllKeys
        };
        self.seek_within(EntryKey::new(key, id), scope)
    }

    /// Moves before the first entry of exactly this key. Of keys that follow, some entries may be
    /// missing. Works forward only. Sections whose filters exclude the key are not read.
    pub fn seek_key(&mut self, key: &[u8]) -> Result<(), StorageError> {
        debug_assert_eq!(self.merge.direction, Direction::Forward);
        self.seek_within(EntryKey::first_of(key), SeekScope::FilteredKey)
    }

    fn seek_within(&mut self, to: EntryKey<'_>, scope: SeekScope) -> Result<(), StorageError> {
        self.stop_recording();
        self.restrict_to(to.key, scope);
        let range = self.recorder.as_ref().and_then(|it| it.find(to.key, to.id));
        let target = SeekTarget {
            to,
            scope,
            snapshot: self.snapshot,
        };
        let mut saved = 0;
        match &range {
            Some(ends) => {
                let has_skipped = self.merge.seek_behind(target, ends)?;
                saved = u64::from(has_skipped) * ends.entries();
            }
            None if scope == SeekScope::FilteredKey => self.merge.seek_key(to.key)?,
            None => self.merge.seek(to.key, to.id)?,
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(to.key, to.id, scope != SeekScope::AllKeys, saved);
        }
        (self.started, self.shown, self.last_id) = (true, false, None);
        Ok(())
    }

    /// Restricts the cursor to a key, or lifts the restriction.
    fn restrict_to(&mut self, key: &[u8], scope: SeekScope) {
        match (&mut self.only_key, scope) {
            (only, SeekScope::AllKeys) => *only = None,
            (Some(only), SeekScope::OnlyKey) => debug_assert_eq!(only, key),
            (Some(only), _) => {
                only.clear();
                only.extend_from_slice(key);
            }
            (only, _) => *only = Some(key.to_vec()),
        }
    }

    /// Moves to the next entry. Returns `false` at the end. A cursor of one key that has returned
    /// `false` must be moved by a seek before the next call.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool, StorageError> {
        if !self.started {
            self.start()?;
        }
        let is_recording = |recorder: &RangeRecorder| recorder.is_recording();
        if self.recorder.as_ref().is_some_and(is_recording) {
            self.advance_recording()
        } else {
            self.advance_visible()
        }
    }

    /// Moves before the first entry of the map, or of the only key.
    fn start(&mut self) -> Result<(), StorageError> {
        match (self.only_key.clone(), &self.recorder, self.merge.direction) {
            (Some(key), ..) => self.seek(&key, RecordId::MIN)?,
            (None, Some(_), Direction::Forward) => self.seek(b"", RecordId::MIN)?,
            _ => self.merge.start()?,
        }
        self.started = true;
        Ok(())
    }

    /// Moves to the first entry after a seek, and records the range of tombstones before it.
    #[inline(never)]
    fn advance_recording(&mut self) -> Result<bool, StorageError> {
        let advanced = self.advance_visible();
        match advanced {
            Ok(is_shown) => self.record_range(is_shown),
            Err(_) => self.stop_recording(),
        }
        advanced
    }

    /// Moves to the next visible entry. Inlined into both callers, since it runs for every entry.
    #[inline(always)]
    fn advance_visible(&mut self) -> Result<bool, StorageError> {
        if std::mem::take(&mut self.shown) {
            self.merge.advance()?;
        }
        while let Some(entry) = self.merge.current() {
            let repeated = self.last_id == Some(entry.id) && same_key(&self.last_key, entry.key);
            if !repeated && (entry.position <= self.snapshot || self.is_own()) {
                if !same_key(&self.last_key, entry.key) {
                    self.last_key.clear();
                    self.last_key.extend_from_slice(entry.key);
                }
                self.last_id = Some(entry.id);
                if !entry.deleted {
                    self.shown = true;
                    return Ok(true);
                }
                if self.leaves_key(&self.last_key) {
                    return Ok(false);
                }
                self.count_skipped();
                self.merge.advance()?;
            } else if repeated {
                self.merge.move_first(EntrySource::skip_versions)?;
            } else if self.leaves_key(entry.key) {
                return Ok(false);
            } else {
                let snapshot = self.snapshot;
                self.merge.move_first(|it| it.skip_newer(snapshot))?;
            }
        }
        self.merge.check_end()?;
        Ok(false)
    }

    /// Returns `true` if a key is not the one that the cursor is restricted to.
    #[inline]
    fn leaves_key(&self, key: &[u8]) -> bool {
        let only = self.only_key.as_ref();
        only.is_some_and(|only| !same_key(only, key))
    }

    /// Counts a tombstone.
    #[inline]
    fn count_skipped(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.count_skipped();
        }
    }

    /// Records nothing until the next seek.
    fn stop_recording(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.stop();
        }
    }

    /// Records the tombstones before the entry that is shown, or before the end. Deletions of a
    /// transaction are not recorded: other readers still see the entries.
    fn record_range(&mut self, is_shown: bool) {
        let sees_own = (self.first_own as usize) < self.merge.sources.len();
        if let Some(recorder) = &mut self.recorder {
            if sees_own {
                return recorder.stop();
            }
            let shown = self.last_id.filter(|_| is_shown);
            let shown = shown.map(|id| EntryKey::new(&self.last_key, id));
            debug_assert_eq!(shown.is_some(), is_shown);
            recorder.finish(shown, self.snapshot);
        }
    }

    /// Returns the key of the entry.
    pub fn key(&self) -> &[u8] {
        &self.last_key
    }

    /// Returns the record id of the entry.
    ///
    /// # Panics
    ///
    /// Panics if the cursor has not been at an entry since its last seek.
    #[inline]
    pub fn id(&self) -> RecordId {
        self.last_id.unwrap_or_else(|| no_entry("id"))
    }

    /// Returns `true` if the entry is before an entry key.
    #[inline]
    pub fn is_before(&self, key: &[u8], id: RecordId) -> bool {
        EntryKey::new(&self.last_key, self.id()) < EntryKey::new(key, id)
    }

    /// Returns the entry that is shown.
    #[inline]
    fn shown_entry(&self, what: &str) -> Entry<'_> {
        debug_assert!(self.shown, "the {what} of a cursor that shows no entry");
        self.merge.current().unwrap_or_else(|| no_entry(what))
    }

    /// Returns the position of the entry. [`Position::ZERO`] if the entry is settled.
    ///
    /// # Panics
    ///
    /// Panics if the cursor shows no entry.
    pub fn position(&self) -> Position {
        self.shown_entry("position").position
    }

    /// Returns the payload of the entry.
    ///
    /// # Panics
    ///
    /// Panics if the cursor shows no entry.
    pub fn payload(&self) -> &[u8] {
        self.shown_entry("payload").payload
    }

    /// Returns the payload of the entry as shared bytes, which outlive the cursor.
    ///
    /// # Panics
    ///
    /// Panics if the cursor shows no entry.
    pub fn payload_bytes(&mut self) -> Bytes {
        debug_assert!(self.shown, "the payload of a cursor that shows no entry");
        let first = self.merge.heap.first().copied();
        let payload = first
            .and_then(|heap_entry| self.merge.sources[heap_entry.source as usize].payload_bytes());
        payload.unwrap_or_else(|| no_entry("payload"))
    }
}

#[cold]
fn no_entry(what: &str) -> ! {
    panic!("the {what} of a cursor without an entry was requested");
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_invariant::tolerate_bugs;

    use crate::entry_buffer::EntryBufferBuilder;

    /// Records 0 to 199 of the keys 1, 2 and 3. All of key 1 are deleted later, and half of key 2.
    fn buffers() -> [Arc<SortedBuffer>; 2] {
        let buffer = |deleted: bool, ids: &[(u8, std::ops::Range<u64>)], position: u64| {
            let mut builder = EntryBufferBuilder::new(Position(position), 0);
            for (key, id) in ids
                .iter()
                .flat_map(|(key, ids)| ids.clone().map(move |id| (key, id)))
            {
                builder.add(Entry {
                    key: &[*key],
                    id: RecordId(id),
                    position: Position(position),
                    deleted,
                    payload: b"",
                });
            }
            Arc::new(SortedBuffer::from_buffer(&builder.finish()))
        };
        let put = buffer(false, &[(1, 0..200), (2, 0..200), (3, 0..200)], 10);
        let deleted = buffer(true, &[(1, 0..200), (2, 0..100)], 20);
        [put, deleted]
    }

    fn cursor(direction: Direction, snapshot: u64, ranges: &Arc<TombstoneRanges>) -> Cursor {
        let snapshot = Position(snapshot);
        Cursor::new([].iter(), buffers().into_iter(), snapshot, direction)
            .with_tombstone_ranges(ranges)
    }

    /// The entries after a seek, as their keys and ids.
    #[derive(Debug, PartialEq)]
    struct SeekResult {
        in_merge: Option<(u8, u64)>,
        /// The first entry that the cursor returns.
        returned: Option<(u8, u64)>,
    }

    fn seek(mut cursor: Cursor, key: u8, id: u64) -> SeekResult {
        cursor.seek(&[key], RecordId(id)).unwrap();
        let current = cursor.merge.current();
        let in_merge = current.and_then(|entry| Some((*entry.key.first()?, entry.id.0)));
        let has_entry = cursor.next().unwrap();
        SeekResult {
            in_merge,
            returned: has_entry.then(|| (cursor.key()[0], cursor.id().0)),
        }
    }

    fn result(in_merge: Option<(u8, u64)>, returned: Option<(u8, u64)>) -> SeekResult {
        SeekResult { in_merge, returned }
    }

    #[test]
    fn later_cursors_start_behind_tombstone_ranges() {
        let ranges = Arc::default();
        let forward = |snapshot| cursor(Direction::Forward, snapshot, &ranges);
        assert_eq!(
            seek(forward(20), 1, 5),
            result(Some((1, 5)), Some((2, 100)))
        );
        assert_eq!(seek(forward(20), 1, 5).in_merge, Some((2, 100)));
        assert_eq!(seek(forward(90), 2, 7).in_merge, Some((2, 100)));
        // Before the range, and at a snapshot at which it was not deleted yet.
        assert_eq!(seek(forward(20), 1, 4).in_merge, Some((1, 4)));
        assert_eq!(seek(forward(19), 1, 5).returned, Some((1, 5)));
        let backward = || cursor(Direction::Backward, 20, &ranges);
        assert_eq!(seek(backward(), 2, 99), result(Some((2, 99)), None));
        assert_eq!(seek(backward(), 2, 99), result(None, None));
        assert_eq!(seek(backward(), 1, 99), result(None, None));
    }

    /// The cursor answered record 0, which does not exist.
    #[test]
    #[should_panic(expected = "the id of a cursor without an entry")]
    fn a_cursor_without_an_entry_has_no_id() {
        let mut cursor = cursor(Direction::Forward, 5, &Arc::default());
        assert!(!cursor.next().unwrap());
        cursor.id();
    }

    /// A merge that was advanced behind its end did not move. A caller that waited for its end
    /// would have waited forever.
    #[test]
    fn advancing_behind_the_end_is_a_bug() {
        let mut merge = MergeCursor::from_buffers(buffers()).unwrap();
        while merge.current().is_some() {
            merge.advance().unwrap();
        }
        merge.check_end().unwrap();
        let behind = tolerate_bugs(|| merge.advance());
        assert!(matches!(behind, Err(StorageError::Bug(_))), "{behind:?}");
        let behind = tolerate_bugs(|| merge.sources[0].advance());
        assert!(matches!(behind, Err(StorageError::Bug(_))), "{behind:?}");
    }

    #[test]
    fn a_cursor_of_one_key_ends_with_it() {
        let ranges = Arc::default();
        let of_key = || cursor(Direction::Forward, 20, &ranges).for_key(&[1]);
        assert!(!of_key().next().unwrap());
        let before = cursor(Direction::Forward, 10, &ranges).for_key(&[1]);
        assert_eq!(seek(before, 1, 0), result(Some((1, 0)), Some((1, 0))));
        assert_eq!(seek(of_key(), 1, 0), result(None, None));
        // No entry of the key is visible. The cursor does not read other keys.
        let mut early = cursor(Direction::Forward, 5, &ranges);
        early.seek_key(&[1]).unwrap();
        assert!(!early.next().unwrap());
        assert_eq!(early.merge.current().map(|entry| entry.key), Some(&[2][..]));
        // It records nothing about other keys.
        let other = cursor(Direction::Forward, 20, &ranges);
        assert_eq!(seek(other, 2, 0), result(Some((2, 0)), Some((2, 100))));
    }
}
