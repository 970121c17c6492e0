//! The keys that came to a unique index not long ago, as filters in memory. Whoever looks whether a key is
//! there would have to ask all of the index's sections; for those that were folded lately he asks these.
//!
//! A fold that brings the keys of a generation adds them, before readers see its section. Which sections
//! have no other keys than these is told by positions: those that were folded behind one of them. A merge
//! of such a section with an older one moves it. A fold of keys that nobody has asked for has no hashes of
//! them, and everything begins anew behind it: `_id`s that grow cost nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use windrow_fold::{HashedKey, KeyFilter, Position, Section};

/// See the module.
#[derive(Debug, Default)]
pub struct RecentKeyFilter(Mutex<Option<KnownKeys>>);

/// What is known at a moment.
#[derive(Clone, Debug, Default)]
pub struct KnownKeys {
    /// Oldest first, at most [`FILTERS_MAX`]: the last one takes what comes.
    filters: Vec<Since>,
    /// All keys up to here are known.
    until: Position,
}

/// A filter, and which sections it speaks for with those behind it: all that were folded behind this
/// position have no keys but theirs.
#[derive(Clone, Debug)]
struct Since {
    from: Position,
    filter: Arc<Filter>,
}

#[derive(Debug)]
struct Filter {
    keys: KeyFilter,
    budget: Arc<FilterBudget>,
}

/// The memory of all filters of an engine.
#[derive(Debug)]
pub struct FilterBudget {
    bytes: AtomicU64,
    bytes_max: u64,
}

/// When the second is full, the first goes.
const FILTERS_MAX: usize = 2;
/// The first filter has room for so many folds like the one that it begins with: as many as are merged at
/// once, twice, have then become two sections.
const FOLDS: usize = 16;
/// Each has so many times the room of the one before it: where keys go on coming, the sections that none
/// speaks for are ever fewer.
const GROWTH: usize = 4;
/// Not worth its memory where it would soon be full.
const FOLDS_MIN: usize = 2;
/// One filter takes at most so great a part of the memory for all.
const BUDGET_PART: u64 = 4;
const BITS_PER_KEY: usize = 16;

/// The hashes of the keys of some commits.
#[derive(Debug)]
pub struct FoldedKeys {
    /// Those behind this position, up to `until`.
    pub from: Position,
    pub until: Position,
    pub hashes: Vec<u64>,
}

impl FilterBudget {
    pub fn new(bytes_max: u64) -> Arc<FilterBudget> {
        Arc::new(FilterBudget {
            bytes: AtomicU64::new(0),
            bytes_max,
        })
    }

    fn left(&self) -> u64 {
        self.bytes_max
            .saturating_sub(self.bytes.load(Ordering::Relaxed))
    }
}

impl Filter {
    /// One for folds of so many keys, behind another. None where there is no memory for a useful one.
    fn new(
        keys: usize,
        before: Option<&Filter>,
        budget: &Arc<FilterBudget>,
    ) -> Option<Arc<Filter>> {
        let bytes_max = budget.left().min(budget.bytes_max / BUDGET_PART);
        let wanted = before.map_or(0, |before| before.keys.room() * GROWTH);
        let room = wanted.max(keys * FOLDS);
        let room = room.min(bytes_max as usize * 8 / BITS_PER_KEY);
        if keys == 0 || room < keys * FOLDS_MIN {
            return None;
        }
        let keys = KeyFilter::new(room, BITS_PER_KEY);
        budget.bytes.fetch_add(keys.bytes(), Ordering::Relaxed);
        Some(Arc::new(Filter {
            keys,
            budget: budget.clone(),
        }))
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        let bytes = self.keys.bytes();
        self.budget.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl RecentKeyFilter {
    /// What is known now.
    pub fn get(&self) -> Option<KnownKeys> {
        self.0.lock().clone()
    }

    /// Takes what a fold brings, before its section is shown. None: its keys are not at hand. One fold at a
    /// time; merges may come between.
    pub fn fold(&self, folded_keys: Option<FoldedKeys>, budget: &Arc<FilterBudget>) {
        let taken = folded_keys.and_then(|folded_keys| {
            // Who asks does not wait for this: a filter may have more keys than are told of.
            let filter = self.filter_for(&folded_keys, budget)?;
            filter.keys.add(&folded_keys.hashes);
            Some((folded_keys, filter))
        });
        let mut recent = self.0.lock();
        let before = recent.take();
        *recent = taken.map(|(folded_keys, filter)| {
            let should_continue = before.filter(|before| before.until == folded_keys.from);
            should_continue
                .unwrap_or_default()
                .with(&folded_keys, filter)
        });
    }

    /// The last filter, where what is folded_keys follows and fits, or a new one.
    fn filter_for(
        &self,
        folded_keys: &FoldedKeys,
        budget: &Arc<FilterBudget>,
    ) -> Option<Arc<Filter>> {
        let keys = folded_keys.hashes.len();
        let before = self.get().filter(|before| before.until == folded_keys.from);
        let last = before.and_then(|mut before| before.filters.pop());
        match last.map(|last| last.filter) {
            Some(last) if last.keys.has_room(keys) => Some(last),
            last => Filter::new(keys, last.as_deref(), budget),
        }
    }

    /// Says that these sections are about to become one, which has the position of the newest. A filter
    /// that speaks for some of them alone does not speak for that.
    pub fn merge(&self, sections: &[Arc<Section>]) {
        let positions = sections.iter().map(|it| it.descriptor().position);
        let (Some(oldest), Some(newest)) = (positions.clone().min(), positions.max()) else {
            return;
        };
        if let Some(recent) = self.0.lock().as_mut() {
            for since in &mut recent.filters {
                if (oldest..newest).contains(&since.from) {
                    since.from = newest;
                }
            }
        }
    }

    /// Forgets all, and gives its memory back.
    pub fn forget(&self) {
        self.0.lock().take();
    }
}

impl KnownKeys {
    fn with(mut self, folded_keys: &FoldedKeys, filter: Arc<Filter>) -> KnownKeys {
        let is_last = |last: &Since| Arc::ptr_eq(&last.filter, &filter);
        if !self.filters.last().is_some_and(is_last) {
            if self.filters.len() == FILTERS_MAX {
                self.filters.remove(0);
            }
            self.filters.push(Since {
                from: folded_keys.from,
                filter,
            });
        }
        self.until = folded_keys.until;
        self
    }

    /// Whether a section that was folded at this position has no keys but those that are known.
    pub fn covers(&self, position: Position) -> bool {
        let first = self.filters.first();
        first.is_some_and(|first| position > first.from)
    }

    /// Which of these keys may be among those that are known.
    pub fn may_contain(&self, keys: &[HashedKey<'_>]) -> Vec<bool> {
        let mut held = vec![false; keys.len()];
        for since in &self.filters {
            since.filter.keys.mark_possible(keys, &mut held);
        }
        held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folds that a filter has room for.
    const ROOM: u64 = FOLDS as u64;

    fn hashes(from: u64, until: u64) -> Vec<u64> {
        let hash = |number: u64| HashedKey::new(&number.to_be_bytes()).hash;
        (from..until).map(hash).collect()
    }

    /// A fold of a thousand keys a position.
    fn folded_keys(from: u64, until: u64) -> Option<FoldedKeys> {
        Some(FoldedKeys {
            from: Position(from),
            until: Position(until),
            hashes: hashes(from * 1_000, until * 1_000),
        })
    }

    fn known(recent: &KnownKeys, hashes: &[u64]) -> usize {
        let keys = hashes.iter().map(|hash| HashedKey {
            key: b"",
            hash: *hash,
        });
        let held = recent.may_contain(&keys.collect::<Vec<_>>());
        held.into_iter().filter(|held| *held).count()
    }

    #[test]
    fn folds_add_to_what_is_known() {
        let (recent, budget) = (RecentKeyFilter::default(), FilterBudget::new(1 << 20));
        assert!(recent.get().is_none());
        recent.fold(folded_keys(7, 8), &budget);
        recent.fold(folded_keys(8, 10), &budget);
        let known_now = recent.get().unwrap();
        assert_eq!(
            [7, 8, 10].map(|it| known_now.covers(Position(it))),
            [false, true, true]
        );
        assert_eq!(known(&known_now, &hashes(7_000, 10_000)), 3_000);
        assert!(known(&known_now, &hashes(20_000, 30_000)) < 100);
        // What nobody asked for, or what does not follow, begins anew.
        recent.fold(folded_keys(11, 12), &budget);
        assert!(!recent.get().unwrap().covers(Position(11)));
        recent.fold(None, &budget);
        assert!(recent.get().is_none());
        drop(known_now);
        assert_eq!(budget.left(), 1 << 20);
    }

    #[test]
    fn full_filters_go() {
        let (recent, budget) = (RecentKeyFilter::default(), FilterBudget::new(1 << 20));
        let end = (GROWTH as u64 + 2) * ROOM;
        for position in 0..end {
            recent.fold(folded_keys(position, position + 1), &budget);
        }
        let known_now = recent.get().unwrap();
        assert!(!known_now.covers(Position(ROOM)));
        assert!(known_now.covers(Position(ROOM + 1)));
        let all = hashes(ROOM * 1_000, end * 1_000);
        assert_eq!(known(&known_now, &all), all.len());
    }

    #[test]
    fn where_no_memory_is_left_nothing_is_known() {
        let (recent, budget) = (
            RecentKeyFilter::default(),
            FilterBudget::new(BUDGET_PART * 3_000),
        );
        recent.fold(folded_keys(0, 1), &budget);
        assert!(recent.get().is_none());
        let budget = FilterBudget::new(BUDGET_PART * 5_000);
        let others: Vec<_> = (0..3)
            .filter_map(|_| Filter::new(1_000, None, &budget))
            .collect();
        recent.fold(folded_keys(0, 1), &budget);
        recent.fold(folded_keys(1, 2), &budget);
        assert_eq!(known(&recent.get().unwrap(), &hashes(0, 2_000)), 2_000);
        recent.fold(folded_keys(2, 3), &budget);
        assert!(recent.get().is_none());
        assert_eq!(others.len(), 3);
    }
}
