//! The postings of one key at a snapshot, read forward by record id, with skips and score bounds.
//!
//! The entries of a key can be in several sections and parts of tails. If two sources have the same
//! record, the younger one counts: it may have deleted the posting. A [`PostingList`] merges the
//! sources. Their ids mostly do not overlap, since record ids grow. The list then reads one source
//! after the other and compares one number for each posting.

mod batch;
mod buffer_lists;
mod extent;
mod key_lists;
mod rows;
mod segments;
mod source;

use std::sync::Arc;

use windrow_postings::LengthTotals;
use windrow_storage::{Position, StorageError};

use crate::entry::RecordId;
pub use crate::extents::Bounds;
use crate::extents::{SourceExtent, both};
use crate::view::View;
pub use batch::PostingBatch;
pub(crate) use buffer_lists::{BufferList, ListCache};
pub use key_lists::KeyLists;
use segments::SegmentCursor;
use source::{SegmentBounds, SourceList};

/// The id of a list that has ended.
pub const END: RecordId = RecordId::MAX;

/// The postings of one key. A new list is at the first one.
///
/// A list ends at an error, which [`PostingList::take_error`] returns.
#[derive(Clone, Debug)]
pub struct PostingList {
    /// The sources, oldest first.
    sources: Vec<SourceList>,
    /// The index of the source with the current posting.
    current: usize,
    /// The least id of the other sources.
    others: RecordId,
    id: RecordId,
    error: Option<StorageError>,
    /// A buffer of [`block_end`](Self::block_end), which is reused.
    segment_bounds: Vec<SegmentBounds>,
    block_bounds: Bounds,
}

/// The mean length is estimated from this many records.
const RECORDS_MEASURED: u64 = 1_000;

impl View {
    /// Opens the postings of a key. The payloads of the map must be postings.
    pub fn postings(&self, key: &[u8]) -> Result<PostingList, StorageError> {
        let key: Arc<[u8]> = key.into();
        let mut sources = Vec::new();
        for section in self.sections.chains().iter().flat_map(|chain| chain.iter()) {
            if section.may_contain(&key)? {
                let found = SegmentCursor::in_section(section, &key, self.snapshot)?;
                sources.extend(found);
            }
        }
        for (number, part) in self.parts.iter().enumerate() {
            let snapshot = if number >= self.parts.len() - self.own_parts {
                Position::MAX
            } else {
                self.snapshot
            };
            if let Some(list) = part.postings(&key, snapshot)? {
                sources.push(SegmentCursor::in_buffer(list, &key, snapshot)?);
            }
        }
        let sources = sources.into_iter().map(SourceList::new);
        let mut list = PostingList {
            sources: sources.collect::<Result<_, _>>()?,
            current: 0,
            others: END,
            id: END,
            error: None,
            segment_bounds: Vec::new(),
            block_bounds: Bounds::default(),
        };
        list.choose();
        list.pass_deleted();
        Ok(list)
    }
}

impl PostingList {
    /// Returns the record id, or [`END`].
    #[inline]
    pub fn id(&self) -> RecordId {
        self.id
    }

    /// Moves to the next record. Returns its id, or [`END`].
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator would copy each posting"
    )]
    pub fn next(&mut self) -> RecordId {
        let Some(source) = self.sources.get_mut(self.current) else {
            return END;
        };
        match source.next() {
            Ok(id) if id < self.others && !source.is_deleted() => self.id = id,
            Ok(_) => self.align(),
            Err(error) => self.fail(error),
        }
        self.id
    }

    /// Moves to the first record with this id or a greater one. Returns its id, or [`END`].
    #[inline]
    pub fn seek(&mut self, id: RecordId) -> RecordId {
        if id <= self.id {
            return self.id;
        }
        let Some(source) = self.sources.get_mut(self.current) else {
            return END;
        };
        match source.seek(id) {
            Ok(found) if found < self.others && !source.is_deleted() => self.id = found,
            Ok(_) => self.seek_all(id),
            Err(error) => self.fail(error),
        }
        self.id
    }

    #[inline(never)]
    fn seek_all(&mut self, id: RecordId) {
        for source in &mut self.sources {
            if let Err(error) = source.seek(id) {
                return self.fail(error);
            }
        }
        self.align();
    }

    /// Moves to the source with the least id and skips deleted postings.
    #[inline(never)]
    fn align(&mut self) {
        self.choose();
        self.pass_deleted();
    }

    /// Selects the youngest source with the least id, and advances the older ones with the same id.
    fn choose(&mut self) {
        let least = self.sources.iter().map(SourceList::id).min();
        let least = least.unwrap_or(END);
        let holder = self.sources.iter().rposition(|source| source.id() == least);
        self.current = holder.unwrap_or(0);
        (self.id, self.others) = (least, END);
        for number in (0..self.sources.len()).filter(|number| Some(*number) != holder) {
            let Some(source) = self.sources.get_mut(number) else {
                break;
            };
            if source.id() == least
                && least != END
                && let Err(error) = source.next()
            {
                return self.fail(error);
            }
            self.others = self.others.min(source.id());
        }
    }

    fn pass_deleted(&mut self) {
        while self.id != END {
            let Some(source) = self.sources.get_mut(self.current) else {
                return;
            };
            if !source.is_deleted() {
                return;
            }
            if let Err(error) = source.next() {
                return self.fail(error);
            }
            self.choose();
        }
    }

    #[cold]
    fn fail(&mut self, error: StorageError) {
        self.error.get_or_insert(error);
        self.sources.clear();
        (self.id, self.others) = (END, END);
    }

    /// Runs `read` on the current source of the list. Returns `otherwise` if that fails.
    #[inline]
    fn read<T>(
        &mut self,
        otherwise: T,
        read: impl FnOnce(&mut SourceList) -> Result<T, StorageError>,
    ) -> T {
        let Some(source) = self.sources.get_mut(self.current) else {
            return otherwise;
        };
        match read(source) {
            Ok(found) => found,
            Err(error) => {
                self.fail(error);
                otherwise
            }
        }
    }

    /// Returns the number of times that the term occurs in the record.
    #[inline]
    pub fn frequency(&mut self) -> u32 {
        self.read(1, SourceList::frequency)
    }

    /// Returns the number of tokens of the field. 0 if it is not known.
    #[inline]
    pub fn length(&mut self) -> u32 {
        self.read(0, SourceList::length)
    }

    /// Returns the score that is stored, if one is.
    #[inline]
    pub fn stored_score(&mut self) -> Option<f64> {
        self.read(None, SourceList::stored_score)
    }

    /// Passes decoded postings to `take`, from the current one up to the record `last`, and moves
    /// behind them. There are at most `most`. Returns `false` if postings near the current one are
    /// deleted. The caller then reads the record by itself.
    #[inline]
    pub fn read_batch(
        &mut self,
        last: RecordId,
        most: usize,
        take: impl FnOnce(&PostingBatch<'_>),
    ) -> bool {
        self.read_many(last, |source, last| source.read_batch(last, most, take))
    }

    /// Passes the ids of postings to `take`, as [`read_batch`](Self::read_batch) passes postings.
    #[inline]
    pub fn read_ids(&mut self, last: RecordId, take: impl FnOnce(&[u64])) -> bool {
        self.read_many(last, |source, last| source.read_ids(last, take))
    }

    /// Reads postings of the current source up to a record. `read` returns how many it has read.
    /// Returns `false` if there are none.
    #[inline]
    fn read_many(
        &mut self,
        last: RecordId,
        read: impl FnOnce(&mut SourceList, RecordId) -> Result<usize, StorageError>,
    ) -> bool {
        let last = last.min(self.others.previous());
        let Some(source) = self.sources.get_mut(self.current) else {
            return false;
        };
        match read(source, last) {
            Ok(0) => false,
            Ok(_) => {
                if source.id() < self.others && !source.is_deleted() {
                    self.id = source.id();
                } else {
                    self.align();
                }
                true
            }
            Err(error) => {
                self.fail(error);
                false
            }
        }
    }

    /// Appends the positions of the term in the record.
    pub fn positions(&mut self, into: &mut Vec<u32>) {
        self.read((), |source| source.positions(into));
    }

    /// Looks ahead at the postings from `id` on without moving the list. Returns the last id for
    /// which [`block_bounds`](Self::block_bounds) then hold, or [`END`] if there is no posting from
    /// `id` on.
    pub fn block_end(&mut self, id: RecordId) -> RecordId {
        self.segment_bounds.clear();
        let mut start = END;
        for number in 0..self.sources.len() {
            let bounds_from = self.sources.get_mut(number).map(|it| it.bounds_from(id));
            match bounds_from {
                Some(Err(error)) => {
                    self.fail(error);
                    return END;
                }
                Some(Ok(Some(bounds_from))) => {
                    start = start.min(bounds_from.first);
                    self.segment_bounds.push(bounds_from);
                }
                Some(Ok(None)) | None => {}
            }
        }
        let start = start.max(id);
        let (mut bounds, mut end, mut met) = (Bounds::default(), END, 0);
        for bounds_from in &self.segment_bounds {
            if bounds_from.first > start {
                // The source has no postings before its first id.
                end = end.min(bounds_from.first.previous());
                continue;
            }
            end = end.min(bounds_from.last);
            bounds.score = bounds.score.max(bounds_from.score);
            bounds.impacts = match met {
                0 => bounds_from.impacts,
                _ => both(bounds.impacts, bounds_from.impacts),
            };
            met += 1;
        }
        self.block_bounds = bounds;
        end
    }

    /// Returns the score bound of the postings up to the id that [`block_end`](Self::block_end)
    /// returned.
    pub fn block_bounds(&self) -> Bounds {
        self.block_bounds
    }

    /// Returns the score bound of all postings, a loose one for some long lists. Must be called
    /// before the list is moved.
    pub fn bounds(&mut self) -> Bounds {
        let of_sources = self.map_sources(SourceList::bounds).into_iter();
        let combined = of_sources.reduce(|one, other| Bounds {
            impacts: both(one.impacts, other.impacts),
            score: one.score.max(other.score),
        });
        combined.unwrap_or_default()
    }

    /// Returns the number of records, or `None` if only reading all postings could tell. Must be
    /// called before the list is moved.
    pub fn count(&mut self) -> Option<u64> {
        let mut extents = self.map_sources(SourceList::extent);
        extents.sort_unstable_by_key(|extent| extent.first_id);
        let overlaps = extents.windows(2).any(|pair| match pair {
            [one, other] => one.last_id >= other.first_id,
            _ => false,
        });
        let is_known = !overlaps && extents.iter().all(|extent| extent.deletions == 0);
        (is_known && self.error.is_none()).then(|| records_of(&extents))
    }

    /// Returns an upper bound of the number of records. Must be called before the list is moved.
    pub fn count_at_most(&mut self) -> u64 {
        records_of(&self.map_sources(SourceList::extent))
    }

    /// Estimates the totals of the lengths of the list's field. Exact if all postings of the field
    /// are packed. Must be called before the list is moved.
    pub fn length_totals(&mut self) -> LengthTotals {
        let totals = self.map_sources(|source| source.length_totals());
        let counted: u64 = totals.iter().map(|one| one.records).sum();
        let length: u64 = totals.iter().map(|one| one.sum).sum();
        let records = self.count_at_most();
        // Records that are not packed are assumed to have the same mean length.
        let length = (length * records.max(counted)).checked_div(counted);
        LengthTotals {
            records,
            sum: length.unwrap_or_else(|| self.length_of_some() * records),
        }
    }

    /// Calls `ask` for each source. Returns nothing if one of them fails, and the list ends.
    fn map_sources<T>(
        &mut self,
        ask: impl FnMut(&mut SourceList) -> Result<T, StorageError>,
    ) -> Vec<T> {
        let answers: Result<Vec<T>, StorageError> = self.sources.iter_mut().map(ask).collect();
        answers.unwrap_or_else(|error| {
            self.fail(error);
            Vec::new()
        })
    }

    /// Returns the mean length of the first records.
    fn length_of_some(&mut self) -> u64 {
        let (mut sum, mut count) = (0, 0);
        let mut list = PostingList {
            sources: self.sources.clone(),
            segment_bounds: Vec::new(),
            error: None,
            ..*self
        };
        while list.id() != END && count < RECORDS_MEASURED {
            sum += u64::from(list.length());
            count += 1;
            list.next();
        }
        sum.div_ceil(count.max(1))
    }

    /// Returns how many groups of packed postings were unpacked.
    pub fn groups_read(&self) -> u64 {
        self.sources.iter().map(|source| source.groups_read).sum()
    }

    /// Returns the error that ended the list, if one did.
    pub fn take_error(&mut self) -> Option<StorageError> {
        self.error.take()
    }
}

fn records_of(extents: &[SourceExtent]) -> u64 {
    extents.iter().map(|extent| extent.records).sum()
}
