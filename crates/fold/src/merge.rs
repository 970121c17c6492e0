//! Choosing sections to merge, and writing entries of several sources as one section.

use std::sync::Arc;

use windrow_storage::StorageError;

use crate::cursor::Merge;
use crate::entry::Entry;
use crate::section::{RunSink, Section, SectionDescriptor, SectionOptions, SectionWriter};

/// So many sections of like size, next to each other in age, are merged into one.
pub const SECTIONS_PER_TIER: usize = 8;
/// Sections smaller than this count as being of one size.
const TIER_BYTES_MIN: u64 = 1 << 20;
/// Sections larger than this are merged only with what overlaps them: writing documents once more, only to
/// have fewer sections, costs more than a section does.
const SEPARATE_BYTES: u64 = 4 << 20;

/// What entries a fold or merge writes of several versions.
#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// The oldest position that somebody reads at: of what is at or before it, only the newest
    /// version of each place is written, as settled.
    pub oldest_snapshot: u64,
    /// Whether there is nothing older that a deletion has to hide.
    pub drop_deletions: bool,
}

/// Writes what has to be kept of entries in order, from where `merge` stands up to its end, or up to the
/// first entry at or after the place `until`.
pub fn write(
    merge: &mut Merge,
    until: Option<(&[u8], u64)>,
    keep: Keep,
    sink: &RunSink,
    options: SectionOptions,
) -> Result<Option<SectionDescriptor>, StorageError> {
    let mut writer = SectionWriter::new(sink, options);
    let mut last = Last::default();
    while let Some(mut entry) = merge.current() {
        if until.is_some_and(|until| (entry.key, entry.id) >= until) {
            break;
        }
        last.go_to(&entry);
        let settled = entry.position <= keep.oldest_snapshot;
        let hidden = last.settled;
        if settled {
            entry.position = 0;
            last.settled = true;
        }
        let needless = hidden || settled && entry.deleted && keep.drop_deletions;
        if !needless {
            writer.push(&entry, !last.key_is_written)?;
            last.key_is_written = true;
        }
        merge.advance()?;
    }
    writer.finish()
}

/// The place of the entry that was met last.
#[derive(Default)]
struct Last {
    key: Vec<u8>,
    id: Option<u64>,
    /// Whether a version that every snapshot sees was met there.
    settled: bool,
    /// Whether an entry of the key was written.
    key_is_written: bool,
}

impl Last {
    fn go_to(&mut self, entry: &Entry<'_>) {
        let same_key = self.id.is_some() && self.key == entry.key;
        if !same_key {
            self.key.clear();
            self.key.extend_from_slice(entry.key);
            self.key_is_written = false;
        }
        if !same_key || self.id != Some(entry.id) {
            self.id = Some(entry.id);
            self.settled = false;
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
        |at| tier(sections[at].descriptor().bytes_stored),
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
        .all(|section| section.descriptor().bytes_stored < SEPARATE_BYTES);
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
            [0, 1 << 19, 1 << 20, 7 << 20, 8 << 20, 64 << 20].map(tier),
            [0, 0, 1, 1, 2, 3]
        );
    }
}
