//! Choosing sections to merge, and writing entries of several sources as one section.

use std::sync::Arc;

use windrow_storage::StorageError;

use crate::cursor::Merge;
use crate::entry::{Entry, same_key};
use crate::section::{RunSink, Section, SectionDescriptor, SectionOptions, SectionWriter};

/// So many sections of like size, next to each other in age, are merged into one.
pub const SECTIONS_PER_TIER: usize = 8;
/// Sections smaller than this, before compression, count as being of one size. Whatever is added to such a stretch of sections
/// writes all of it once more: were it larger, what single folds add to it were written often.
const TIER_BYTES_MIN: u64 = 1 << 17;
/// Sections with more than this, before compression, are merged only with what overlaps them: writing
/// documents once more, only to have fewer sections, costs more than a section does.
const SEPARATE_BYTES: u64 = 8 << 20;

/// What entries a fold or merge writes of several versions.
#[derive(Clone, Debug)]
pub struct Keep {
    /// The positions that somebody reads at or may from now on, in order: see
    /// [`Snapshots::positions`](crate::Snapshots::positions). A version that none of them sees is not
    /// written; one at or before the first is written as settled.
    pub snapshots: Vec<u64>,
    /// Whether there is nothing older that a deletion has to hide.
    pub drop_deletions: bool,
}

impl Keep {
    fn is_settled(&self, position: u64) -> bool {
        self.snapshots
            .first()
            .is_none_or(|oldest| position <= *oldest)
    }

    /// Whether a version is seen by somebody: by those who read before the next newer version of its
    /// place, or by all to come where there is none.
    fn is_seen(&self, position: u64, newer: Option<u64>) -> bool {
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

/// Writes what has to be kept of entries in order, from where `merge` stands up to its end, or up to the
/// first entry at or after the place `until`.
pub fn write(
    merge: &mut Merge,
    until: Option<(&[u8], u64)>,
    keep: &Keep,
    sink: &RunSink,
    options: SectionOptions,
) -> Result<Option<SectionDescriptor>, StorageError> {
    match write_while(merge, until, keep, sink, options, &|| true)? {
        Written::All(section) => Ok(section),
        Written::Stopped => Ok(None),
    }
}

/// What became of entries that were written as long as something held.
#[derive(Clone, Debug)]
pub enum Written {
    /// The section of all of them, None where nothing had to be kept.
    All(Option<SectionDescriptor>),
    /// What was written is no section.
    Stopped,
}

/// After so many entries it is asked whether to go on.
const ENTRIES_PER_QUESTION: u64 = 256;

/// The same, given up as soon as `goes_on` says no.
pub fn write_while(
    merge: &mut Merge,
    until: Option<(&[u8], u64)>,
    keep: &Keep,
    sink: &RunSink,
    options: SectionOptions,
    goes_on: &dyn Fn() -> bool,
) -> Result<Written, StorageError> {
    let mut writer = SectionWriter::new(sink, options);
    let (mut last, mut met) = (Last::default(), 0u64);
    while let Some(mut entry) = merge.current() {
        met += 1;
        if met.is_multiple_of(ENTRIES_PER_QUESTION) && !goes_on() {
            return Ok(Written::Stopped);
        }
        if until.is_some_and(|until| (entry.key, entry.id) >= until) {
            break;
        }
        last.go_to(&entry);
        let seen = keep.is_seen(entry.position, last.newer);
        let settled = keep.is_settled(entry.position);
        if settled {
            entry.position = 0;
        }
        last.newer = Some(entry.position);
        let needless = settled && entry.deleted && keep.drop_deletions;
        if seen && !needless {
            writer.push(&entry, !last.key_is_written)?;
            last.key_is_written = true;
        }
        merge.advance()?;
    }
    writer.finish().map(Written::All)
}

/// The place of the entry that was met last.
#[derive(Default)]
struct Last {
    key: Vec<u8>,
    id: Option<u64>,
    /// The position of the version that was met last there.
    newer: Option<u64>,
    /// Whether an entry of the key was written.
    key_is_written: bool,
}

impl Last {
    fn go_to(&mut self, entry: &Entry<'_>) {
        let same_key = self.id.is_some() && same_key(&self.key, entry.key);
        if !same_key {
            self.key.clear();
            self.key.extend_from_slice(entry.key);
            self.key_is_written = false;
        }
        if !same_key || self.id != Some(entry.id) {
            self.id = Some(entry.id);
            self.newer = None;
        }
    }
}

/// Which sections, oldest first, are to be merged next: a range of `sections`, or None.
///
/// Tiers grow eightfold. Neighbours in age that do not overlap and are large stay as they are:
/// documents in order of insertion are never merged.
pub fn choose(sections: &[Arc<Section>]) -> Option<std::ops::Range<usize>> {
    choose_by(
        sections.len(),
        |at| tier(sections[at].descriptor().bytes_raw),
        |range| is_worthwhile(&sections[range]),
    )
}

/// Looks for the longest stretch of sections which none is of a higher tier than its youngest
/// eighth, from the youngest on.
fn choose_by(
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

fn tier(bytes: u64) -> u32 {
    (bytes / TIER_BYTES_MIN)
        .checked_ilog(SECTIONS_PER_TIER as u64)
        .map_or(0, |tier| tier + 1)
}

/// Whether merging helps readers or the catalog: some overlap, or all are small.
fn is_worthwhile(sections: &[Arc<Section>]) -> bool {
    let small = sections
        .iter()
        .all(|section| section.descriptor().bytes_raw < SEPARATE_BYTES);
    small || sections.windows(2).any(|pair| !pair[0].is_before(&pair[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tiers: &[u32], expected: Option<std::ops::Range<usize>>) {
        assert_eq!(
            choose_by(tiers.len(), |at| tiers[at], |_| true),
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
            [0, 1 << 16, 1 << 17, 7 << 17, 1 << 20, 8 << 20].map(tier),
            [0, 0, 1, 1, 2, 3]
        );
    }

    #[test]
    fn versions_that_nobody_sees_go() {
        let keep = Keep {
            snapshots: vec![5, 9, 20],
            drop_deletions: false,
        };
        let check = |position, newer, seen| {
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
