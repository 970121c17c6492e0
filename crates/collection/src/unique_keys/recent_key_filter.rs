//! In-memory filters of the keys that were recently added to a unique index. A uniqueness check
//! reads these filters instead of searching each recently folded section of the index.
//!
//! A fold adds the keys of its generation before readers see its section. A filter covers the
//! sections that were folded after its start, which is a position. A merge of a covered section
//! with an older one moves that start. If no write checked the keys of a fold, their hashes are not
//! known, and the fold discards all filters. So increasing `_id`s cost nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use windrow_fold::{HashedKey, KeyFilter, Position, Section};

/// The filters of an index.
#[derive(Debug, Default)]
pub struct RecentKeyFilter(Mutex<Option<KnownKeys>>);

/// The filters at a moment.
#[derive(Clone, Debug, Default)]
pub struct KnownKeys {
    /// Oldest first, at most [`FILTERS_MAX`]. New keys go into the last one.
    filters: Vec<CoveringFilter>,
    /// All keys up to this position are in the filters.
    until: Position,
}

/// A filter and its start: this filter and the later ones contain all keys of the sections that
/// were folded after this position.
#[derive(Clone, Debug)]
struct CoveringFilter {
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

/// When the last filter is full, the first is dropped.
const FILTERS_MAX: usize = 2;
/// The first filter has room for this many folds of its first fold's size: twice the merge fan-in,
/// so the folds become two sections.
const FOLDS: usize = 16;
/// Each filter has this many times the room of the previous one, so the number of uncovered
/// sections falls as keys arrive.
const GROWTH: usize = 4;
/// A filter with less room would be full too soon to be worth its memory.
const FOLDS_MIN: usize = 2;
/// A filter takes at most the memory for all filters divided by this number.
const BUDGET_DIVISOR: u64 = 4;
const BITS_PER_KEY: usize = 16;

/// The key hashes of the commits of one fold.
#[derive(Debug)]
pub struct FoldedKeys {
    /// The commits after this position, up to `until`.
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

    fn remaining(&self) -> u64 {
        self.bytes_max
            .saturating_sub(self.bytes.load(Ordering::Relaxed))
    }
}

impl Filter {
    /// Creates a filter for folds of this many keys. Returns `None` if memory is too short for a
    /// useful one.
    fn new(
        keys: usize,
        before: Option<&Filter>,
        budget: &Arc<FilterBudget>,
    ) -> Option<Arc<Filter>> {
        let bytes_max = budget.remaining().min(budget.bytes_max / BUDGET_DIVISOR);
        let grown = before.map_or(0, |before| before.keys.room() * GROWTH);
        let room = grown.max(keys * FOLDS);
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
    /// Returns the current filters.
    pub fn get(&self) -> Option<KnownKeys> {
        self.0.lock().clone()
    }

    /// Adds the keys of a fold, before its section is published. `None`: the keys are unknown.
    /// Called by one fold at a time; merges may run in between.
    pub fn fold(&self, folded_keys: Option<FoldedKeys>, budget: &Arc<FilterBudget>) {
        let taken = folded_keys.and_then(|folded_keys| {
            // Readers do not wait for this: a filter may contain more keys than recorded.
            let filter = self.filter_for(&folded_keys, budget)?;
            filter.keys.add(&folded_keys.hashes);
            Some((folded_keys, filter))
        });
        let mut recent = self.0.lock();
        let before = recent.take();
        *recent = taken.map(|(folded_keys, filter)| {
            let continued = before.filter(|before| before.until == folded_keys.from);
            continued.unwrap_or_default().with(&folded_keys, filter)
        });
    }

    /// Returns the last filter if the keys follow its end and fit, or a new one.
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

    /// Announces a merge of these sections into one with the newest position. A filter that covers
    /// only some of them does not cover the result.
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

    /// Drops all filters, and releases their memory.
    pub fn forget(&self) {
        self.0.lock().take();
    }
}

impl KnownKeys {
    fn with(mut self, folded_keys: &FoldedKeys, filter: Arc<Filter>) -> KnownKeys {
        let is_last = |last: &CoveringFilter| Arc::ptr_eq(&last.filter, &filter);
        if !self.filters.last().is_some_and(is_last) {
            if self.filters.len() == FILTERS_MAX {
                self.filters.remove(0);
            }
            self.filters.push(CoveringFilter {
                from: folded_keys.from,
                filter,
            });
        }
        self.until = folded_keys.until;
        self
    }

    /// Returns `true` if the filters contain all keys of a section folded at this position.
    pub fn covers(&self, position: Position) -> bool {
        let first = self.filters.first();
        first.is_some_and(|first| position > first.from)
    }

    /// Returns, for each key, whether the filters may contain it.
    pub fn may_contain(&self, keys: &[HashedKey<'_>]) -> Vec<bool> {
        let mut possible = vec![false; keys.len()];
        for since in &self.filters {
            since.filter.keys.mark_possible(keys, &mut possible);
        }
        possible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folds that a filter has room for.
    const ROOM: u64 = FOLDS as u64;

    fn hashes(from: u64, until: u64) -> Vec<u64> {
        let hash = |number: u64| HashedKey::new(&number.to_be_bytes()).hash;
        (from..until).map(hash).collect()
    }

    /// A fold with a thousand keys per position.
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
        let possible = recent.may_contain(&keys.collect::<Vec<_>>());
        possible.into_iter().filter(|possible| *possible).count()
    }

    #[test]
    fn folds_add_keys() {
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
        // Unknown keys, or keys that do not follow the end, discard the filters.
        recent.fold(folded_keys(11, 12), &budget);
        assert!(!recent.get().unwrap().covers(Position(11)));
        recent.fold(None, &budget);
        assert!(recent.get().is_none());
        drop(known_now);
        assert_eq!(budget.remaining(), 1 << 20);
    }

    #[test]
    fn full_filters_are_dropped() {
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
    fn without_memory_there_is_no_filter() {
        let (recent, budget) = (
            RecentKeyFilter::default(),
            FilterBudget::new(BUDGET_DIVISOR * 3_000),
        );
        recent.fold(folded_keys(0, 1), &budget);
        assert!(recent.get().is_none());
        let budget = FilterBudget::new(BUDGET_DIVISOR * 5_000);
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
