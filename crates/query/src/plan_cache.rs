//! The plans that queries of a shape had, so that the next of them need not be chosen again.
//!
//! What is remembered of a plan is which indexes it reads, and what that took. For other constants
//! the planner makes its bounds anew and looks whether the indexes have all documents, so an entry can
//! be a bad choice but never a wrong one. That is also why a key is but a hash.
//!
//! ```text
//! missing ──chosen──▶ inactive ──chosen again, no more work──▶ active ──far more or far less work──▶ inactive
//!                      │    ▲
//!                      └────┘ chosen again, more work: allows twice as much
//! ```

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use windrow_document::DocumentBuf;
use windrow_index::Definition;

use crate::shape::{Shape, ShapeParts};

/// Entries of all collections together.
const ENTRIES_MAX: usize = 5000;

/// Past so many bytes of entries new ones are kept without what they were made of.
const BYTES_MAX: usize = 16 << 20;

/// A plan that takes so many times the work that is remembered, or of which that is so many times the
/// work, is chosen anew.
const FAR_OFF: f64 = 10.0;

/// By how much the work that an inactive entry allows grows.
const GROWTH: f64 = 2.0;

/// What tells plans apart: the shape of the query, and what of the indexes can answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanKey(u64);

impl PlanKey {
    /// `asked`: what else of the query decides; `usable`: the numbers of the indexes that its constants
    /// leave.
    pub fn of(shape: &Shape, asked: impl Hash, usable: &[usize]) -> PlanKey {
        let mut hasher = DefaultHasher::new();
        (shape, asked, usable).hash(&mut hasher);
        PlanKey(hasher.finish())
    }

    /// Eight hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:08X}", self.0 as u32)
    }
}

/// Which indexes a plan reads, by their places, and what that took.
#[derive(Clone, Debug, PartialEq)]
pub struct Remembered {
    pub indexes: Vec<usize>,
    pub works: f64,
}

impl Remembered {
    /// Whether a plan by the same indexes with so much work is another thing.
    pub fn is_far_off(&self, works: f64) -> bool {
        let (less, more) = (self.works.min(works), self.works.max(works));
        more > FAR_OFF * less.max(1.0)
    }
}

/// What is known of a plan.
#[derive(Clone, Debug)]
pub struct CachedPlan {
    pub shape: Shape,
    pub key: PlanKey,
    pub is_active: bool,
    pub remembered: Remembered,
    pub created: SystemTime,
    pub bytes: usize,
    /// None where there was no room for it.
    pub details: Option<Arc<Details>>,
}

/// What an entry was made of.
#[derive(Clone, Debug, Default)]
pub struct Details {
    pub query: ShapeParts,
    /// All plans that were counted, the chosen one first.
    pub candidates: Vec<Candidate>,
}

/// One of the plans that were counted.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub plan: DocumentBuf,
    pub keys: f64,
    pub documents: f64,
    pub works: f64,
}

impl Details {
    fn bytes(&self) -> usize {
        let plans = self.candidates.iter().map(|one| one.plan.as_bytes().len());
        plans.sum::<usize>() + self.query.bytes()
    }
}

/// The plans of all collections.
#[derive(Debug, Default)]
pub struct PlanCache {
    tables: Mutex<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    /// By the collection's UUID: one that takes the name of another starts without plans.
    by_collection: HashMap<[u8; 16], OfCollection>,
    count: usize,
    bytes: usize,
    /// Grows with each use of an entry.
    clock: u64,
}

#[derive(Debug, Default)]
struct OfCollection {
    /// The indexes that the entries were made for. With others they are all forgotten.
    indexes: Vec<Arc<Definition>>,
    entries: HashMap<PlanKey, Entry>,
}

#[derive(Debug)]
struct Entry {
    plan: CachedPlan,
    used: u64,
}

impl OfCollection {
    fn is_for(&self, indexes: &[Arc<Definition>]) -> bool {
        self.indexes.len() == indexes.len()
            && self
                .indexes
                .iter()
                .zip(indexes)
                .all(|(one, other)| Arc::ptr_eq(one, other))
    }

    fn bytes(&self) -> usize {
        self.entries.values().map(|entry| entry.plan.bytes).sum()
    }
}

impl Tables {
    /// The entries of a collection that were made for these indexes.
    fn of(
        &mut self,
        collection: [u8; 16],
        indexes: &[Arc<Definition>],
    ) -> Option<&mut OfCollection> {
        if !self.by_collection.get(&collection)?.is_for(indexes) {
            self.forget(collection);
        }
        self.by_collection.get_mut(&collection)
    }

    fn forget(&mut self, collection: [u8; 16]) {
        if let Some(gone) = self.by_collection.remove(&collection) {
            self.count -= gone.entries.len();
            self.bytes -= gone.bytes();
        }
    }

    fn retain(&mut self, is_kept: impl Fn(&[u8; 16], &Entry) -> bool) {
        for (collection, of_collection) in &mut self.by_collection {
            of_collection
                .entries
                .retain(|_, entry| is_kept(collection, entry));
        }
        self.by_collection.retain(|_, it| !it.entries.is_empty());
        let all = self.by_collection.values();
        self.count = all.clone().map(|it| it.entries.len()).sum();
        self.bytes = all.map(OfCollection::bytes).sum();
    }

    /// Forgets the eighth of the entries that was not used for the longest time.
    fn make_room(&mut self) {
        let all = self.by_collection.values();
        let mut uses: Vec<u64> = all
            .flat_map(|it| it.entries.values().map(|entry| entry.used))
            .collect();
        let eighth = uses.len() / 8;
        let (_, oldest_kept, _) = uses.select_nth_unstable(eighth);
        let oldest_kept = *oldest_kept;
        self.retain(|_, entry| entry.used >= oldest_kept);
    }
}

impl PlanCache {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an active entry remembers.
    pub fn get(
        &self,
        collection: [u8; 16],
        indexes: &[Arc<Definition>],
        key: PlanKey,
    ) -> Option<Remembered> {
        let mut tables = self.tables();
        tables.clock += 1;
        let now = tables.clock;
        let entry = tables.of(collection, indexes)?.entries.get_mut(&key)?;
        entry.used = now;
        let plan = &entry.plan;
        plan.is_active.then(|| plan.remembered.clone())
    }

    /// Notes what was chosen anew. `details` is asked for only where they are kept.
    pub fn put(
        &self,
        collection: [u8; 16],
        indexes: &[Arc<Definition>],
        (shape, key): (Shape, PlanKey),
        chosen: Remembered,
        details: impl FnOnce() -> Details,
    ) {
        let mut tables = self.tables();
        let old = tables.of(collection, indexes);
        let old = old.and_then(|it| it.entries.get_mut(&key));
        let mut is_active = false;
        if let Some(old) = old {
            let plan = &mut old.plan;
            if !plan.is_active && chosen.works > plan.remembered.works {
                plan.remembered.works *= GROWTH;
                return;
            }
            is_active = !plan.is_active;
        }
        let details = (tables.bytes < BYTES_MAX).then(|| Arc::new(details()));
        let bytes = size_of::<Entry>() + details.as_deref().map_or(0, Details::bytes);
        let plan = CachedPlan {
            shape,
            key,
            is_active,
            remembered: chosen,
            created: SystemTime::now(),
            bytes,
            details,
        };
        tables.insert(collection, indexes, plan);
    }

    /// Forgets the plans of a shape, or (None) all of the collection.
    pub fn clear(&self, collection: [u8; 16], shape: Option<&Shape>) {
        let mut tables = self.tables();
        match shape {
            None => tables.forget(collection),
            Some(shape) => {
                tables.retain(|of, entry| *of != collection || entry.plan.shape != *shape);
            }
        }
    }

    /// Forgets the plans of all collections but these.
    pub fn retain(&self, is_kept: impl Fn(&[u8; 16]) -> bool) {
        self.tables().retain(|collection, _| is_kept(collection));
    }

    /// All plans of a collection that has these indexes, the oldest first.
    pub fn list(&self, collection: [u8; 16], indexes: &[Arc<Definition>]) -> Vec<CachedPlan> {
        let mut tables = self.tables();
        let found = tables.of(collection, indexes);
        let entries = found.iter().flat_map(|it| it.entries.values());
        let mut plans: Vec<CachedPlan> = entries.map(|entry| entry.plan.clone()).collect();
        plans.sort_by_key(|plan| (plan.created, plan.key.0));
        plans
    }
}

impl Tables {
    fn insert(&mut self, collection: [u8; 16], indexes: &[Arc<Definition>], plan: CachedPlan) {
        if self.count >= ENTRIES_MAX {
            self.make_room();
        }
        self.clock += 1;
        let (key, bytes, used) = (plan.key, plan.bytes, self.clock);
        let of_collection = self.by_collection.entry(collection);
        let of_collection = of_collection.or_insert_with(|| OfCollection {
            indexes: indexes.to_vec(),
            entries: HashMap::new(),
        });
        let old = of_collection.entries.insert(key, Entry { plan, used });
        self.bytes += bytes;
        match old {
            Some(old) => self.bytes -= old.plan.bytes,
            None => self.count += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::Document;

    const C: [u8; 16] = [1; 16];
    const E: [u8; 16] = [2; 16];

    fn shape(name: &str) -> Shape {
        let mut filter = DocumentBuf::new();
        filter.push(name, 1);
        let none = Document::EMPTY;
        Shape::of(filter.as_document(), none, none, None)
    }

    fn put(cache: &PlanCache, collection: [u8; 16], name: &str, works: f64) -> PlanKey {
        let shape = shape(name);
        let key = PlanKey::of(&shape, (), &[1, 2]);
        let chosen = Remembered {
            indexes: vec![1],
            works,
        };
        cache.put(collection, &[], (shape, key), chosen, Details::default);
        key
    }

    /// After choices of so much work: whether the entry is active, and what it remembers.
    fn check(works: &[f64], expected: (bool, f64)) {
        let cache = PlanCache::default();
        let key = works.iter().map(|works| put(&cache, C, "a", *works)).last();
        let found = &cache.list(C, &[])[0];
        assert_eq!(
            (found.is_active, found.remembered.works),
            expected,
            "{works:?}"
        );
        let active = cache.get(C, &[], key.unwrap());
        assert_eq!(active.is_some(), expected.0);
    }

    #[test]
    fn an_entry_is_active_once_it_was_as_good_again() {
        check(&[10.0], (false, 10.0));
        check(&[10.0, 8.0], (true, 8.0));
        check(&[10.0, 15.0], (false, 20.0));
        check(&[10.0, 15.0, 15.0], (true, 15.0));
        // Chosen anew while it was active: it was far off.
        check(&[10.0, 10.0, 500.0], (false, 500.0));
        check(&[10.0, 10.0, 500.0, 10.0], (true, 10.0));
    }

    #[test]
    fn far_off_is_ten_times() {
        let far = |remembered: f64, works: f64| {
            let remembered = Remembered {
                indexes: Vec::new(),
                works: remembered,
            };
            remembered.is_far_off(works)
        };
        assert!(!far(10.0, 100.0) && far(10.0, 101.0));
        assert!(!far(100.0, 10.0) && far(101.0, 10.0));
        assert!(!far(0.0, 10.0) && !far(0.5, 0.0));
    }

    #[test]
    fn entries_are_cleared_by_shape_or_all() {
        let cache = PlanCache::default();
        for name in ["a", "b"] {
            put(&cache, C, name, 1.0);
            put(&cache, E, name, 1.0);
        }
        let counts = || (cache.list(C, &[]).len(), cache.list(E, &[]).len());
        cache.clear(C, Some(&shape("a")));
        cache.clear(C, Some(&shape("x")));
        assert_eq!(counts(), (1, 2));
        cache.clear(E, None);
        assert_eq!(counts(), (1, 0));
        put(&cache, E, "a", 1.0);
        cache.retain(|collection| *collection == E);
        assert_eq!(counts(), (0, 1));
    }

    #[test]
    fn the_least_used_make_room() {
        let cache = PlanCache::default();
        let first = put(&cache, C, "first", 1.0);
        put(&cache, C, "first", 1.0);
        for number in 0..2 * ENTRIES_MAX {
            put(&cache, C, &number.to_string(), 1.0);
            if number % 500 == 0 {
                assert!(cache.get(C, &[], first).is_some());
            }
        }
        let count = cache.list(C, &[]).len();
        assert!(count <= ENTRIES_MAX && count > ENTRIES_MAX / 2, "{count}");
        assert_eq!(cache.tables().count, count);
    }
}
