//! Views: a map at a snapshot, as a reader sees it.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use windrow_invariant::Bug;
use windrow_storage::{Block, Caching, Position, StorageError};

use crate::cursor::Cursor;
use crate::entry::{Direction, EntryKey, RecordId};
use crate::entry_digest::EntryDigest;
use crate::filter::HashedKey;
use crate::marks::{MarkCount, Marks};
use crate::restart_interval::RestartInterval;
use crate::section::Section;
use crate::sections::{Chain, Sections};
use crate::tail_part::TailPart;

/// A map at a snapshot: sections and parts of tails.
#[derive(Clone, Debug)]
pub struct View {
    /// The sections.
    pub sections: Arc<Sections>,
    /// The parts of tails, oldest first. All are younger than the sections.
    pub parts: Vec<Arc<TailPart>>,
    /// Entries after this position are not visible, except in the transaction's own parts.
    pub snapshot: Position,
    /// The number of parts at the end that are writes of the reader's transaction. All their
    /// entries are visible.
    pub own_parts: usize,
}

impl View {
    /// Returns a cursor before the first entry, or, backward, behind the last one.
    pub fn cursor(&self, direction: Direction) -> Cursor {
        let chains = self.sections.chains();
        let buffers = self.parts.iter().map(|part| part.sorted().clone());
        let cursor = Cursor::new(chains.iter(), buffers, self.snapshot, direction);
        cursor.with_own_sources(self.own_parts)
    }

    /// Returns the index of the first part of the reader's transaction.
    pub(crate) fn first_own(&self) -> usize {
        self.parts.len() - self.own_parts
    }

    /// Returns a forward cursor of one key. Parts and sections that do not have the key are left
    /// out.
    pub fn cursor_for_key(&self, key: &[u8]) -> Result<Cursor, StorageError> {
        let mut chains: Vec<Chain> = Vec::new();
        for chain in self.sections.chains() {
            for section in chain.iter() {
                if section.may_contain(key)? {
                    chains.push(Arc::new(vec![section.clone()]));
                }
            }
        }
        let (others, own) = self.parts.split_at(self.first_own());
        let of_key = |part: &Arc<TailPart>| part.buffer_with_key(key);
        let mut buffers: Vec<_> = others.iter().filter_map(of_key).collect();
        let first_own = buffers.len();
        buffers.extend(own.iter().filter_map(of_key));
        let own = buffers.len() - first_own;
        let buffers = buffers.into_iter();
        let cursor = Cursor::new(chains.iter(), buffers, self.snapshot, Direction::Forward);
        Ok(cursor.with_own_sources(own).for_key(key))
    }

    /// Returns the marks of the map, whose keys begin with `first`. The result can have further
    /// ones: marks of many records that are newer than the snapshot or deleted, until a merge drops
    /// them. Returns `None` if there are too many distinct marks to count.
    pub fn marks(&self, first: u8) -> Result<Option<Vec<Vec<u8>>>, StorageError> {
        let mut marks = Marks::default();
        self.sections
            .descriptors()
            .for_each(|section| marks.add_all(&section.marks));
        let parts = self.parts.iter();
        parts.for_each(|part| marks.add_all(part.marks(first)));
        if marks.has_more() {
            return Ok(None);
        }
        let sees_all = self.sees_all();
        let mut found = Vec::new();
        for mark in marks.iter().filter(|mark| mark.put > 0) {
            let is_there = sees_all && mark.deleted == 0;
            if is_there || self.may_have(mark)? {
                found.push(mark.key.clone());
            }
        }
        Ok(Some(found))
    }

    /// Returns `true` if the view has nothing that is newer than the snapshot.
    fn sees_all(&self) -> bool {
        let mut sections = self.sections.descriptors();
        let mut others = self.parts.iter().take(self.first_own());
        sections.all(|section| section.position <= self.snapshot)
            && others.all(|part| part.newest_position() <= self.snapshot)
    }

    /// Looks up a mark that may be deleted or too new. Returns `true` without a lookup if that
    /// could take long.
    fn may_have(&self, mark: &MarkCount) -> Result<bool, StorageError> {
        if mark.put + mark.deleted > MARKS_READ_MAX {
            return Ok(true);
        }
        let mut cursor = self.cursor_for_key(&mark.key)?;
        cursor.seek(&mark.key, RecordId::MIN)?;
        Ok(cursor.next()? && cursor.key() == mark.key)
    }

    /// Returns the digest of the map from those of the sections and the entries of the tail.
    /// Returns `None` if only reading could tell: an entry was deleted, or a section is newer than
    /// the snapshot. An entry in two sources is counted twice, so that an unexpected digest proves
    /// nothing.
    pub fn digest(&self) -> Option<EntryDigest> {
        let mut sum = EntryDigest::default();
        for section in self.sections.present() {
            if section.descriptor().position > self.snapshot {
                return None;
            }
            sum.combine(section.digest()?);
        }
        for part in &self.parts {
            let entries = part.entries();
            for entry in entries.filter(|entry| entry.position <= self.snapshot) {
                if entry.deleted {
                    return None;
                }
                sum.add(entry.key, entry.id, entry.payload);
            }
        }
        Some(sum)
    }

    /// Returns the number of entries in all sources, including tombstones and older versions.
    pub fn approximate_entries(&self) -> u64 {
        let in_tail: u64 = self.parts.iter().map(|part| part.len() as u64).sum();
        self.sections.entries() + in_tail
    }

    /// Returns about `count` keys in ascending order that divide the entries into parts of similar
    /// size. Reads only fences and tails.
    pub fn split_keys(&self, count: u64) -> Result<Vec<Vec<u8>>, StorageError> {
        let total = self.approximate_entries();
        let step = (total / (count * SAMPLES_PER_CUT).max(1)).max(1);
        let mut samples = Vec::new();
        for section in self.sections.present() {
            section.sample(step, &mut samples)?;
        }
        for part in &self.parts {
            let numbers = (0..part.len()).step_by(step as usize);
            let entries = numbers.filter_map(|number| part.get(number));
            samples.extend(entries.map(|entry| entry.key.to_vec()));
        }
        samples.sort_unstable();
        let every = samples.len().div_ceil(count.max(1) as usize).max(1);
        let mut split_keys: Vec<Vec<u8>> = samples.into_iter().step_by(every).collect();
        split_keys.dedup();
        Ok(split_keys)
    }

    /// Estimates the number of entries from `from` up to, but not including, `to`. Reads fences,
    /// and the restart intervals of both bounds. The error is at most a block at each end of each
    /// section, and the deleted entries.
    pub fn approximate_count(
        &self,
        from: EntryKey<'_>,
        to: EntryKey<'_>,
    ) -> Result<u64, StorageError> {
        let mut count = 0;
        for section in self.sections.present() {
            count += count_in_section(section, from, to)?;
        }
        let in_parts = self.parts.iter().map(|part| part.count(from, to) as u64);
        Ok(count + in_parts.sum::<u64>())
    }
}

impl View {
    /// Counts the entries from `from` up to, but not including, `to`. Reads fences, and the blocks
    /// of both bounds. Returns `None` if only reading all could tell: entries were deleted, have
    /// versions or are newer than the snapshot (such sections have no digest), or two sources have
    /// entries, which may be versions of one.
    pub fn count(&self, from: EntryKey<'_>, to: EntryKey<'_>) -> Result<Option<u64>, StorageError> {
        if self.parts.iter().any(|part| part.count(from, to) > 0) {
            return Ok(None);
        }
        let mut found = None;
        for chain in self.sections.chains() {
            let mut count = 0;
            for section in chain.iter().filter(|section| meets(section, from, to)) {
                let descriptor = section.descriptor();
                if descriptor.hash.is_none() || descriptor.position > self.snapshot {
                    return Ok(None);
                }
                count += count_exactly(section, from, to)?;
            }
            if count > 0 && found.replace(count).is_some() {
                return Ok(None);
            }
        }
        Ok(Some(found.unwrap_or(0)))
    }
}

/// Returns the indexes of the keys that a section has at a snapshot. `keys` must be sorted. Of
/// equal keys all are returned. A younger section may have deleted one.
pub fn keys_in_section(
    section: &Arc<Section>,
    snapshot: Position,
    keys: &[HashedKey<'_>],
) -> Result<Vec<usize>, StorageError> {
    let candidates = section.candidates(keys)?;
    if candidates.is_empty() {
        return Ok(candidates);
    }
    let alone: Chain = Arc::new(vec![section.clone()]);
    let chains = std::iter::once(&alone);
    let mut cursor = Cursor::new(chains, std::iter::empty(), snapshot, Direction::Forward);
    let mut found = Vec::new();
    for number in candidates {
        let key = keys.get(number).ok_or_else(|| {
            let keys = keys.len();
            Bug::new(format!(
                "key {number} of {keys} keys was requested from a section"
            ))
        })?;
        cursor.seek(key.key, RecordId::MIN)?;
        if cursor.next()? && cursor.key() == key.key {
            found.push(number);
        }
    }
    Ok(found)
}

/// Returns `true` if a section may have entries from `from` up to `to`.
fn meets(section: &Section, from: EntryKey<'_>, to: EntryKey<'_>) -> bool {
    let descriptor = section.descriptor();
    let first = EntryKey::new(&descriptor.first_key, descriptor.first_id);
    !(descriptor.ends_before(from.key, from.id) || to <= first || to <= from)
}

fn count_exactly(
    section: &Section,
    from: EntryKey<'_>,
    to: EntryKey<'_>,
) -> Result<u64, StorageError> {
    let (first, last) = (
        section.block_of(from.key, from.id)?,
        section.block_of(to.key, to.id)?,
    );
    count_in_blocks(section, first..=last, from..to, count_decoded)
}

/// Marks with more entries and tombstones than this are not looked up: planning must not read
/// thousands of tombstones.
const MARKS_READ_MAX: u64 = 1 << 12;

/// The number of keys that are sampled for each split key.
const SAMPLES_PER_CUT: u64 = 4;

/// Counts the blocks between the bounds, and half of those at the bounds. Blocks are read only if
/// both bounds are in one block or in neighbouring ones.
fn count_in_section(
    section: &Section,
    from: EntryKey<'_>,
    to: EntryKey<'_>,
) -> Result<u64, StorageError> {
    if !meets(section, from, to) {
        return Ok(0);
    }
    let (first, end) = (
        section.block_of(from.key, from.id)?,
        section.block_of(to.key, to.id)?,
    );
    if end - first <= 1 {
        return count_in_blocks(section, first..=end, from..to, estimate_count);
    }
    let half = |block| Ok::<u64, StorageError>(section.entries_in(block)? / 2);
    let between = section.entries_before(end)? - section.entries_before(first + 1)?;
    Ok(between + half(first)? + half(end)?)
}

/// Returns the number of entries of some restart intervals of a block.
type CountIntervals =
    fn(&Section, &Block, usize, Range<usize>, &mut RestartInterval) -> Result<u64, StorageError>;

/// Counts the entries between two bounds, which are in these blocks.
fn count_in_blocks(
    section: &Section,
    blocks: RangeInclusive<usize>,
    entries: Range<EntryKey<'_>>,
    whole: CountIntervals,
) -> Result<u64, StorageError> {
    let (first, last) = (*blocks.start(), *blocks.end());
    let in_first = count_in_block(section, first, &entries, whole)?;
    if first == last {
        return Ok(in_first);
    }
    let between = section.entries_before(last)? - section.entries_before(first + 1)?;
    Ok(in_first + between + count_in_block(section, last, &entries, whole)?)
}

/// Counts the entries of one block between two bounds.
fn count_in_block(
    section: &Section,
    block: usize,
    entries: &Range<EntryKey<'_>>,
    whole: CountIntervals,
) -> Result<u64, StorageError> {
    let (from, to) = (&entries.start, &entries.end);
    let bytes = section.read(block, Caching::Keep)?;
    let (mut interval, mut count) = (RestartInterval::default(), 0);
    let first = section.interval_of(&bytes, block, from.key, from.id)?;
    let last = section.interval_of(&bytes, block, to.key, to.id)?;
    for number in [first, last].into_iter().take(1 + last.abs_diff(first)) {
        section.decode(&bytes, block, number, &mut interval)?;
        let (start, end) = (
            interval.lower_bound(from.key, from.id),
            interval.lower_bound(to.key, to.id),
        );
        count += end.saturating_sub(start) as u64;
    }
    Ok(count + whole(section, &bytes, block, first + 1..last, &mut interval)?)
}

/// Decodes the intervals.
fn count_decoded(
    section: &Section,
    bytes: &Block,
    block: usize,
    intervals: Range<usize>,
    interval: &mut RestartInterval,
) -> Result<u64, StorageError> {
    let mut count = 0;
    for number in intervals {
        section.decode(bytes, block, number, interval)?;
        count += interval.len() as u64;
    }
    Ok(count)
}

/// Estimates from the mean of the block. Planning is not worth decoding all intervals.
fn estimate_count(
    section: &Section,
    bytes: &Block,
    block: usize,
    intervals: Range<usize>,
    _: &mut RestartInterval,
) -> Result<u64, StorageError> {
    let all = section.layout(bytes, block)?.intervals().max(1) as u64;
    Ok(section.entries_in(block)? * intervals.len() as u64 / all)
}
