//! Sources read as one, in order.

use std::cmp::Ordering;
use std::sync::Arc;

use windrow_invariant::Bug;
use windrow_storage::{Caching, Position, StorageError};

use super::source::EntrySource;
use crate::entry::{Direction, Entry, EntryKey, RecordId, same_key};
use crate::section::Section;
use crate::sections::{Chain, chains_of};
use crate::sorted_buffer::SortedBuffer;
use crate::tombstone_ranges::RangeEnds;

/// All versions of all sources, in order. Merging keeps what it must of them; [`Cursor`](super::Cursor) shows what
/// a snapshot sees.
#[derive(Debug)]
pub struct MergeCursor {
    pub(super) sources: Vec<EntrySource>,
    /// A heap of the sources that have a current entry; the first comes first.
    pub(super) heap: Vec<HeapEntry>,
    pub(super) direction: Direction,
    /// The numbers of the sources that have past versions.
    past: Vec<u32>,
}

/// Where a source stands: mostly the first bytes of its key tell which of two comes first. Not kept where
/// it is the only one.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapEntry {
    head: u128,
    pub(super) source: u32,
}

/// What is asked for from a place on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SeekScope {
    AllKeys,
    /// One key, for which the sources were chosen.
    OnlyKey,
    /// One key; sources are asked by their filters.
    FilteredKey,
}

/// Where a cursor is sent.
#[derive(Clone, Copy)]
pub(super) struct SeekTarget<'k> {
    pub key: &'k [u8],
    pub id: RecordId,
    pub within: SeekScope,
    /// The position of the log that is read at.
    pub position: Position,
}

impl SeekTarget<'_> {
    /// Whether something from a place on may be asked for.
    fn asks_for(&self, to: EntryKey<'_>) -> bool {
        self.within == SeekScope::AllKeys || to.id < RecordId::MAX && same_key(to.key, self.key)
    }
}

impl MergeCursor {
    pub(super) fn new(sources: Vec<EntrySource>, direction: Direction) -> MergeCursor {
        MergeCursor {
            sources,
            heap: Vec::new(),
            direction,
            past: Vec::new(),
        }
    }

    /// All entries of these chains, oldest chain first. For merges: reads past the cache.
    pub fn from_chains<'c>(
        chains: impl Iterator<Item = &'c Chain>,
    ) -> Result<MergeCursor, StorageError> {
        let sources = chains
            .map(|chain| EntrySource::chain(chain.clone(), Direction::Forward, Caching::Past));
        let mut merge = MergeCursor::new(sources.collect(), Direction::Forward);
        merge.start()?;
        Ok(merge)
    }

    /// All entries of these sections, oldest first, each with whether it has past versions. For merges.
    pub fn from_sections(by_age: &[(Arc<Section>, bool)]) -> Result<MergeCursor, StorageError> {
        let (mut chains, mut past) = (Vec::new(), Vec::new());
        for alike in by_age.chunk_by(|(_, one), (_, other)| one == other) {
            let first = chains.len();
            let sections = alike.iter().map(|(section, _)| section);
            chains.extend(chains_of(sections));
            if alike.first().is_some_and(|(_, is_past)| *is_past) {
                past.extend(first as u32..chains.len() as u32);
            }
        }
        let merge = MergeCursor::from_chains(chains.iter())?;
        Ok(MergeCursor { past, ..merge })
    }

    /// All entries of these buffers, oldest first. For folds.
    pub fn from_buffers(
        buffers: impl IntoIterator<Item = Arc<SortedBuffer>>,
    ) -> Result<MergeCursor, StorageError> {
        let sources = buffers
            .into_iter()
            .map(|buffer| EntrySource::buffer(buffer, Direction::Forward));
        let mut merge = MergeCursor::new(sources.collect(), Direction::Forward);
        merge.start()?;
        Ok(merge)
    }

    pub(super) fn start(&mut self) -> Result<(), StorageError> {
        self.sources.iter_mut().try_for_each(EntrySource::start)?;
        self.build_heap();
        Ok(())
    }

    pub(super) fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        self.sources
            .iter_mut()
            .try_for_each(|source| source.seek(key, id))?;
        self.build_heap();
        Ok(())
    }

    /// The same, but behind a interval in sources that have nothing newer than it; whether there are such. A
    /// transaction's own are newer than all that it may know to be gone.
    pub(super) fn seek_behind(
        &mut self,
        sought: SeekTarget<'_>,
        gone: &RangeEnds,
    ) -> Result<bool, StorageError> {
        let SeekTarget { key, id, .. } = sought;
        let mut spares = false;
        for source in &mut self.sources {
            let newest = source.newest();
            let end = gone.end(
                EntryKey::new(key, id),
                self.direction,
                newest,
                sought.position,
            );
            spares |= end.is_some();
            match end {
                Some(Some(to)) if sought.asks_for(to) => source.seek(to.key, to.id)?,
                Some(_) => source.end(),
                None if sought.within == SeekScope::FilteredKey => source.seek_key(key)?,
                None => source.seek(key, id)?,
            }
        }
        self.build_heap();
        Ok(spares)
    }

    pub(super) fn seek_key(&mut self, key: &[u8]) -> Result<(), StorageError> {
        let mut sources = self.sources.iter_mut();
        sources.try_for_each(|source| source.seek_key(key))?;
        self.build_heap();
        Ok(())
    }

    fn build_heap(&mut self) {
        self.heap.clear();
        let current = self
            .sources
            .iter()
            .zip(0u32..)
            .filter(|(source, _)| source.has_entry());
        self.heap.extend(current.map(|(one, source)| HeapEntry {
            head: one.head(),
            source,
        }));
        for at in (0..self.heap.len() / 2).rev() {
            self.sift_down(at);
        }
    }

    /// Whether one source comes before another: by place, then the younger first.
    #[inline]
    fn comes_before(&self, one: HeapEntry, other: HeapEntry) -> bool {
        let heads = match self.direction {
            Direction::Forward => one.head.cmp(&other.head),
            Direction::Backward => other.head.cmp(&one.head),
        };
        match heads {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => self.compare_places(one, other) == Ordering::Less,
        }
    }

    fn compare_places(&self, one: HeapEntry, other: HeapEntry) -> Ordering {
        let entry = |heap_entry: HeapEntry| self.sources[heap_entry.source as usize].current();
        let places = match (entry(one), entry(other)) {
            (Some(a), Some(b)) if self.direction == Direction::Forward => {
                a.entry_key().cmp(&b.entry_key())
            }
            (Some(a), Some(b)) => b.entry_key().cmp(&a.entry_key()),
            // Such a source is found when its entry comes first: see `check_end`.
            _ => Ordering::Equal,
        };
        places.then(other.source.cmp(&one.source))
    }

    /// Lets the heap_entry at `at` sink to where it belongs.
    fn sift_down(&mut self, mut at: usize) {
        let Some(sinking) = self.heap.get(at).copied() else {
            return;
        };
        loop {
            let mut child = 2 * at + 1;
            let Some(left) = self.heap.get(child).copied() else {
                break;
            };
            let mut first = left;
            if let Some(right) = self.heap.get(child + 1).copied()
                && self.comes_before(right, left)
            {
                (child, first) = (child + 1, right);
            }
            if !self.comes_before(first, sinking) {
                break;
            }
            self.heap[at] = first;
            at = child;
        }
        self.heap[at] = sinking;
    }

    fn top(&self) -> Option<&EntrySource> {
        self.heap
            .first()
            .map(|heap_entry| &self.sources[heap_entry.source as usize])
    }

    /// The entry that comes next.
    pub fn current(&self) -> Option<Entry<'_>> {
        self.top()?.current()
    }

    /// Fails where there is no [current](Self::current) entry and yet a source that has one: what
    /// follows would be left out.
    pub fn check_end(&self) -> Result<(), Bug> {
        match self.heap.is_empty() {
            true => Ok(()),
            false => Err(Bug::new("a merge ends before its sources")),
        }
    }

    /// The error of an entry that does not come behind the one before. Sections are read from the disk;
    /// buffers are our own.
    #[cold]
    pub fn out_of_order(&self) -> StorageError {
        let what = "entries that are to be written are not in order".to_owned();
        match self.sources.iter().all(EntrySource::is_chunk) {
            true => Bug::new(what).into(),
            false => StorageError::Damaged {
                place: "a section that is merged".to_owned(),
                what,
            },
        }
    }

    /// Goes past the current entry.
    pub fn advance(&mut self) -> Result<(), StorageError> {
        self.move_first(EntrySource::advance)
    }

    /// Whether the current entry stands in a past section.
    pub fn is_past(&self) -> bool {
        let first = self.heap.first();
        first.is_some_and(|first| self.past.contains(&first.source))
    }

    /// Lets the source of the current entry go on.
    pub(super) fn move_first(
        &mut self,
        advance_visible: impl FnOnce(&mut EntrySource) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let is_alone = self.heap.len() == 1;
        let Some(first) = self.heap.first_mut() else {
            return Err(Bug::new("a merge goes on behind its end").into());
        };
        let source = &mut self.sources[first.source as usize];
        advance_visible(source)?;
        if !is_alone {
            first.head = source.head();
        }
        if !source.has_entry() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Ok(())
    }
}
