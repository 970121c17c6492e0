//! The tail of a map: parts in the order of the log, joined so that there are never many.
//!
//! Several parts of like size are joined at once, so that an entry is seldom moved: few entries by who
//! makes the last of them, which is often a reader, more by whoever is asked to [`Tail::join_parts`]. Large
//! parts stay a little longer, since a fold merges them all the same, and moving them before costs more
//! than a dozen of them costs a reader.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use windrow_storage::Position;

use crate::tail_part::TailPart;

/// So many parts of like size become one.
const JOINED: usize = 4;
/// So many, where they have together more than [`LARGE_ENTRIES`].
const JOINED_LARGE: usize = 12;
const LARGE_ENTRIES: usize = 256 << 10;
/// With so few entries, parts are joined at once.
const SMALL_ENTRIES: usize = 4 << 10;
/// With so many parts, too: whoever should join_parts is too far behind.
const PARTS_MAX: usize = 64;

/// Parts, oldest first.
#[derive(Debug, Default)]
pub struct Tail {
    state: Mutex<TailState>,
    /// Whether there are parts that should be joined.
    has_joinable_parts: AtomicBool,
    /// Held by who makes some, before the state.
    making: Mutex<()>,
    /// Held by who joins some.
    joining: Mutex<()>,
}

#[derive(Debug, Default)]
struct TailState {
    parts: Arc<Vec<Arc<TailPart>>>,
    settled: Position,
}

impl Tail {
    /// A tail that has taken in everything up to `settled`.
    pub fn new(settled: Position) -> Tail {
        Tail {
            state: Mutex::new(TailState {
                settled,
                ..TailState::default()
            }),
            ..Tail::default()
        }
    }

    /// Returns the parts up to at least `position`. If they are not made yet, `make` is called with the
    /// position up to which parts exist. It returns the parts after it, oldest first, and the position
    /// up to which they go.
    pub fn parts_up_to(
        &self,
        position: Position,
        make: impl FnOnce(Position) -> (Vec<TailPart>, Position),
    ) -> Arc<Vec<Arc<TailPart>>> {
        let (parts, settled) = self.made();
        if settled >= position {
            return parts;
        }
        let _alone = self.making.lock();
        let (parts, from) = self.made();
        if from >= position {
            return parts;
        }
        drop(parts);
        let (made, settled) = make(from);
        let mut state = self.state.lock();
        debug_assert_eq!(state.settled, from, "a tail is settled by one at a time");
        assert!(
            settled >= position && settled > from,
            "a tail is settled up to {settled}, from {from} on, for who reads at {position}"
        );
        state.settled = settled;
        let made: Vec<TailPart> = made.into_iter().filter(|part| !part.is_empty()).collect();
        if !made.is_empty() {
            let parts = Arc::make_mut(&mut state.parts);
            parts.iter_mut().for_each(TailPart::shed);
            for part in made {
                debug_assert!(
                    part.newest_position() <= settled,
                    "an entry of position {} in a tail that is settled up to {settled}",
                    part.newest_position()
                );
                let is_tidy = push(parts, part);
                self.has_joinable_parts.store(!is_tidy, Ordering::Relaxed);
            }
        }
        state.parts.clone()
    }

    /// The parts that are made, and up to which position. Does not wait for who makes others.
    pub fn made(&self) -> (Arc<Vec<Arc<TailPart>>>, Position) {
        let state = self.state.lock();
        (state.parts.clone(), state.settled)
    }

    /// Whether [`join_parts`](Self::join_parts) would find something to do.
    pub fn has_joinable_parts(&self) -> bool {
        self.has_joinable_parts.load(Ordering::Relaxed)
    }

    /// Joins parts while others read and add; whether there were any to join.
    pub fn join_parts(&self) -> bool {
        let _alone = self.joining.lock();
        let state = self.state.lock();
        let parts = state.parts.clone();
        let Some(JoinableParts { start, .. }) = JoinableParts::find(&parts) else {
            // Within the lock, so that it is not what somebody adds who finds too much.
            self.has_joinable_parts.store(false, Ordering::Relaxed);
            return false;
        };
        drop(state);
        let (_, alike) = parts.split_at(start);
        let joined = Arc::new(TailPart::join(alike));
        let mut state = self.state.lock();
        let places = start..start + alike.len();
        let still = state.parts.get(places.clone()).unwrap_or_default();
        // Who added meanwhile may have joined some of them.
        let same = |(one, other): (&Arc<TailPart>, &Arc<TailPart>)| Arc::ptr_eq(one, other);
        if still.len() == alike.len() && still.iter().zip(alike).all(same) {
            Arc::make_mut(&mut state.parts).splice(places, [joined]);
        }
        true
    }

    /// Memory held, in bytes.
    pub fn bytes(&self) -> usize {
        let state = self.state.lock();
        state.parts.iter().map(|it| it.bytes()).sum()
    }

    /// Up to which position entries were made.
    pub fn settled(&self) -> Position {
        self.state.lock().settled
    }
}

/// Adds a part and joins what is joined at once; whether nothing is left to join.
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

/// The youngest parts, of which so many are of like size, the others smaller, that they should be one.
struct JoinableParts {
    start: usize,
    entries: usize,
}

impl JoinableParts {
    fn find(parts: &[Arc<TailPart>]) -> Option<JoinableParts> {
        let (mut largest, mut count, mut entries) = (0, 0, 0);
        let is_enough = |count: usize, entries: usize| match entries > LARGE_ENTRIES {
            true => count >= JOINED_LARGE,
            false => count >= JOINED,
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

/// Parts of a class have sizes within a factor of [`JOINED`].
fn class(entries: usize) -> u32 {
    // No entries are as few as one.
    entries.checked_ilog(JOINED).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Entry, EntryBufferBuilder, RecordId};

    /// Entries of one position, so many, whose keys no other position has.
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

    /// Adds parts with so many entries each; returns how many parts are left at most at any time.
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
        let parts = tail.parts_up_to(Position(count), |_| unreachable!("settled before"));
        let held: usize = parts.iter().map(|part| part.len()).sum();
        assert_eq!(held as u64, count * entries);
        for part in parts.iter() {
            let keys: Vec<&[u8]> = part.sorted().buffer().keys().collect();
            assert_eq!(keys.len(), part.len());
            assert!(keys.is_sorted());
        }
        parts_max
    }

    #[test]
    fn parts_stay_few_and_hold_everything() {
        let classes = class(1000) as usize + 1;
        let tail = Tail::default();
        let found = check(&tail, 1000, 1, false);
        assert!(found <= classes * (JOINED - 1), "{found}");
        assert!(!tail.has_joinable_parts());
        let found = check(&Tail::default(), 200, 600, true);
        assert!(found <= JOINED + JOINED_LARGE, "{found}");
    }

    #[test]
    fn readers_join_much_only_where_nobody_tidies() {
        let tail = Tail::default();
        check(&tail, JOINED as u64, SMALL_ENTRIES as u64 / 2, false);
        assert!(tail.has_joinable_parts());
        let found = check(&Tail::default(), 200, 600, false);
        assert!(found <= PARTS_MAX, "{found}");
    }

    /// While the youngest are joined, others come.
    #[test]
    fn tidying_and_adding_at_once_lose_nothing() {
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
        let parts = tail.parts_up_to(Position(400), |_| unreachable!("settled before"));
        assert_eq!(
            parts.iter().map(|part| part.len()).sum::<usize>(),
            400 * 700
        );
    }
}
