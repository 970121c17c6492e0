//! The tail of a map: parts in the order of the log, which are joined to keep their number small.
//!
//! Several parts of similar size are joined at once, so that an entry is seldom copied. Small ones
//! are joined by the thread that creates the last of them, which is often a reader. Larger ones are
//! left to [`Tail::join_parts`], which joins them only if there are readers. Parts that are large
//! together stay longer: a fold merges them anyway, and copying them before costs more than a dozen
//! parts cost a reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use windrow_storage::Position;

use crate::tail_part::TailPart;

/// This many parts of similar size become one.
const JOINED: usize = 4;
/// This many parts become one if they have together more than [`LARGE_ENTRIES`].
const JOINED_LARGE: usize = 12;
const LARGE_ENTRIES: usize = 256 << 10;
/// Parts with at most this many entries together are joined at once.
const SMALL_ENTRIES: usize = 4 << 10;
/// With this many parts they are joined at once, whatever their size: the background thread is too
/// far behind.
const PARTS_MAX: usize = 64;

/// The entries of a map that are not folded yet, in parts.
#[derive(Debug, Default)]
pub struct Tail {
    state: Mutex<TailState>,
    /// There are parts that should be joined, if the tail is read.
    has_joinable_parts: AtomicBool,
    /// The tail was read since its parts were joined last.
    is_read: AtomicBool,
    /// Held while parts are created. Taken before `state`.
    making: Mutex<()>,
    /// Held while parts are joined.
    joining: Mutex<()>,
}

#[derive(Debug, Default)]
struct TailState {
    parts: Arc<Vec<Arc<TailPart>>>,
    covered: Position,
}

/// The parts of a tail at one time.
#[derive(Clone, Debug)]
pub struct ExistingParts {
    /// The parts, in the order of the log.
    pub parts: Arc<Vec<Arc<TailPart>>>,
    /// The position up to which the parts have all entries.
    pub covered: Position,
}

impl Tail {
    /// Creates a tail whose parts begin after the position `covered`.
    pub fn new(covered: Position) -> Tail {
        Tail {
            state: Mutex::new(TailState {
                covered,
                ..TailState::default()
            }),
            ..Tail::default()
        }
    }

    /// Returns the parts up to at least `position`, for a reader. Creates those that do not exist,
    /// see [`extend_to`](Self::extend_to).
    pub fn parts_up_to(
        &self,
        position: Position,
        make: impl FnOnce(Position) -> (Vec<TailPart>, Position),
    ) -> Arc<Vec<Arc<TailPart>>> {
        self.note_reader();
        self.extend_to(position, make)
    }

    /// Returns the parts up to at least `position`. If they do not exist yet, `make` is called with
    /// the position up to which parts exist. It returns the parts after it, oldest first, and the
    /// position up to which they go.
    ///
    /// # Panics
    ///
    /// Panics if `make` returns a position before `position`.
    pub fn extend_to(
        &self,
        position: Position,
        make: impl FnOnce(Position) -> (Vec<TailPart>, Position),
    ) -> Arc<Vec<Arc<TailPart>>> {
        let existing = self.current_parts();
        if existing.covered >= position {
            return existing.parts;
        }
        let _alone = self.making.lock();
        let existing = self.current_parts();
        if existing.covered >= position {
            return existing.parts;
        }
        let from = existing.covered;
        drop(existing);
        let (new_parts, covered) = make(from);
        let mut state = self.state.lock();
        debug_assert_eq!(
            state.covered, from,
            "only one thread creates parts at a time"
        );
        assert!(
            covered >= position && covered > from,
            "parts after {from} go up to {covered}, but a reader needs them up to {position}"
        );
        state.covered = covered;
        let new_parts = new_parts.into_iter().filter(|part| !part.is_empty());
        let new_parts: Vec<TailPart> = new_parts.collect();
        if !new_parts.is_empty() {
            let parts = Arc::make_mut(&mut state.parts);
            parts.iter_mut().for_each(TailPart::shed);
            for part in new_parts {
                debug_assert!(
                    part.newest_position() <= covered,
                    "a part has an entry of position {}, but parts go up to {covered}",
                    part.newest_position()
                );
                let is_tidy = push(parts, part);
                self.has_joinable_parts.store(!is_tidy, Ordering::Relaxed);
            }
        }
        state.parts.clone()
    }

    /// Returns the parts that exist now, for a reader. Does not wait for a thread that creates
    /// others.
    pub fn existing_parts(&self) -> ExistingParts {
        self.note_reader();
        self.current_parts()
    }

    fn note_reader(&self) {
        // Readers mostly find the flag set, and share its cache line.
        if !self.is_read.load(Ordering::Relaxed) {
            self.is_read.store(true, Ordering::Relaxed);
        }
    }

    fn current_parts(&self) -> ExistingParts {
        let state = self.state.lock();
        ExistingParts {
            parts: state.parts.clone(),
            covered: state.covered,
        }
    }

    /// Returns `true` if [`join_parts`](Self::join_parts) has parts to join.
    pub fn has_joinable_parts(&self) -> bool {
        self.has_joinable_parts.load(Ordering::Relaxed) && self.is_read.load(Ordering::Relaxed)
    }

    /// Joins parts while others read and add. Does nothing if the tail was not read since the last
    /// time. Returns `true` if there were any to join.
    pub fn join_parts(&self) -> bool {
        if !self.is_read.load(Ordering::Relaxed) {
            return false;
        }
        let _alone = self.joining.lock();
        let state = self.state.lock();
        let parts = state.parts.clone();
        let Some(JoinableParts { start, .. }) = JoinableParts::find(&parts) else {
            // Inside the lock, so that a part which is added now is not overlooked.
            self.has_joinable_parts.store(false, Ordering::Relaxed);
            return false;
        };
        drop(state);
        self.is_read.store(false, Ordering::Relaxed);
        let (_, alike) = parts.split_at(start);
        let joined = Arc::new(TailPart::join(alike));
        let mut state = self.state.lock();
        let places = start..start + alike.len();
        let still = state.parts.get(places.clone()).unwrap_or_default();
        // A thread that added parts meanwhile may have joined some of them.
        let same = |(one, other): (&Arc<TailPart>, &Arc<TailPart>)| Arc::ptr_eq(one, other);
        if still.len() == alike.len() && still.iter().zip(alike).all(same) {
            Arc::make_mut(&mut state.parts).splice(places, [joined]);
        }
        true
    }

    /// Returns the memory of the parts, in bytes.
    pub fn bytes(&self) -> usize {
        let state = self.state.lock();
        state.parts.iter().map(|it| it.bytes()).sum()
    }

    /// Returns the position up to which parts exist.
    pub fn covered(&self) -> Position {
        self.state.lock().covered
    }
}

/// Adds a part and joins small ones. Returns `true` if nothing is left to join.
fn push(parts: &mut Vec<Arc<TailPart>>, part: TailPart) -> bool {
    parts.push(Arc::new(part));
    while let Some(JoinableParts { start, entries }) = JoinableParts::find(parts) {
        if entries > SMALL_ENTRIES && parts.len() < PARTS_MAX {
            return false;
        }
        let alike = parts.split_off(start);
        parts.push(Arc::new(TailPart::join(&alike)));
    }
    true
}

/// The youngest parts that should become one: enough of them have similar size, and the others are
/// smaller.
struct JoinableParts {
    start: usize,
    entries: usize,
}

impl JoinableParts {
    fn find(parts: &[Arc<TailPart>]) -> Option<JoinableParts> {
        let (mut largest, mut count, mut entries) = (0, 0, 0);
        let is_enough = |count: usize, entries: usize| {
            if entries > LARGE_ENTRIES {
                count >= JOINED_LARGE
            } else {
                count >= JOINED
            }
        };
        for (place, part) in parts.iter().enumerate().rev() {
            let class = class(part.len());
            if class > largest {
                if is_enough(count, entries) {
                    let start = place + 1;
                    return Some(JoinableParts { start, entries });
                }
                (largest, count) = (class, 0);
            }
            count += usize::from(class == largest);
            entries += part.len();
        }
        is_enough(count, entries).then_some(JoinableParts { start: 0, entries })
    }
}

/// Returns the size class of a part. Sizes within a class differ by less than a factor of
/// [`JOINED`].
fn class(entries: usize) -> u32 {
    // A part without entries is in the class of the smallest.
    entries.checked_ilog(JOINED).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, EntryBufferBuilder, RecordId};

    /// Creates a part with this many entries, with keys that no other position has.
    fn part(position: u64, entries: u64) -> TailPart {
        let mut builder = EntryBufferBuilder::new(Position(position), 1);
        for number in 0..entries {
            let key = [position * 7919 % 1000, number]
                .map(u64::to_be_bytes)
                .concat();
            builder.add(Entry {
                key: &key,
                id: RecordId(1),
                position: Position(position),
                deleted: false,
                payload: b"",
            });
        }
        builder.finish().into()
    }

    /// Adds parts with this many entries each. Returns the largest number of parts that existed at
    /// a time.
    fn check(tail: &Tail, count: u64, entries: u64, joins: bool) -> usize {
        let mut parts_max = 0;
        for position in 1..=count {
            let parts = tail.parts_up_to(Position(position), |from| {
                assert_eq!(from, Position(position - 1));
                (vec![part(position, entries)], Position(position))
            });
            while joins && tail.join_parts() {}
            parts_max = parts_max.max(parts.len());
        }
        let parts = tail.parts_up_to(Position(count), |_| unreachable!("covered before"));
        let count_in_parts: usize = parts.iter().map(|part| part.len()).sum();
        assert_eq!(count_in_parts as u64, count * entries);
        for part in parts.iter() {
            let keys: Vec<&[u8]> = part.sorted().buffer().keys().collect();
            assert_eq!(keys.len(), part.len());
            assert!(keys.is_sorted());
        }
        parts_max
    }

    #[test]
    fn parts_stay_few_and_lose_no_entries() {
        let classes = class(1000) as usize + 1;
        let tail = Tail::default();
        let found = check(&tail, 1000, 1, false);
        assert!(found <= classes * (JOINED - 1), "{found}");
        assert!(!tail.has_joinable_parts());
        let found = check(&Tail::default(), 200, 600, true);
        assert!(found <= JOINED + JOINED_LARGE, "{found}");
    }

    #[test]
    fn readers_join_large_parts_only_if_there_are_too_many() {
        let tail = Tail::default();
        check(&tail, JOINED as u64, SMALL_ENTRIES as u64 / 2, false);
        assert!(tail.has_joinable_parts());
        assert!(tail.join_parts() && !tail.has_joinable_parts());
        let found = check(&Tail::default(), 200, 600, false);
        assert!(found <= PARTS_MAX, "{found}");
    }

    /// Before, a tail that only a fold read was copied, and the fold did the same work.
    #[test]
    fn parts_are_joined_for_readers_only() {
        let tail = Tail::default();
        let entries = SMALL_ENTRIES as u64;
        for position in 1..=4 * JOINED as u64 {
            tail.extend_to(Position(position), |_| {
                (vec![part(position, entries)], Position(position))
            });
        }
        assert!(!tail.has_joinable_parts() && !tail.join_parts());
        let before = tail.existing_parts().parts.len();
        assert!(tail.has_joinable_parts() && tail.join_parts());
        assert!(tail.existing_parts().parts.len() < before);
    }

    /// Parts are added while others are joined.
    #[test]
    fn joining_while_adding_loses_no_entries() {
        let tail = Tail::default();
        let added = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                check(&tail, 400, 700, false);
                added.store(true, Ordering::Relaxed);
            });
            while !added.load(Ordering::Relaxed) {
                tail.join_parts();
            }
        });
        let parts = tail.parts_up_to(Position(400), |_| unreachable!("covered before"));
        assert_eq!(
            parts.iter().map(|part| part.len()).sum::<usize>(),
            400 * 700
        );
    }
}
