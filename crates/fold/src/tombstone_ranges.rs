//! Ranges of a map that have only tombstones.
//!
//! A client that removes entries at one end of a map, as from a queue, leaves tombstones there.
//! Without these ranges, every cursor that looks for the first remaining entry would read all of
//! them.
//!
//! A cursor that has skipped many deleted entries records the range with its snapshot position. A
//! cursor that reads at this position or later seeks behind the range, in all sources that have
//! nothing newer:
//!
//! ```text
//!                                       1       2       3       4       5       6
//! section, newest entry of 40           put     put     put     put     put     put
//! tail, newest entry of 90              delete  delete          delete
//! recorded at 70: from 1 to 5           delete  delete  delete  delete
//! a reader at 100 that seeks 1 starts in the section at 5, in the tail at 1
//! ```
//!
//! What the section has in the range is deleted by the tail or by the section itself. Sources are
//! ordered by their newest position, so no source that is skipped has something newer than one that
//! is read. A range therefore stays valid after writes, folds and merges. It does not stay valid if
//! the content of an old position changes: no reader uses an index that is being built, and a
//! repaired index starts without ranges.
//!
//! A range can have several ends. If an entry was inserted in the middle of a range, later readers
//! record a nearer end, and the farther one still holds for the sources that had nothing newer
//! then. A cursor that reads one key records nothing behind it.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering as Memory};

use parking_lot::RwLock;
use windrow_storage::Position;

use crate::entry::{Direction, EntryKey, EntryKeyBuf, RecordId, same_key};

/// The recorded ranges of a map. See the module.
#[derive(Debug, Default)]
pub struct TombstoneRanges {
    /// There is a range. Read without a lock, since most maps have none.
    any: AtomicBool,
    forward: RwLock<Vec<TombstoneRange>>,
    backward: RwLock<Vec<TombstoneRange>>,
}

/// A range that begins at one entry key.
#[derive(Clone, Debug)]
struct TombstoneRange {
    from: EntryKeyBuf,
    ends: Arc<RangeEnds>,
    /// The number of entries that it saves, halved each time that ranges are dropped.
    worth: u64,
}

/// The ends of a range.
#[derive(Debug)]
pub(crate) struct RangeEnds {
    /// In ascending order of position: the later, the nearer.
    ends: Vec<RangeEnd>,
    /// The approximate number of entries in the range.
    entries: u64,
}

#[derive(Clone, Debug)]
struct RangeEnd {
    /// The first entry key after the range. `None`: the range extends to the end of the map.
    to: Option<EntryKeyBuf>,
    /// At this position all entries of the range were deleted.
    position: Position,
}

/// How far a cursor can skip in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip<'r> {
    /// No end of the range holds for the source.
    Nothing,
    /// To this entry key.
    To(EntryKey<'r>),
    /// To the end of the source.
    ToEnd,
}

/// A search looks at this many ranges before an entry key for one that includes it.
const RANGES_SEARCHED: usize = 4;
/// The largest number of ranges in a direction. An index can have a queue for each of many owners.
const RANGES_MAX: usize = 512;
/// The largest number of ends of a range: the farthest and the newest ones.
const ENDS_MAX: usize = 6;
/// Ranges with longer keys are not recorded.
const KEY_BYTES_MAX: usize = 1 << 8;
/// Ranges with fewer entries are not recorded: reading them is as fast as skipping them.
const ENTRIES_MIN: u32 = 16;

impl Direction {
    /// Compares entry keys in this direction.
    fn compare(self, one: EntryKey<'_>, other: EntryKey<'_>) -> Ordering {
        match self {
            Direction::Forward => one.cmp(&other),
            Direction::Backward => other.cmp(&one),
        }
    }
}

impl RangeEnd {
    /// Returns `true` if the end is behind an entry key.
    fn is_behind(&self, entry_key: EntryKey<'_>, direction: Direction) -> bool {
        let to = self.to.as_ref();
        to.is_none_or(|to| direction.compare(entry_key, to.as_key()).is_lt())
    }

    /// Returns `true` if the end is at least as far as another.
    fn reaches(&self, other: &RangeEnd, direction: Direction) -> bool {
        match &other.to {
            Some(to) => self.to.as_ref() == Some(to) || self.is_behind(to.as_key(), direction),
            None => self.to.is_none(),
        }
    }
}

impl RangeEnds {
    /// Returns the approximate number of entries in the range.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns how far a cursor that seeks `from` and reads at `snapshot` can skip in a source
    /// whose newest position is `newest`.
    pub fn skip(
        &self,
        from: EntryKey<'_>,
        direction: Direction,
        newest: Position,
        snapshot: Position,
    ) -> Skip<'_> {
        let end = self.ends.iter().find(|end| end.position >= newest);
        let usable = end.filter(|end| end.position <= snapshot && end.is_behind(from, direction));
        match usable.map(|end| &end.to) {
            None => Skip::Nothing,
            Some(Some(to)) => Skip::To(to.as_key()),
            Some(None) => Skip::ToEnd,
        }
    }

    /// Returns the ends with another one, or `None` if a known end covers it.
    fn with_end(&self, new: RangeEnd, entries: u64, direction: Direction) -> Option<RangeEnds> {
        let covers = |end: &RangeEnd| end.position >= new.position && end.reaches(&new, direction);
        if self.ends.iter().any(covers) {
            return None;
        }
        let mut ends = self.ends.clone();
        ends.retain(|end| end.position > new.position || !new.reaches(end, direction));
        let index = ends.partition_point(|end| end.position <= new.position);
        ends.insert(index, new);
        if ends.len() > ENDS_MAX {
            ends.remove(1);
        }
        let entries = entries.max(self.entries);
        Some(RangeEnds { ends, entries })
    }
}

impl TombstoneRanges {
    fn in_direction(&self, direction: Direction) -> &RwLock<Vec<TombstoneRange>> {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        }
    }

    /// Returns the ends of a range that includes an entry key.
    pub(crate) fn find(
        &self,
        entry_key: EntryKey<'_>,
        direction: Direction,
    ) -> Option<Arc<RangeEnds>> {
        if !self.any.load(Memory::Acquire) {
            return None;
        }
        let ranges = self.in_direction(direction).read();
        let starts_before =
            |range: &TombstoneRange| direction.compare(range.from.as_key(), entry_key).is_le();
        let behind = ranges.partition_point(starts_before);
        let mut before = ranges.get(..behind)?.iter().rev().take(RANGES_SEARCHED);
        let includes = |range: &&TombstoneRange| {
            let farthest = range.ends.ends.first();
            farthest.is_some_and(|end| end.is_behind(entry_key, direction))
        };
        before.find(includes).map(|range| range.ends.clone())
    }

    fn record(&self, from: &EntryKeyBuf, direction: Direction, end: RangeEnd, entries: u64) {
        let keys = std::iter::once(from).chain(&end.to);
        if keys.map(|it| it.key.len()).max() > Some(KEY_BYTES_MAX) {
            return;
        }
        let mut ranges = self.in_direction(direction).write();
        let order = |range: &TombstoneRange| direction.compare(range.from.as_key(), from.as_key());
        if let Ok(index) = ranges.binary_search_by(order)
            && let Some(range) = ranges.get_mut(index)
        {
            if let Some(ends) = range.ends.with_end(end, entries, direction) {
                range.ends = Arc::new(ends);
            }
            range.worth = range.worth.max(entries);
            return;
        }
        if ranges.len() == RANGES_MAX {
            drop_least_worth(&mut ranges);
        }
        let index = ranges.partition_point(|range| order(range).is_lt());
        let ends = vec![end];
        let new = TombstoneRange {
            from: from.clone(),
            ends: Arc::new(RangeEnds { ends, entries }),
            worth: entries,
        };
        ranges.insert(index, new);
        self.any.store(true, Memory::Release);
    }
}

/// Drops the half of the ranges that is worth less, and halves the worth of the others.
fn drop_least_worth(ranges: &mut Vec<TombstoneRange>) {
    let mut by_worth: Vec<(u64, usize)> = ranges.iter().map(|it| it.worth).zip(0..).collect();
    by_worth.sort_unstable();
    let mut is_kept = vec![true; ranges.len()];
    for (_, index) in by_worth.iter().take(ranges.len() / 2) {
        is_kept[*index] = false;
    }
    let mut indexes = 0..;
    ranges.retain(|_| indexes.next().is_some_and(|index: usize| is_kept[index]));
    ranges.iter_mut().for_each(|range| range.worth /= 2);
}

/// Records the range of deleted entries that a cursor skips after a seek.
#[derive(Debug)]
pub(crate) struct RangeRecorder {
    ranges: Arc<TombstoneRanges>,
    direction: Direction,
    /// The entry key that the cursor sought.
    from: EntryKeyBuf,
    /// The cursor sees all entries of this one key only.
    within_key: bool,
    /// The approximate number of entries that a known range saved it.
    saved: u64,
    /// The number of deleted entries that it skipped since. `None` if nothing is recorded.
    skipped: Option<u32>,
}

impl RangeRecorder {
    pub fn new(ranges: Arc<TombstoneRanges>, direction: Direction) -> RangeRecorder {
        RangeRecorder {
            ranges,
            direction,
            from: EntryKeyBuf::default(),
            within_key: false,
            saved: 0,
            skipped: None,
        }
    }

    /// Returns the ends of a range that includes an entry key.
    pub fn find(&self, key: &[u8], id: RecordId) -> Option<Arc<RangeEnds>> {
        self.ranges.find(EntryKey::new(key, id), self.direction)
    }

    /// Begins a range at the entry key that the cursor seeks. A known range saves it about `saved`
    /// entries.
    pub fn begin(&mut self, key: &[u8], id: RecordId, within_key: bool, saved: u64) {
        self.from.key.clear();
        self.from.key.extend_from_slice(key);
        (self.from.id, self.within_key) = (id, within_key);
        self.saved = saved;
        self.skipped = Some(0);
    }

    /// Discards the range.
    pub fn stop(&mut self) {
        self.skipped = None;
    }

    #[inline]
    pub fn is_recording(&self) -> bool {
        self.skipped.is_some()
    }

    /// Counts a deleted entry.
    #[inline]
    pub fn count_skipped(&mut self) {
        self.skipped = self.skipped.map(|skipped| skipped.saturating_add(1));
    }

    /// Ends the range before the entry that the cursor shows, or at the end of the map, and records
    /// it.
    pub fn finish(&mut self, shown: Option<EntryKey<'_>>, snapshot: Position) {
        let skipped = self.skipped.take();
        let Some(skipped) = skipped.filter(|skipped| *skipped >= ENTRIES_MIN) else {
            return;
        };
        let is_known =
            |shown: &EntryKey<'_>| !self.within_key || same_key(shown.key, &self.from.key);
        let mut to = shown.filter(is_known);
        if self.within_key && to.is_none() {
            to = Some(EntryKey::new(&self.from.key, RecordId::MAX));
        }
        let to = to.map(EntryKeyBuf::from);
        let entries = self.saved.saturating_add(u64::from(skipped));
        let end = RangeEnd {
            to,
            position: snapshot,
        };
        self.ranges.record(&self.from, self.direction, end, entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_key(number: u8) -> EntryKeyBuf {
        EntryKey::first_of(&[number]).into()
    }

    fn end(to: u8, position: u64) -> RangeEnd {
        RangeEnd {
            to: Some(entry_key(to)),
            position: Position(position),
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }
    }

    /// For every snapshot and source, the farthest of all ends that hold for both is found, as long
    /// as few are recorded.
    #[test]
    fn the_farthest_end_that_holds_is_found() {
        let mut random = Random(7);
        for direction in [Direction::Forward, Direction::Backward] {
            for _ in 0..2000 {
                let (ranges, mut all) = (TombstoneRanges::default(), Vec::new());
                for _ in 0..random.below(ENDS_MAX as u64) + 1 {
                    let far = 1 + random.below(8) as u8;
                    let to = match direction {
                        Direction::Forward => 100 + far,
                        Direction::Backward => 100 - far,
                    };
                    let position = random.below(9);
                    ranges.record(&entry_key(100), direction, end(to, position), 20);
                    all.push((far, position));
                }
                let ends = ranges.find(EntryKey::first_of(&[100]), direction).unwrap();
                for (newest, reader) in
                    (0..9).flat_map(|newest| (newest..9).map(move |it| (newest, it)))
                {
                    let holds = |(_, position): &&(u8, u64)| (newest..=reader).contains(position);
                    let farthest = all.iter().filter(holds).map(|(far, _)| *far).max();
                    let found = ends.skip(
                        EntryKey::first_of(&[100]),
                        direction,
                        Position(newest),
                        Position(reader),
                    );
                    let found = match found {
                        Skip::To(to) => Some(to.key[0].abs_diff(100)),
                        Skip::Nothing | Skip::ToEnd => None,
                    };
                    // An end is dropped if a later one reaches as far. Snapshots in between lose
                    // it.
                    let newer = all.iter().any(|(_, position)| *position > reader);
                    assert!(
                        found == farthest || (newer && found < farthest),
                        "{all:?} {newest} {reader}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_range_is_found_behind_another_one() {
        let ranges = TombstoneRanges::default();
        ranges.record(&entry_key(10), Direction::Forward, end(200, 5), 190);
        ranges.record(&entry_key(20), Direction::Forward, end(21, 6), 20);
        let found = |number| ranges.find(EntryKey::first_of(&[number]), Direction::Forward);
        assert!(found(15).is_some() && found(20).is_some() && found(100).is_some());
        assert!(found(5).is_none() && found(200).is_none());
        let backward = ranges.find(EntryKey::first_of(&[100]), Direction::Backward);
        assert!(backward.is_none());
    }

    #[test]
    fn the_ranges_of_most_worth_are_kept() {
        let ranges = TombstoneRanges::default();
        let record = |number: u16, entries| {
            let key = number.to_be_bytes();
            let from = EntryKey::first_of(&key).into();
            let to = EntryKey::new(&key, RecordId(9)).into();
            let end = RangeEnd {
                to: Some(to),
                position: Position(1),
            };
            ranges.record(&from, Direction::Forward, end, entries);
        };
        record(3, 1_000_000);
        (10..10 + 2 * RANGES_MAX as u16).for_each(|number| record(number, 20));
        let known = |number: u16| {
            let from = number.to_be_bytes();
            let found = ranges.find(EntryKey::first_of(&from), Direction::Forward);
            found.is_some()
        };
        assert!(known(3));
        let kept = (10..10 + 2 * RANGES_MAX as u16)
            .filter(|number| known(*number))
            .count();
        assert!((RANGES_MAX / 2 - 1..RANGES_MAX).contains(&kept), "{kept}");
        assert!(known(9 + 2 * RANGES_MAX as u16));
    }

    #[test]
    fn a_cursor_of_one_key_records_nothing_behind_it() {
        let ranges = Arc::new(TombstoneRanges::default());
        let mut recorder = RangeRecorder::new(ranges.clone(), Direction::Forward);
        recorder.begin(&[7], RecordId(3), true, 0);
        (0..ENTRIES_MIN).for_each(|_| recorder.count_skipped());
        recorder.finish(Some(EntryKey::new(&[9], RecordId(1))), Position(50));
        assert!(!recorder.is_recording());
        let found = ranges
            .find(EntryKey::new(&[7], RecordId(4)), Direction::Forward)
            .unwrap();
        let from = EntryKey::new(&[7], RecordId(4));
        let (newest, reader) = (Position(50), Position(50));
        assert_eq!(
            found.skip(from, Direction::Forward, newest, reader),
            Skip::To(EntryKey::new(&[7], RecordId::MAX))
        );
        let behind = ranges.find(EntryKey::first_of(&[8]), Direction::Forward);
        assert!(behind.is_none());
    }
}
