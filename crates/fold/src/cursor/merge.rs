//! The merge of several sources into one order.

use std::cmp::Ordering;
use std::sync::Arc;

use windrow_invariant::Bug;
use windrow_storage::{Caching, Position, StorageError};

use super::source::EntrySource;
use crate::entry::{Direction, Entry, EntryKey, RecordId, same_key};
use crate::sections::{Chain, RankedSection, chains_of};
use crate::sorted_buffer::SortedBuffer;
use crate::tombstone_ranges::{RangeEnds, Skip};

/// Iterates over all versions of all sources in order: by entry key, the versions of younger
/// sources first. Folds and merges read it. A [`Cursor`](super::Cursor) shows the visible versions
/// of it.
#[derive(Debug)]
pub struct MergeCursor {
    pub(super) sources: Vec<EntrySource>,
    /// A heap of the sources that have a current entry, with the next entry at the top.
    pub(super) heap: Vec<HeapEntry>,
    pub(super) direction: Direction,
    /// The indexes of the sources that are past sections.
    past: Vec<u32>,
}

/// A source in the heap. The head of its current key mostly decides the order. It is not updated if
/// this is the only source.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeapEntry {
    head: u128,
    pub(super) source: u32,
}

/// The entries that a cursor can show after a seek.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SeekScope {
    AllKeys,
    /// Those of one key, for which the sources were chosen.
    OnlyKey,
    /// Those of one key. Sources are excluded by their filters.
    FilteredKey,
}

/// The target of a seek.
#[derive(Clone, Copy)]
pub(super) struct SeekTarget<'k> {
    pub to: EntryKey<'k>,
    pub scope: SeekScope,
    pub snapshot: Position,
}

impl SeekTarget<'_> {
    /// Returns `true` if the cursor can show an entry at or after an entry key.
    fn includes(&self, from: EntryKey<'_>) -> bool {
        self.scope == SeekScope::AllKeys
            || from.id < RecordId::MAX && same_key(from.key, self.to.key)
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

    /// Merges chains, oldest first. For merges: bypasses the block cache.
    pub fn from_chains<'c>(
        chains: impl Iterator<Item = &'c Chain>,
    ) -> Result<MergeCursor, StorageError> {
        let sources = chains
            .map(|chain| EntrySource::chain(chain.clone(), Direction::Forward, Caching::Past));
        let mut merge = MergeCursor::new(sources.collect(), Direction::Forward);
        merge.start()?;
        Ok(merge)
    }

    /// Merges sections, oldest first. For merges: bypasses the block cache.
    pub fn from_sections(by_age: &[RankedSection]) -> Result<MergeCursor, StorageError> {
        let (mut chains, mut past) = (Vec::new(), Vec::new());
        for alike in by_age.chunk_by(|one, other| one.is_past == other.is_past) {
            let first = chains.len();
            let sections = alike.iter().map(|it| &it.section);
            chains.extend(chains_of(sections));
            if alike.first().is_some_and(|first| first.is_past) {
                past.extend(first as u32..chains.len() as u32);
            }
        }
        let merge = MergeCursor::from_chains(chains.iter())?;
        Ok(MergeCursor { past, ..merge })
    }

    /// Merges buffers, oldest first. For folds.
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

    pub(crate) fn seek(&mut self, key: &[u8], id: RecordId) -> Result<(), StorageError> {
        self.sources
            .iter_mut()
            .try_for_each(|source| source.seek(key, id))?;
        self.build_heap();
        Ok(())
    }

    /// Seeks, and skips a range of tombstones in the sources that have nothing newer than it.
    /// Returns `true` if there are such sources. Those of a transaction are not: they are newer
    /// than all ranges that it can know.
    pub(super) fn seek_behind(
        &mut self,
        target: SeekTarget<'_>,
        range: &RangeEnds,
    ) -> Result<bool, StorageError> {
        let SeekTarget {
            to,
            scope,
            snapshot,
        } = target;
        let mut has_skipped = false;
        for source in &mut self.sources {
            let skip = range.skip(to, self.direction, source.newest(), snapshot);
            has_skipped |= skip != Skip::Nothing;
            match skip {
                Skip::To(behind) if target.includes(behind) => {
                    source.seek(behind.key, behind.id)?;
                }
                Skip::To(_) | Skip::ToEnd => source.end(),
                Skip::Nothing if scope == SeekScope::FilteredKey => source.seek_key(to.key)?,
                Skip::Nothing => source.seek(to.key, to.id)?,
            }
        }
        self.build_heap();
        Ok(has_skipped)
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

    /// Returns `true` if the current entry of one source comes before that of another: by entry
    /// key, then the younger source first.
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
            // A source without an entry is reported by `check_end`.
            _ => Ordering::Equal,
        };
        places.then(other.source.cmp(&one.source))
    }

    /// Moves the heap entry at `at` down to its place.
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

    /// Returns the current entry. `None` at the end.
    pub fn current(&self) -> Option<Entry<'_>> {
        self.top()?.current()
    }

    /// Fails with a bug if there is no [current](Self::current) entry although a source has one.
    /// Its entries would be missing in the result.
    pub fn check_end(&self) -> Result<(), Bug> {
        if self.heap.is_empty() {
            Ok(())
        } else {
            Err(Bug::new("a merge ended before its sources"))
        }
    }

    /// Returns the error of an entry that does not follow the one before. Sections are data of the
    /// disk. Buffers are our own.
    #[cold]
    pub fn out_of_order(&self) -> StorageError {
        let what = "entries to write are not in order".to_owned();
        if self.sources.iter().all(EntrySource::is_buffer) {
            Bug::new(what).into()
        } else {
            StorageError::Damaged {
                place: "a section that is merged".to_owned(),
                what,
            }
        }
    }

    /// Moves to the next version.
    pub fn advance(&mut self) -> Result<(), StorageError> {
        self.move_first(EntrySource::advance)
    }

    /// Returns `true` if the current entry is from a past section.
    pub fn is_past(&self) -> bool {
        let first = self.heap.first();
        first.is_some_and(|first| self.past.contains(&first.source))
    }

    /// Advances the source of the current entry.
    pub(super) fn move_first(
        &mut self,
        advance: impl FnOnce(&mut EntrySource) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        let is_alone = self.heap.len() == 1;
        let Some(first) = self.heap.first_mut() else {
            return Err(Bug::new("a merge was advanced past its end").into());
        };
        let source = &mut self.sources[first.source as usize];
        advance(source)?;
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
