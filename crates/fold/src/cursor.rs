//! Reading a map in order, forward or backward: sources merged, versions resolved.
//!
//! A source is a chain of sections or a tail buffer. Sources are by_age by age: of entries at the
//! same place the youngest source's newest version at or before the snapshot counts.

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

/// Shows the entries of a map that a snapshot sees, in order.
#[derive(Debug)]
pub struct Cursor {
    merge: MergeCursor,
    snapshot: Position,
    /// The first of the sources of which everything is seen.
    own: u32,
    started: bool,
    /// Whether the merge still stands on the entry that was shown.
    shown: bool,
    last_key: Vec<u8>,
    last_id: Option<RecordId>,
    /// The only key that is asked for; of others, some entries may be missing.
    only_key: Option<Vec<u8>>,
    /// Whether its sources were chosen for that key.
    has_one_key: bool,
    gone: Option<RangeRecorder>,
}

impl Cursor {
    /// Over these chains and buffers, oldest first, before the first entry that the snapshot sees.
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
            own: u32::MAX,
            started: false,
            shown: false,
            last_key: Vec::new(),
            last_id: None,
            only_key: None,
            has_one_key: false,
            gone: None,
        }
    }

    /// Passes over what others have found gone, and notes what it finds.
    pub fn with_tombstone_ranges(mut self, gone: &Arc<TombstoneRanges>) -> Cursor {
        self.gone = Some(RangeRecorder::new(gone.clone(), self.merge.direction));
        self
    }

    /// Its sources are those that may have this key, to which alone it is sent.
    pub(crate) fn of_key(mut self, key: &[u8]) -> Cursor {
        self.only_key = Some(key.to_vec());
        self.has_one_key = true;
        self
    }

    /// Sees everything that so many of the youngest sources have, whatever its position.
    pub(crate) fn with_own_sources(mut self, sources: usize) -> Cursor {
        let all = self.merge.sources.len();
        assert!(
            sources <= all,
            "the last {sources} of {all} sources are seen whole"
        );
        self.own = (all - sources) as u32;
        self
    }

    /// Whether the entry that comes next is from a source of which everything is seen.
    #[inline]
    fn is_own(&self) -> bool {
        let first = self.merge.heap.first();
        first.is_some_and(|heap_entry| heap_entry.source >= self.own)
    }

    /// Lets the cache keep blocks only where it has room: for long scans, which would push everything
    /// else out.
    pub fn for_scan(mut self) -> Cursor {
        let sources = self.merge.sources.iter_mut();
        sources.for_each(|source| source.set_caching(Caching::KeepWhereRoomIs));
        self
    }

    /// The next entry will be the first at or after this place (backward: the last at or before).
    pub fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        let within = match self.has_one_key {
            true => SeekScope::OnlyKey,
            false => SeekScope::AllKeys,
        };
        self.go_to(key, id, within)
    }

    /// The next entries will be those of exactly this key; of other keys that follow, some may be
    /// missing. Forward only: filters spare reads where the key is not there.
    pub fn seek_key(&mut self, key: &[u8]) -> Result<(), StorageError> {
        debug_assert_eq!(self.merge.direction, Direction::Forward);
        self.go_to(key, RecordId::MIN, SeekScope::FilteredKey)
    }

    fn go_to(&mut self, key: &[u8], id: RecordId, within: SeekScope) -> Result<(), StorageError> {
        self.stop_recording();
        self.ask_for(key, within);
        let behind = self.gone.as_ref().and_then(|it| it.around(key, id));
        let sought = SeekTarget {
            key,
            id,
            within,
            position: self.snapshot,
        };
        let mut spared = 0;
        match &behind {
            Some(ends) => {
                let spares = self.merge.seek_behind(sought, ends)?;
                spared = u64::from(spares) * ends.entries();
            }
            None if within == SeekScope::FilteredKey => self.merge.seek_key(key)?,
            None => self.merge.seek(key, id)?,
        }
        if let Some(recorder) = &mut self.gone {
            recorder.begin(key, id, within != SeekScope::AllKeys, spared);
        }
        (self.started, self.shown, self.last_id) = (true, false, None);
        Ok(())
    }

    /// Only a key is asked for, or everything.
    fn ask_for(&mut self, key: &[u8], within: SeekScope) {
        match (&mut self.only_key, within) {
            (only, SeekScope::AllKeys) => *only = None,
            (Some(only), SeekScope::OnlyKey) => debug_assert_eq!(only, key),
            (Some(only), _) => {
                only.clear();
                only.extend_from_slice(key);
            }
            (only, _) => *only = Some(key.to_vec()),
        }
    }

    /// Goes to the next entry; false at the end, which of one key is where it is left: a cursor that said so
    /// is sent elsewhere before it is asked again.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<bool, StorageError> {
        if !self.started {
            self.start()?;
        }
        match self.gone.as_ref().is_some_and(RangeRecorder::is_recording) {
            true => self.advance_recording(),
            false => self.advance_visible(),
        }
    }

    /// Before the first entry of all, where it was sent nowhere.
    fn start(&mut self) -> Result<(), StorageError> {
        match (self.only_key.clone(), &self.gone, self.merge.direction) {
            (Some(key), ..) => self.seek(&key, RecordId::MIN)?,
            (None, Some(_), Direction::Forward) => self.seek(b"", RecordId::MIN)?,
            _ => self.merge.start()?,
        }
        self.started = true;
        Ok(())
    }

    /// The same for the first entry behind a place that it was sent to.
    #[inline(never)]
    fn advance_recording(&mut self) -> Result<bool, StorageError> {
        let went = self.advance_visible();
        match went {
            Ok(is_shown) => self.record_range(is_shown),
            Err(_) => self.stop_recording(),
        }
        went
    }

    /// A part of both: called for every entry.
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
                self.pass();
                self.merge.advance()?;
            } else if repeated {
                self.merge.move_first(EntrySource::pass_place)?;
            } else if self.leaves_key(entry.key) {
                return Ok(false);
            } else {
                let snapshot = self.snapshot;
                self.merge.move_first(|it| it.pass_newer(snapshot))?;
            }
        }
        self.merge.check_end()?;
        Ok(false)
    }

    /// Whether a key is another one than the only one that is asked for.
    #[inline]
    fn leaves_key(&self, key: &[u8]) -> bool {
        let only = self.only_key.as_ref();
        only.is_some_and(|only| !same_key(only, key))
    }

    /// Counts an entry that is not shown.
    #[inline]
    fn pass(&mut self) {
        if let Some(recorder) = &mut self.gone {
            recorder.pass();
        }
    }

    /// What is passed from here on is not noted, until the cursor is sent to a place.
    fn stop_recording(&mut self) {
        if let Some(recorder) = &mut self.gone {
            recorder.stop();
        }
    }

    /// Notes what was gone before the entry that is shown, if one is. What a transaction has taken out is
    /// not gone for others.
    fn record_range(&mut self, is_shown: bool) {
        let sees_own = (self.own as usize) < self.merge.sources.len();
        if let Some(recorder) = &mut self.gone {
            if sees_own {
                return recorder.stop();
            }
            let shown = self.last_id.filter(|_| is_shown);
            let place = shown.map(|id| EntryKey::new(&self.last_key, id));
            debug_assert_eq!(place.is_some(), is_shown);
            recorder.end(place, self.snapshot);
        }
    }

    /// The key of the entry that [`next`](Self::next) went to.
    pub fn key(&self) -> &[u8] {
        &self.last_key
    }

    /// Its record id.
    ///
    /// # Panics
    /// Panics if the cursor has been at no entry since it was sent to a place.
    #[inline]
    pub fn id(&self) -> RecordId {
        self.last_id.unwrap_or_else(|| no_entry("id"))
    }

    /// Whether it stands before a place.
    #[inline]
    pub fn is_before(&self, key: &[u8], id: RecordId) -> bool {
        EntryKey::new(&self.last_key, self.id()) < EntryKey::new(key, id)
    }

    /// The entry that is shown.
    #[inline]
    fn shown_entry(&self, what: &str) -> Entry<'_> {
        debug_assert!(self.shown, "the {what} of a cursor that shows nothing");
        self.merge.current().unwrap_or_else(|| no_entry(what))
    }

    /// The log position that made it; 0 where that is older than every snapshot.
    ///
    /// # Panics
    /// Panics if the cursor shows no entry.
    pub fn position(&self) -> Position {
        self.shown_entry("position").position
    }

    /// Its payload.
    ///
    /// # Panics
    /// Panics if the cursor shows no entry.
    pub fn payload(&self) -> &[u8] {
        self.shown_entry("payload").payload
    }

    /// Its payload as a view that outlives the cursor.
    ///
    /// # Panics
    /// Panics if the cursor shows no entry.
    pub fn payload_bytes(&mut self) -> Bytes {
        debug_assert!(self.shown, "the payload of a cursor that shows nothing");
        let first = self.merge.heap.first().copied();
        let payload = first
            .and_then(|heap_entry| self.merge.sources[heap_entry.source as usize].payload_bytes());
        payload.unwrap_or_else(|| no_entry("payload"))
    }
}

#[cold]
fn no_entry(what: &str) -> ! {
    panic!("a cursor that shows no entry is asked for its {what}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_invariant::tolerate_bugs;

    use crate::entry_buffer::EntryBufferBuilder;

    /// Records 0 to 199 of each of the keys 1, 2 and 3, of which all of key 1 are gone and half of key 2.
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
        let gone = buffer(true, &[(1, 0..200), (2, 0..100)], 20);
        [put, gone]
    }

    fn cursor(direction: Direction, snapshot: u64, gone: &Arc<TombstoneRanges>) -> Cursor {
        let snapshot = Position(snapshot);
        Cursor::new([].iter(), buffers().into_iter(), snapshot, direction)
            .with_tombstone_ranges(gone)
    }

    type At = Option<(u8, u64)>;

    /// Where a cursor stands before it is moved, and what it shows first.
    fn sought(mut cursor: Cursor, key: u8, id: u64) -> (At, At) {
        cursor.seek(&[key], RecordId(id)).unwrap();
        let current = cursor.merge.current();
        let stands = current.and_then(|entry| Some((*entry.key.first()?, entry.id.0)));
        let shows = cursor.next().unwrap();
        (stands, shows.then(|| (cursor.key()[0], cursor.id().0)))
    }

    #[test]
    fn who_comes_after_begins_behind_what_is_gone() {
        let gone = Arc::default();
        let forward = |snapshot| cursor(Direction::Forward, snapshot, &gone);
        assert_eq!(sought(forward(20), 1, 5), (Some((1, 5)), Some((2, 100))));
        assert_eq!(sought(forward(20), 1, 5).0, Some((2, 100)));
        assert_eq!(sought(forward(90), 2, 7).0, Some((2, 100)));
        // Before the interval, and where it was not gone yet.
        assert_eq!(sought(forward(20), 1, 4).0, Some((1, 4)));
        assert_eq!(sought(forward(19), 1, 5).1, Some((1, 5)));
        let backward = || cursor(Direction::Backward, 20, &gone);
        assert_eq!(sought(backward(), 2, 99), (Some((2, 99)), None));
        assert_eq!(sought(backward(), 2, 99), (None, None));
        assert_eq!(sought(backward(), 1, 99), (None, None));
    }

    /// It answered record 0, which is nobody's.
    #[test]
    #[should_panic(expected = "asked for its id")]
    fn a_cursor_that_was_at_no_entry_has_no_id() {
        let mut cursor = cursor(Direction::Forward, 5, &Arc::default());
        assert!(!cursor.next().unwrap());
        cursor.id();
    }

    /// A merge that was moved on behind its end stood still, so that who waited for its end would have
    /// asked for ever.
    #[test]
    fn a_merge_does_not_go_on_behind_its_end() {
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
        let gone = Arc::default();
        let of_key = || cursor(Direction::Forward, 20, &gone).of_key(&[1]);
        assert!(!of_key().next().unwrap());
        let before = cursor(Direction::Forward, 10, &gone).of_key(&[1]);
        assert_eq!(sought(before, 1, 0), (Some((1, 0)), Some((1, 0))));
        assert_eq!(sought(of_key(), 1, 0), (None, None));
        // Nothing of the key is to be seen: it does not go through others.
        let mut early = cursor(Direction::Forward, 5, &gone);
        early.seek_key(&[1]).unwrap();
        assert!(!early.next().unwrap());
        assert_eq!(early.merge.current().map(|entry| entry.key), Some(&[2][..]));
        // It says nothing of other keys.
        let other = cursor(Direction::Forward, 20, &gone);
        assert_eq!(sought(other, 2, 0), (Some((2, 0)), Some((2, 100))));
    }
}
