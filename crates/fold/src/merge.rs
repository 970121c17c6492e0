//! Folds and merges: which sections are merged, and how the versions of entries are written as
//! sections.

use std::cmp::Ordering;
use std::sync::Arc;

use windrow_invariant::Bug;
use windrow_storage::{Position, StorageError};

use crate::cursor::MergeCursor;
use crate::entry::{Entry, EntryKey, RecordId, compare_keys};
use crate::parallel::map_items;
use crate::section::{RunSink, Section, SectionDescriptor, SectionOptions, SectionWriter};
use crate::sections::{RankedSection, Sections};
use crate::sorted_buffer::SortedBuffer;

/// This many sections of similar size that follow each other in age are merged into one.
pub const SECTIONS_PER_TIER: usize = 8;

/// The sizes of sections by which merges are chosen, in bytes before compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeSizes {
    /// Smaller sections are of one tier. A merge rewrites all sections of a tier. If the lowest
    /// tier were larger, every few folds would rewrite much.
    pub tier_min: u64,
    /// Larger sections are merged only with those that they overlap. Rewriting documents only to
    /// have fewer sections costs more than a section does.
    pub separate_min: u64,
}

impl MergeSizes {
    /// Sizes with tiers from this size on.
    pub const fn with_tiers_from(tier_min: u64) -> MergeSizes {
        MergeSizes {
            tier_min,
            separate_min: 64 * tier_min,
        }
    }
}

impl Default for MergeSizes {
    fn default() -> MergeSizes {
        MergeSizes::with_tiers_from(1 << 17)
    }
}

/// Which versions a fold or merge keeps.
#[derive(Clone, Debug)]
pub struct Retention {
    /// The positions that are read at, in ascending order, see
    /// [`Snapshots::positions`](crate::Snapshots::positions). A version that is visible at none of
    /// them is dropped. One at or before the first is written as settled.
    pub snapshots: Vec<Position>,
    /// The data that tombstones may have to hide.
    pub older: OlderData,
}

/// The data that is older than what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OlderData {
    /// There is none. Tombstones are dropped once no snapshot needs them.
    None,
    /// Only past sections, see [`Sections::past`](crate::sections::Sections::past).
    PastOnly,
    /// Sections that current readers read.
    Present,
}

/// The runs to which the sections are written.
#[derive(Clone, Copy, Debug)]
pub struct SectionSinks<'s> {
    /// The run of the section for current readers.
    pub present: &'s RunSink,
    /// The run of the past section. `None`: past versions are written to the present section, where
    /// every reader skips them.
    pub past: Option<&'s RunSink>,
}

impl<'s> From<&'s RunSink> for SectionSinks<'s> {
    fn from(present: &'s RunSink) -> SectionSinks<'s> {
        SectionSinks {
            present,
            past: None,
        }
    }
}

/// The sections that were written. `None` if there was nothing to write.
#[derive(Clone, Debug, Default)]
pub struct WrittenSections {
    /// The section for current readers.
    pub present: Option<SectionDescriptor>,
    /// The section for readers at old positions.
    pub past: Option<SectionDescriptor>,
}

impl Retention {
    /// Returns the oldest position that is read at. Fails with a bug if there is none.
    pub fn oldest(&self) -> Result<Position, Bug> {
        let oldest = self.snapshots.first().copied();
        oldest.ok_or_else(|| Bug::new("a merge has no snapshot positions"))
    }

    fn is_settled(&self, position: Position) -> bool {
        let oldest = self.snapshots.first();
        oldest.is_some_and(|oldest| position <= *oldest)
    }

    /// Returns `true` if a version is visible at a position that is read at: before the next newer
    /// version, if there is one.
    fn is_seen(&self, position: Position, newer: Option<Position>) -> bool {
        let Some(newer) = newer else {
            return true;
        };
        let first = self
            .snapshots
            .partition_point(|snapshot| *snapshot < position);
        self.snapshots
            .get(first)
            .is_some_and(|snapshot| *snapshot < newer)
    }
}

/// Writes the retained versions of `merge` from its current entry up to, but not including, the
/// entry key `until`, or up to its end.
pub fn write_sections(
    merge: &mut MergeCursor,
    until: Option<EntryKey<'_>>,
    keep: &Retention,
    sinks: SectionSinks<'_>,
    options: SectionOptions,
) -> Result<WrittenSections, StorageError> {
    let sections = write_sections_while(merge, until, keep, sinks, options, &|| true)?;
    Ok(sections.ok_or_else(|| Bug::new("a merge stopped that cannot be stopped"))?)
}

/// The number of entries between two calls of `should_continue`.
const ENTRIES_PER_CHECK: u64 = 256;

/// As [`write_sections`], but stops and returns `None` if `should_continue` returns `false`. What
/// was written then is not a section.
pub fn write_sections_while(
    merge: &mut MergeCursor,
    until: Option<EntryKey<'_>>,
    keep: &Retention,
    sinks: SectionSinks<'_>,
    options: SectionOptions,
    should_continue: &dyn Fn() -> bool,
) -> Result<Option<WrittenSections>, StorageError> {
    let mut targets = SectionTargets::new(sinks, options);
    if !targets.write(merge, until, keep, should_continue)? {
        return Ok(None);
    }
    Ok(Some(targets.finish()?))
}

/// The keys of buffers are divided into this many ranges for each thread, because the ranges do not
/// take the same time.
const RANGES_PER_THREAD: usize = 4;

/// Writes the retained versions of buffers, oldest first, on up to `threads` threads. Each writes
/// ranges of the keys, which together are one section. Sections with filters are written by one
/// thread.
pub fn write_buffers(
    buffers: &[Arc<SortedBuffer>],
    keep: &Retention,
    sinks: SectionSinks<'_>,
    options: SectionOptions,
    threads: usize,
) -> Result<WrittenSections, StorageError> {
    let mut targets = SectionTargets::new(sinks, options);
    if threads <= 1 || options.filter_bits > 0 {
        let mut merge = MergeCursor::from_buffers(buffers.iter().cloned())?;
        targets.write(&mut merge, None, keep, &|| true)?;
        return targets.finish();
    }
    let starts = range_starts(buffers, threads * RANGES_PER_THREAD);
    let ends = starts.iter().map(Some).chain([None]);
    let ranges = std::iter::once(None)
        .chain(starts.iter().map(Some))
        .zip(ends);
    let ranges: Vec<_> = ranges.map(|(start, end)| KeyRange { start, end }).collect();
    let write = |range: &KeyRange<'_>| targets.for_later_range().write_range(buffers, *range, keep);
    for range in map_items(&ranges, threads, write) {
        targets = targets.append_range(range?)?;
    }
    let entries: u64 = buffers.iter().map(|buffer| buffer.len() as u64).sum();
    if targets.entries_read != entries {
        let read = targets.entries_read;
        return Err(Bug::new(format!("a fold read {read} of {entries} entries")).into());
    }
    targets.finish()
}

/// The keys from `start` up to, but not including, `end`. `None`: all up to that end.
#[derive(Clone, Copy)]
struct KeyRange<'k> {
    start: Option<&'k Vec<u8>>,
    end: Option<&'k Vec<u8>>,
}

/// Returns the keys at which ranges begin, except the first one, in ascending order. The keys of the
/// longest buffer are taken as a sample of all keys.
fn range_starts(buffers: &[Arc<SortedBuffer>], ranges: usize) -> Vec<Vec<u8>> {
    let Some(longest) = buffers.iter().max_by_key(|buffer| buffer.len()) else {
        return Vec::new();
    };
    let entry = |range: usize| longest.get(longest.len() * range / ranges);
    let keys = (1..ranges).filter_map(|range| Some(entry(range)?.key.to_vec()));
    let mut starts: Vec<Vec<u8>> = keys.collect();
    starts.dedup();
    starts
}

/// The sections for current and old readers that are being written.
struct SectionTargets<'s> {
    present: SectionTarget<'s>,
    past: Option<SectionTarget<'s>>,
    /// The number of versions that were read, including those that are not retained.
    entries_read: u64,
}

impl<'s> SectionTargets<'s> {
    fn new(sinks: SectionSinks<'s>, options: SectionOptions) -> SectionTargets<'s> {
        SectionTargets {
            present: SectionTarget::new(sinks.present, options),
            past: sinks.past.map(|sink| SectionTarget::past(sink, options)),
            entries_read: 0,
        }
    }

    /// Creates targets for later keys of the same sections, see [`SectionWriter::for_later_range`].
    fn for_later_range(&self) -> SectionTargets<'s> {
        SectionTargets {
            present: self.present.for_later_range(),
            past: self.past.as_ref().map(SectionTarget::for_later_range),
            entries_read: 0,
        }
    }

    fn append_range(self, later: SectionTargets<'s>) -> Result<SectionTargets<'s>, StorageError> {
        let past = self.past.zip(later.past);
        Ok(SectionTargets {
            present: self.present.append_range(later.present)?,
            past: past
                .map(|(past, later)| past.append_range(later))
                .transpose()?,
            entries_read: self.entries_read + later.entries_read,
        })
    }

    /// Writes the retained versions of a range of the keys of buffers.
    fn write_range(
        mut self,
        buffers: &[Arc<SortedBuffer>],
        range: KeyRange<'_>,
        keep: &Retention,
    ) -> Result<SectionTargets<'s>, StorageError> {
        let mut merge = MergeCursor::from_buffers(buffers.iter().cloned())?;
        if let Some(start) = range.start {
            merge.seek(start, RecordId::MIN)?;
        }
        let until = range.end.map(|key| EntryKey::new(key, RecordId::MIN));
        self.write(&mut merge, until, keep, &|| true)?;
        Ok(self)
    }

    /// Writes the retained versions of `merge` up to an entry key. Returns `false` if
    /// `should_continue` stopped it.
    fn write(
        &mut self,
        merge: &mut MergeCursor,
        until: Option<EntryKey<'_>>,
        keep: &Retention,
        should_continue: &dyn Fn() -> bool,
    ) -> Result<bool, StorageError> {
        debug_assert!(keep.snapshots.is_sorted(), "{:?}", keep.snapshots);
        keep.oldest()?;
        let SectionTargets {
            present,
            past,
            entries_read,
        } = self;
        let mut last = EntryTracker::default();
        let mut is_whole = true;
        while let Some(mut entry) = merge.current() {
            if until.is_some_and(|until| entry.entry_key() >= until) {
                is_whole = false;
                break;
            }
            *entries_read += 1;
            if entries_read.is_multiple_of(ENTRIES_PER_CHECK) && !should_continue() {
                return Ok(false);
            }
            match last.go_to(&entry) {
                KeyStep::SameKey => {}
                KeyStep::NewKey => {
                    present.key_is_written = false;
                    past.iter_mut().for_each(|it| it.key_is_written = false);
                }
                KeyStep::Backward => return Err(merge.out_of_order()),
            }
            let seen = keep.is_seen(entry.position, last.newer);
            let settled = keep.is_settled(entry.position);
            let hides_present = entry.deleted && keep.older == OlderData::Present;
            let is_past =
                last.newer.is_some() || merge.is_past() || entry.deleted && !hides_present;
            let needless = settled && entry.deleted && keep.older == OlderData::None;
            if settled {
                entry.position = Position::ZERO;
            }
            last.newer = Some(entry.position);
            if seen && !needless {
                let target = past.as_mut().filter(|_| is_past);
                target.unwrap_or(present).push(&entry)?;
            }
            merge.advance()?;
        }
        if is_whole {
            merge.check_end()?;
        }
        Ok(true)
    }

    fn finish(self) -> Result<WrittenSections, StorageError> {
        Ok(WrittenSections {
            present: self.present.writer.finish()?,
            past: self.past.map_or(Ok(None), |it| it.writer.finish())?,
        })
    }
}

/// A section that is being written.
struct SectionTarget<'s> {
    writer: SectionWriter<'s>,
    /// An entry of the current key was written.
    key_is_written: bool,
}

impl<'s> SectionTarget<'s> {
    fn new(sink: &'s RunSink, options: SectionOptions) -> SectionTarget<'s> {
        SectionTarget {
            writer: SectionWriter::new(sink, options),
            key_is_written: false,
        }
    }

    /// Creates the target of past versions. Few readers need them, and not for long, so they are
    /// not packed.
    fn past(sink: &'s RunSink, options: SectionOptions) -> SectionTarget<'s> {
        let options = SectionOptions {
            packed: false,
            postings: None,
            with_digest: false,
            ..options
        };
        SectionTarget::new(sink, options)
    }

    fn for_later_range(&self) -> SectionTarget<'s> {
        SectionTarget {
            writer: self.writer.for_later_range(),
            key_is_written: false,
        }
    }

    fn append_range(self, later: SectionTarget<'s>) -> Result<SectionTarget<'s>, StorageError> {
        Ok(SectionTarget {
            writer: self.writer.append_range(later.writer)?,
            key_is_written: later.key_is_written,
        })
    }

    fn push(&mut self, entry: &Entry<'_>) -> Result<(), StorageError> {
        let is_new_key = !std::mem::replace(&mut self.key_is_written, true);
        self.writer.push(entry, is_new_key)
    }
}

/// The last entry key, and its last version.
#[derive(Default)]
struct EntryTracker {
    key: Vec<u8>,
    id: Option<RecordId>,
    /// The position of the version before, which is newer.
    newer: Option<Position>,
}

/// How an entry follows the one before.
enum KeyStep {
    SameKey,
    NewKey,
    /// The entries are not in order.
    Backward,
}

impl EntryTracker {
    fn go_to(&mut self, entry: &Entry<'_>) -> KeyStep {
        let keys = match self.id {
            None => Ordering::Less,
            Some(_) => compare_keys(&self.key, entry.key),
        };
        let ids = self.id.cmp(&Some(entry.id));
        match keys.then(ids) {
            Ordering::Greater => return KeyStep::Backward,
            Ordering::Equal => return KeyStep::SameKey,
            Ordering::Less => {}
        }
        self.id = Some(entry.id);
        self.newer = None;
        if keys.is_eq() {
            return KeyStep::SameKey;
        }
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        KeyStep::NewKey
    }
}

/// Sections to merge into one, or into a present and a past one.
#[derive(Clone, Debug)]
pub struct MergeInput {
    /// The sections, oldest first.
    pub sections: Vec<RankedSection>,
    /// The data that is older than these sections.
    pub older: OlderData,
    /// The newest position that the sections have folded.
    pub position: Position,
}

impl MergeInput {
    /// Selects a range of present sections, with the past ones between them. Past ones before all
    /// of them stay: otherwise they would be rewritten with every few folds that change the same
    /// entries.
    pub fn present(sections: &Sections, range: std::ops::Range<usize>) -> Option<MergeInput> {
        let chosen = sections.present().get(range.clone())?;
        let position = |section: &Arc<Section>| section.descriptor().position;
        let (first, last) = (chosen.first().map(position)?, chosen.last().map(position)?);
        let is_between = |it: &&Arc<Section>| position(it) > first && position(it) <= last;
        let past: Vec<_> = sections.past().iter().filter(is_between).cloned().collect();
        let has_older_past = sections.past().iter().any(|it| position(it) <= first);
        let older = match (range.start, has_older_past) {
            (0, false) => OlderData::None,
            (0, true) => OlderData::PastOnly,
            _ => OlderData::Present,
        };
        let sections = Sections::with_past(chosen.to_vec(), past).by_age();
        Some(MergeInput {
            sections,
            older,
            position: last,
        })
    }
}

impl MergeSizes {
    /// Returns the range of sections to merge next, or `None`. `sections` are ordered by age,
    /// oldest first.
    ///
    /// The sizes of tiers grow eightfold. Large neighbours that do not overlap are never merged,
    /// such as documents in order of insertion.
    pub fn pick_sections(self, sections: &[Arc<Section>]) -> Option<std::ops::Range<usize>> {
        pick_by(
            sections.len(),
            |at| self.tier(sections[at].descriptor().bytes_raw),
            |range| self.is_worthwhile(&sections[range]),
        )
    }

    /// Selects several past sections without a present one between them. `None` if there are few.
    pub fn pick_past(self, sections: &Sections) -> Option<MergeInput> {
        let position = |section: &Arc<Section>| section.descriptor().position;
        let present_before = |past: &Arc<Section>| {
            let all = sections.present();
            all.partition_point(|it| position(it) < position(past))
        };
        let ranked_past = |section: &Arc<Section>| RankedSection {
            section: section.clone(),
            is_past: true,
        };
        let together =
            |one: &Arc<Section>, other: &Arc<Section>| present_before(one) == present_before(other);
        let groups = sections.past().chunk_by(together);
        groups.rev().find_map(|group| {
            let chosen = group.get(self.pick_sections(group)?)?;
            // In one section, versions that a short snapshot needs would stay as long as those of a
            // long one.
            if chosen
                .iter()
                .any(|it| it.descriptor().bytes_raw > self.separate_min)
            {
                return None;
            }
            Some(MergeInput {
                sections: chosen.iter().map(ranked_past).collect(),
                // A reader of an older section may need the tombstones.
                older: OlderData::Present,
                position: chosen.last().map(position)?,
            })
        })
    }

    fn tier(self, bytes: u64) -> u32 {
        (bytes / self.tier_min)
            .checked_ilog(SECTIONS_PER_TIER as u64)
            .map_or(0, |tier| tier + 1)
    }

    /// Returns `true` if a merge helps readers or the catalog: some sections overlap, or all are
    /// small.
    fn is_worthwhile(self, sections: &[Arc<Section>]) -> bool {
        let small = sections
            .iter()
            .all(|section| section.descriptor().bytes_raw < self.separate_min);
        small || sections.windows(2).any(|pair| !pair[0].is_before(&pair[1]))
    }
}

/// Searches from the youngest section on for the longest range in which no section is of a higher
/// tier than the youngest eighth.
fn pick_by(
    count: usize,
    tier: impl Fn(usize) -> u32,
    worthwhile: impl Fn(std::ops::Range<usize>) -> bool,
) -> Option<std::ops::Range<usize>> {
    let mut end = count;
    while end > 0 {
        let highest = tier(end - 1);
        let mut start = end - 1;
        while start > 0 && tier(start - 1) <= highest {
            start -= 1;
        }
        let same = (start..end).filter(|at| tier(*at) == highest).count();
        if same >= SECTIONS_PER_TIER && worthwhile(start..end) {
            return Some(start..end);
        }
        end -= 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntryBufferBuilder, SortedBuffer};
    use windrow_invariant::tolerate_bugs;
    use windrow_storage::{Compression, MemoryDisk, Storage, StorageOptions};

    fn check(tiers: &[u32], expected: Option<std::ops::Range<usize>>) {
        assert_eq!(
            pick_by(tiers.len(), |at| tiers[at], |_| true),
            expected,
            "{tiers:?}"
        );
    }

    #[test]
    fn eight_of_a_tier_are_merged() {
        check(&[], None);
        check(&[0; 7], None);
        check(&[0; 8], Some(0..8));
        check(&[1, 0, 0, 0, 0, 0, 0, 0], None);
        check(&[1, 0, 0, 0, 0, 0, 0, 0, 0], Some(1..9));
        check(&[2, 1, 1, 1, 1, 1, 1, 1, 1], Some(1..9));
        check(&[2, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0], Some(1..10));
    }

    #[test]
    fn tiers_grow_eightfold() {
        assert_eq!(
            [0, 1 << 16, 1 << 17, 7 << 17, 1 << 20, 8 << 20]
                .map(|bytes| MergeSizes::default().tier(bytes)),
            [0, 0, 1, 1, 2, 3]
        );
    }

    /// A merge of unsorted entries would have written a section in which some of them are not
    /// found.
    #[test]
    fn a_merge_of_entries_out_of_order_stops() {
        let storage =
            Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default()).unwrap();
        let sink = RunSink::new(storage.runs.create().unwrap());
        let mut builder = EntryBufferBuilder::new(Position(1), 0);
        for (key, id) in [(b"a", 1), (b"c", 2), (b"b", 3)] {
            builder.add(Entry {
                key,
                id: RecordId(id),
                position: Position(1),
                deleted: false,
                payload: b"",
            });
        }
        let buffer = Arc::new(SortedBuffer::unsorted(builder.finish()));
        let options = SectionOptions {
            filter_bits: 0,
            with_digest: false,
            mark_byte: None,
            compression: Compression::Lz4,
            packed: false,
            postings: None,
            position: Position(1),
        };
        let keep = Retention {
            snapshots: vec![Position(5)],
            older: OlderData::None,
        };
        let mut merge = MergeCursor::from_buffers([buffer]).unwrap();
        let written =
            tolerate_bugs(|| write_sections(&mut merge, None, &keep, (&sink).into(), options));
        assert!(matches!(written, Err(StorageError::Bug(_))), "{written:?}");
    }

    #[test]
    fn invisible_versions_are_dropped() {
        let keep = Retention {
            snapshots: [5, 9, 20].map(Position).to_vec(),
            older: OlderData::Present,
        };
        let check = |position, newer: Option<u64>, seen| {
            let (position, newer) = (Position(position), newer.map(Position));
            assert_eq!(keep.is_seen(position, newer), seen, "{position} {newer:?}");
        };
        check(19, None, true);
        check(4, Some(6), true);
        check(6, Some(8), false);
        check(8, Some(9), false);
        check(8, Some(10), true);
        check(10, Some(15), false);
        check(0, Some(6), true);
        check(0, Some(0), false);
    }
}
