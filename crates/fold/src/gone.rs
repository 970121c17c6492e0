//! Stretches of a map of which nothing is left: who takes things out at one end, as from a queue, leaves
//! what is gone there, and whoever looks for the first that is left would go through all of it each time.
//!
//! Who has gone past many entries that are gone notes it, with the position at which he read. Who reads at
//! that position or a later one goes behind the stretch in all sources that have nothing newer: what these
//! have there was deleted by themselves, since sources rank by what is newest in them, and what came since is
//! in the others. So what is noted stays true however the map is written, folded and merged. It does not
//! where what an old position shows is changed: an index that is being built is read by nobody, and one that
//! is repaired begins with nothing noted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::entry::{Direction, compare_keys, same_key};

/// What is gone, of entries in one order. See the module.
#[derive(Debug, Default)]
pub struct Gone {
    any: AtomicBool,
    forward: RwLock<Vec<Known>>,
    backward: RwLock<Vec<Known>>,
}

/// A key and an id.
pub(crate) type Place = (Vec<u8>, u64);

/// Going from a place, nothing was left before others.
#[derive(Clone, Debug)]
struct Known {
    from: Place,
    emptied: Arc<Emptied>,
}

/// Where a stretch ends that begins at some place.
#[derive(Debug)]
pub(crate) struct Emptied {
    /// By position, the oldest first, which is the farthest: at a later one something had come on the way.
    ends: Vec<End>,
    /// About how many entries it has.
    entries: u64,
}

#[derive(Clone, Debug)]
struct End {
    /// None: behind everything.
    to: Option<Place>,
    /// The position of the log at which nothing was left up to there.
    position: u64,
}

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
    fn compare(self, one: (&[u8], u64), other: (&[u8], u64)) -> std::cmp::Ordering {
        let forward = compare_keys(one.0, other.0).then(one.1.cmp(&other.1));
        match self {
            Direction::Forward => forward,
            Direction::Backward => forward.reverse(),
        }
    }
}

fn as_ref(place: &Place) -> (&[u8], u64) {
    (&place.0, place.1)
}

impl End {
    /// Whether it is behind a place.
    fn is_behind(&self, place: (&[u8], u64), direction: Direction) -> bool {
        let to = self.to.as_ref();
        to.is_none_or(|to| direction.compare(place, as_ref(to)).is_lt())
    }

    /// Whether it is as far as another.
    fn reaches(&self, other: &End, direction: Direction) -> bool {
        match &other.to {
            Some(to) => self.to.as_ref() == Some(to) || self.is_behind(as_ref(to), direction),
            None => self.to.is_none(),
        }
    }
}

impl Emptied {
    /// How far who seeks this place may go in a source that has nothing newer than `newest`, reading at a
    /// position: Some(None) is behind everything.
    pub fn end(
        &self,
        place: (&[u8], u64),
        direction: Direction,
        newest: u64,
        position: u64,
    ) -> Option<Option<(&[u8], u64)>> {
        let end = self.ends.iter().find(|end| end.position >= newest)?;
        let is_usable = end.position <= position && end.is_behind(place, direction);
        is_usable.then(|| end.to.as_ref().map(as_ref))
    }

    /// The same with one more end. None where an end that is known says as much.
    fn and(&self, new: End, entries: u64, direction: Direction) -> Option<Emptied> {
        let says_as_much = |end: &End| end.position >= new.position && end.reaches(&new, direction);
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
        Some(Emptied { ends, entries })
    }
}

impl Gone {
    fn of(&self, direction: Direction) -> &RwLock<Vec<Known>> {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Backward => &self.backward,
        }
    }

    /// What is known from a place on.
    pub(crate) fn around(&self, place: (&[u8], u64), direction: Direction) -> Option<Arc<Emptied>> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let known = self.of(direction).read();
        let behind = known.partition_point(|it| direction.compare(as_ref(&it.from), place).is_le());
        let nearest = known.get(behind.checked_sub(1)?)?;
        let ends = &nearest.emptied.ends;
        let has_place = ends.first()?.is_behind(place, direction);
        has_place.then(|| nearest.emptied.clone())
    }

    fn note(&self, from: &Place, direction: Direction, end: End, entries: u64) {
        let keys = std::iter::once(from).chain(&end.to);
        if keys.map(|place| place.0.len()).max() > Some(KEY_BYTES_MAX) {
            return;
        }
        let mut known = self.of(direction).write();
        if known.len() == STRETCHES_MAX {
            keep_longest(&mut known);
        }
        let place = |it: &Known| direction.compare(as_ref(&it.from), as_ref(from));
        match known.binary_search_by(place) {
            Ok(at) => {
                let known = known.get_mut(at);
                if let Some(known) = known
                    && let Some(emptied) = known.emptied.and(end, entries, direction)
                {
                    known.emptied = Arc::new(emptied);
                }
            }
            Err(at) => {
                let ends = vec![end];
                let emptied = Arc::new(Emptied { ends, entries });
                let from = from.clone();
                known.insert(at, Known { from, emptied });
            }
        }
        self.any.store(true, Ordering::Release);
    }
}

/// Forgets the shorter half.
fn keep_longest(known: &mut Vec<Known>) {
    let mut lengths: Vec<u64> = known.iter().map(|it| it.emptied.entries).collect();
    let half = lengths.len() / 2;
    let (_, median, _) = lengths.select_nth_unstable(half);
    let median = *median;
    known.retain(|it| it.emptied.entries > median);
}

/// What a cursor notes of what it passes.
#[derive(Debug)]
pub(crate) struct Passing {
    gone: Arc<Gone>,
    direction: Direction,
    /// Where it was sent.
    from: Place,
    /// Whether it sees all entries of that key alone.
    within_key: bool,
    /// About how many entries of a stretch that is known it did not have to pass.
    spared: u64,
    /// How many it has gone past since, until it has shown one; None: nothing is noted.
    passed: Option<u32>,
}

impl Passing {
    pub fn new(gone: Arc<Gone>, direction: Direction) -> Passing {
        Passing {
            gone,
            direction,
            from: Place::default(),
            within_key: false,
            spared: 0,
            passed: None,
        }
    }

    pub fn around(&self, key: &[u8], id: u64) -> Option<Arc<Emptied>> {
        self.gone.around((key, id), self.direction)
    }

    /// The cursor was sent to a place, and goes on from there or behind a stretch.
    pub fn begin(&mut self, key: &[u8], id: u64, within_key: bool, behind: Option<&Emptied>) {
        let (from, from_id) = &mut self.from;
        from.clear();
        from.extend_from_slice(key);
        (*from_id, self.within_key) = (id, within_key);
        self.spared = behind.map_or(0, |it| it.entries);
        self.passed = Some(0);
    }

    /// What is passed from here on is not noted, until the cursor is sent to a place.
    pub fn stop(&mut self) {
        self.passed = None;
    }

    #[inline]
    pub fn is_noting(&self) -> bool {
        self.passed.is_some()
    }

    #[inline]
    pub fn pass(&mut self) {
        self.passed = self.passed.map(|passed| passed.saturating_add(1));
    }

    /// Notes that nothing is left before this place, or at all.
    pub fn end(&mut self, shown: Option<(&[u8], u64)>, position: u64) {
        let passed = self.passed.take().filter(|passed| *passed >= ENTRIES_MIN);
        let Some(passed) = passed else {
            return;
        };
        let is_known = |place: &(&[u8], u64)| !self.within_key || same_key(place.0, &self.from.0);
        let mut to = shown.filter(is_known);
        if self.within_key && to.is_none() {
            to = Some((&self.from.0, u64::MAX));
        }
        let to = to.map(|(key, id)| (key.to_vec(), id));
        let entries = self.spared.saturating_add(u64::from(passed));
        let end = End { to, position };
        self.gone.note(&self.from, self.direction, end, entries);
    }
}
