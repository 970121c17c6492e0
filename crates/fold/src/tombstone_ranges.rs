//! Stretches of a map of which nothing is left: who takes things out at one end, as from a queue, leaves
//! what is gone there, and whoever looks for the first that is left would go through all of it each time.
//!
//! Who has gone past many entries that are gone notes it, with the position at which he read. Who reads at
//! that position or a later one goes behind the interval in all sources that have nothing newer:
//!
//! ```text
//!                                      1      2      3      4      5      6
//! section, newest entry of 40          put    put    put    put    put    put
//! tail, newest entry of 90             gone   gone          gone
//! read at 70: gone from 1 to 5         gone   gone   gone   gone
//! a reader at 100 who seeks 1 begins in the section at 5, in the tail at 1
//! ```
//!
//! What the section has there was deleted by the tail or by itself: sources rank by what is newest in them,
//! so none that is left out has something newer than one that is read. So what is noted stays true however
//! the map is written, folded and merged. It does not where what an old position shows is changed: an index
//! that is being built is read by nobody, and one that is repaired begins with nothing noted.
//!
//! Of one beginning several ends are known: where something came amid a interval, a later reader's is nearer,
//! and the older one still holds for the sources that had nothing newer then. Who reads one key alone notes
//! nothing behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use windrow_storage::Position;

use crate::entry::{Direction, EntryKey, EntryKeyBuf, RecordId, same_key};

/// What is gone, of entries in one order. See the module.
#[derive(Debug, Default)]
pub struct TombstoneRanges {
    any: AtomicBool,
    forward: RwLock<Vec<TombstoneRange>>,
    backward: RwLock<Vec<TombstoneRange>>,
}

/// Going from a place, nothing was left before others.
#[derive(Clone, Debug)]
struct TombstoneRange {
    from: EntryKeyBuf,
    ends: Arc<RangeEnds>,
    /// What it is worth to be known: its entries, less the longer ago it was noted.
    worth: u64,
}

/// Where a interval ends that begins at some place.
#[derive(Debug)]
pub(crate) struct RangeEnds {
    /// By position: the later, the nearer.
    ends: Vec<RangeEnd>,
    /// About how many entries it has.
    entries: u64,
}

#[derive(Clone, Debug)]
struct RangeEnd {
    /// None: behind everything.
    to: Option<EntryKeyBuf>,
    /// The position of the log at which nothing was left up to there.
    position: Position,
}

/// So many intervals before a place are looked at for one that has it.
const LOOKED_AT: usize = 4;
/// So many are known in a direction: queues of so many owners may stand in one index.
const STRETCHES_MAX: usize = 512;
/// The farthest end and the newest ones.
const ENDS_MAX: usize = 6;
/// Longer keys are not worth it.
const KEY_BYTES_MAX: usize = 1 << 8;
/// Stretches of fewer entries are gone through as fast.
const ENTRIES_MIN: u32 = 16;

impl Direction {
    /// Orders places as they are gone through.
    fn compare(self, one: EntryKey<'_>, other: EntryKey<'_>) -> std::cmp::Ordering {
        match self {
            Direction::Forward => one.cmp(&other),
            Direction::Backward => other.cmp(&one),
        }
    }
}

impl RangeEnd {
    /// Whether it is behind a place.
    fn is_behind(&self, place: EntryKey<'_>, direction: Direction) -> bool {
        let to = self.to.as_ref();
        to.is_none_or(|to| direction.compare(place, to.as_key()).is_lt())
    }

    /// Whether it is as far as another.
    fn reaches(&self, other: &RangeEnd, direction: Direction) -> bool {
        match &other.to {
            Some(to) => self.to.as_ref() == Some(to) || self.is_behind(to.as_key(), direction),
            None => self.to.is_none(),
        }
    }
}

impl RangeEnds {
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// How far who seeks this place may go in a source that has nothing newer than `newest`, reading at a
    /// position: Some(None) is behind everything.
    pub fn end(
        &self,
        place: EntryKey<'_>,
        direction: Direction,
        newest: Position,
        position: Position,
    ) -> Option<Option<EntryKey<'_>>> {
        let end = self.ends.iter().find(|end| end.position >= newest)?;
        let is_usable = end.position <= position && end.is_behind(place, direction);
        is_usable.then(|| end.to.as_ref().map(EntryKeyBuf::as_key))
    }

    /// The same with one more end. None where an end that is known says as much.
    fn and(&self, new: RangeEnd, entries: u64, direction: Direction) -> Option<RangeEnds> {
        let says_as_much =
            |end: &RangeEnd| end.position >= new.position && end.reaches(&new, direction);
        if self.ends.iter().any(says_as_much) {
            return None;
        }
        let mut ends = self.ends.clone();
        ends.retain(|end| end.position > new.position || !new.reaches(end, direction));
        let at = ends.partition_point(|end| end.position <= new.position);
        ends.insert(at, new);
        if ends.len() > ENDS_MAX {
            ends.remove(1);
        }
        let entries = entries.max(self.entries);
        Some(RangeEnds { ends, entries })
    }
}

impl TombstoneRanges {
    fn of(&self, direction: Direction) -> &RwLock<Vec<TombstoneRange>> {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        }
    }

    /// What is known from a place on.
    pub(crate) fn around(
        &self,
        place: EntryKey<'_>,
        direction: Direction,
    ) -> Option<Arc<RangeEnds>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let known = self.of(direction).read();
        let behind = known.partition_point(|it| direction.compare(it.from.as_key(), place).is_le());
        let mut before = known.get(..behind)?.iter().rev().take(LOOKED_AT);
        let has_place = |it: &&TombstoneRange| {
            let farthest = it.ends.ends.first();
            farthest.is_some_and(|end| end.is_behind(place, direction))
        };
        before.find(has_place).map(|it| it.ends.clone())
    }

    fn note(&self, from: &EntryKeyBuf, direction: Direction, end: RangeEnd, entries: u64) {
        let keys = std::iter::once(from).chain(&end.to);
        if keys.map(|it| it.key.len()).max() > Some(KEY_BYTES_MAX) {
            return;
        }
        let mut known = self.of(direction).write();
        let place = |it: &TombstoneRange| direction.compare(it.from.as_key(), from.as_key());
        if let Ok(at) = known.binary_search_by(place)
            && let Some(known) = known.get_mut(at)
        {
            if let Some(ends) = known.ends.and(end, entries, direction) {
                known.ends = Arc::new(ends);
            }
            known.worth = known.worth.max(entries);
            return;
        }
        if known.len() == STRETCHES_MAX {
            keep_worthiest(&mut known);
        }
        let at = known.partition_point(|it| place(it).is_lt());
        let ends = vec![end];
        let new = TombstoneRange {
            from: from.clone(),
            ends: Arc::new(RangeEnds { ends, entries }),
            worth: entries,
        };
        known.insert(at, new);
        self.any.store(true, Ordering::Release);
    }
}

/// Forgets the half that is worth less; the others are worth less from now on.
fn keep_worthiest(known: &mut Vec<TombstoneRange>) {
    let mut by_age: Vec<(u64, usize)> = known.iter().map(|it| it.worth).zip(0..).collect();
    by_age.sort_unstable();
    let mut is_kept = vec![true; known.len()];
    for (_, number) in by_age.iter().take(known.len() / 2) {
        is_kept[*number] = false;
    }
    let mut numbers = 0..;
    known.retain(|_| numbers.next().is_some_and(|number: usize| is_kept[number]));
    known.iter_mut().for_each(|it| it.worth /= 2);
}

/// What a cursor notes of what it passes.
#[derive(Debug)]
pub(crate) struct RangeRecorder {
    gone: Arc<TombstoneRanges>,
    direction: Direction,
    /// Where it was sent.
    from: EntryKeyBuf,
    /// Whether it sees all entries of no other key.
    within_key: bool,
    /// About how many entries of a interval that is known it did not have to pass.
    spared: u64,
    /// How many it has gone past since, until it has shown one; None: nothing is noted.
    passed: Option<u32>,
}

impl RangeRecorder {
    pub fn new(gone: Arc<TombstoneRanges>, direction: Direction) -> RangeRecorder {
        RangeRecorder {
            gone,
            direction,
            from: EntryKeyBuf::default(),
            within_key: false,
            spared: 0,
            passed: None,
        }
    }

    pub fn around(&self, key: &[u8], id: RecordId) -> Option<Arc<RangeEnds>> {
        self.gone.around(EntryKey::new(key, id), self.direction)
    }

    /// The cursor was sent to a place. `spared`: about how many entries it has not to pass.
    pub fn begin(&mut self, key: &[u8], id: RecordId, within_key: bool, spared: u64) {
        self.from.key.clear();
        self.from.key.extend_from_slice(key);
        (self.from.id, self.within_key) = (id, within_key);
        self.spared = spared;
        self.passed = Some(0);
    }

    /// What is passed from here on is not noted, until the cursor is sent to a place.
    pub fn stop(&mut self) {
        self.passed = None;
    }

    #[inline]
    pub fn is_recording(&self) -> bool {
        self.passed.is_some()
    }

    #[inline]
    pub fn pass(&mut self) {
        self.passed = self.passed.map(|passed| passed.saturating_add(1));
    }

    /// Notes that nothing is left before this place, or at all.
    pub fn end(&mut self, shown: Option<EntryKey<'_>>, position: Position) {
        let passed = self.passed.take().filter(|passed| *passed >= ENTRIES_MIN);
        let Some(passed) = passed else {
            return;
        };
        let is_known =
            |place: &EntryKey<'_>| !self.within_key || same_key(place.key, &self.from.key);
        let mut to = shown.filter(is_known);
        if self.within_key && to.is_none() {
            to = Some(EntryKey::new(&self.from.key, RecordId::MAX));
        }
        let to = to.map(EntryKeyBuf::from);
        let entries = self.spared.saturating_add(u64::from(passed));
        let end = RangeEnd { to, position };
        self.gone.note(&self.from, self.direction, end, entries);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: u8) -> EntryKeyBuf {
        EntryKey::first_of(&[number]).into()
    }

    fn end(to: u8, position: u64) -> RangeEnd {
        RangeEnd {
            to: Some(place(to)),
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

    /// For every reader and source: the farthest of all ends that hold for both, as long as few are noted.
    #[test]
    fn the_farthest_end_that_holds_is_found() {
        let mut random = Random(7);
        for direction in [Direction::Forward, Direction::Backward] {
            for _ in 0..2000 {
                let (gone, mut all) = (TombstoneRanges::default(), Vec::new());
                for _ in 0..random.below(ENDS_MAX as u64) + 1 {
                    let far = 1 + random.below(8) as u8;
                    let to = match direction {
                        Direction::Forward => 100 + far,
                        Direction::Backward => 100 - far,
                    };
                    let position = random.below(9);
                    gone.note(&place(100), direction, end(to, position), 20);
                    all.push((far, position));
                }
                let ends = gone.around(EntryKey::first_of(&[100]), direction).unwrap();
                for (newest, reader) in
                    (0..9).flat_map(|newest| (newest..9).map(move |it| (newest, it)))
                {
                    let holds = |(_, position): &&(u8, u64)| (newest..=reader).contains(position);
                    let farthest = all.iter().filter(holds).map(|(far, _)| *far).max();
                    let found = ends.end(
                        EntryKey::first_of(&[100]),
                        direction,
                        Position(newest),
                        Position(reader),
                    );
                    let found = found
                        .flatten()
                        .and_then(|to| Some(to.key.first()?.abs_diff(100)));
                    // An end that a later one reaches, too, is not kept for those who read in between.
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
    fn a_stretch_behind_others_is_found() {
        let gone = TombstoneRanges::default();
        gone.note(&place(10), Direction::Forward, end(200, 5), 190);
        gone.note(&place(20), Direction::Forward, end(21, 6), 20);
        let found = |number| gone.around(EntryKey::first_of(&[number]), Direction::Forward);
        assert!(found(15).is_some() && found(20).is_some() && found(100).is_some());
        assert!(found(5).is_none() && found(200).is_none());
        let backward = gone.around(EntryKey::first_of(&[100]), Direction::Backward);
        assert!(backward.is_none());
    }

    #[test]
    fn what_is_worth_most_is_kept() {
        let gone = TombstoneRanges::default();
        let note = |number: u16, entries| {
            let key = number.to_be_bytes();
            let from = EntryKey::first_of(&key).into();
            let to = EntryKey::new(&key, RecordId(9)).into();
            let end = RangeEnd {
                to: Some(to),
                position: Position(1),
            };
            gone.note(&from, Direction::Forward, end, entries);
        };
        note(3, 1_000_000);
        (10..10 + 2 * STRETCHES_MAX as u16).for_each(|number| note(number, 20));
        let known = |number: u16| {
            let from = number.to_be_bytes();
            let found = gone.around(EntryKey::first_of(&from), Direction::Forward);
            found.is_some()
        };
        assert!(known(3));
        let kept = (10..10 + 2 * STRETCHES_MAX as u16)
            .filter(|number| known(*number))
            .count();
        assert!(
            (STRETCHES_MAX / 2 - 1..STRETCHES_MAX).contains(&kept),
            "{kept}"
        );
        assert!(known(9 + 2 * STRETCHES_MAX as u16));
    }

    #[test]
    fn who_reads_one_key_notes_nothing_behind_it() {
        let gone = Arc::new(TombstoneRanges::default());
        let mut recorder = RangeRecorder::new(gone.clone(), Direction::Forward);
        recorder.begin(&[7], RecordId(3), true, 0);
        (0..ENTRIES_MIN).for_each(|_| recorder.pass());
        recorder.end(Some(EntryKey::new(&[9], RecordId(1))), Position(50));
        assert!(!recorder.is_recording());
        let found = gone
            .around(EntryKey::new(&[7], RecordId(4)), Direction::Forward)
            .unwrap();
        let from = EntryKey::new(&[7], RecordId(4));
        let (newest, reader) = (Position(50), Position(50));
        assert_eq!(
            found.end(from, Direction::Forward, newest, reader),
            Some(Some(EntryKey::new(&[7], RecordId::MAX)))
        );
        let behind = gone.around(EntryKey::first_of(&[8]), Direction::Forward);
        assert!(behind.is_none());
    }
}
