//! The plan cache: which indexes won for queries of a shape, so that the next query of the shape
//! needs no new choice.
//!
//! An entry holds the indexes that the plan reads and the work that this took. For each query the
//! planner computes the bounds again, and checks that the indexes have all documents that match. So
//! an entry can lead to a slow plan, but never to a wrong result. This is why a hash is enough as a
//! key.
//!
//! ```text
//! missing ──chosen──▶ inactive ──chosen again, no more work──▶ active
//!                      │  ▲  ▲                                   │
//!                      └──┘  └───────work differs by 10 times────┘
//!         chosen again, more work: the allowed work doubles
//! ```

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use windrow_collection::CollectionUuid;
use windrow_document::DocumentBuf;
use windrow_index::Definition;

use crate::shape::{Shape, ShapeParts};

/// The largest number of entries, over all collections.
const ENTRIES_MAX: usize = 5000;

/// Above this many bytes in the cache, new entries are stored without details.
const BYTES_MAX: usize = 16 << 20;

/// A plan is chosen again if its work differs from the cached work by more than this factor.
const WORKS_RATIO_MAX: f64 = 10.0;

/// The factor by which the allowed work of an inactive entry grows.
const GROWTH: f64 = 2.0;

/// The key of an entry: a hash of the shape and of the indexes that can answer the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanKey(u64);

impl PlanKey {
    /// Returns the key of a query. `options` are the other parts of the query that influence the
    /// choice. `usable` are the numbers of the indexes that can answer the query with its
    /// constants.
    pub fn new(shape: &Shape, options: impl Hash, usable: &[usize]) -> PlanKey {
        let mut hasher = DefaultHasher::new();
        (shape, options, usable).hash(&mut hasher);
        PlanKey(hasher.finish())
    }

    /// The key as eight hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:08X}", self.0 as u32)
    }
}

/// The indexes that a plan reads, and the work that this took.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedChoice {
    /// The numbers of the indexes in `Source::indexes`.
    pub indexes: Vec<usize>,
    /// The estimated cost of the plan, in index entries read.
    pub works: f64,
}

impl CachedChoice {
    /// Returns `true` if `works` differs so much from the cached work that the plan has to be
    /// chosen again.
    pub fn differs_much(&self, works: f64) -> bool {
        let (less, more) = (self.works.min(works), self.works.max(works));
        more > WORKS_RATIO_MAX * less.max(1.0)
    }
}

/// An entry of the plan cache.
#[derive(Clone, Debug)]
pub struct CachedPlan {
    /// The shape of the queries.
    pub shape: Shape,
    /// The key of the entry.
    pub key: PlanKey,
    /// `true` if the planner uses the entry.
    pub is_active: bool,
    /// The indexes and the work of the plan.
    pub choice: CachedChoice,
    /// When the entry was stored.
    pub created: SystemTime,
    /// The memory of the entry, in bytes.
    pub bytes: usize,
    /// `None` if the cache was full when the entry was stored.
    pub details: Option<Arc<PlanDetails>>,
}

/// The query and the plans from which an entry was made.
#[derive(Clone, Debug, Default)]
pub struct PlanDetails {
    /// The query.
    pub query: ShapeParts,
    /// All plans whose cost was estimated, the cheapest first.
    pub candidates: Vec<CandidatePlan>,
}

/// A plan whose cost was estimated.
#[derive(Clone, Debug)]
pub struct CandidatePlan {
    /// The plan as explain shows it.
    pub plan: DocumentBuf,
    /// The estimated number of index entries that it reads.
    pub keys: f64,
    /// The estimated number of documents that it reads.
    pub documents: f64,
    /// The estimated cost of the plan.
    pub works: f64,
}

impl PlanDetails {
    fn bytes(&self) -> usize {
        let plans = self.candidates.iter().map(|one| one.plan.as_bytes().len());
        plans.sum::<usize>() + self.query.bytes()
    }
}

/// The cached plans of all collections of a server.
#[derive(Debug, Default)]
pub struct PlanCache {
    tables: Mutex<CacheTables>,
}

#[derive(Debug, Default)]
struct CacheTables {
    /// By collection UUID. The UUID keeps a new collection from using the plans of an earlier one
    /// with the same name.
    by_collection: HashMap<CollectionUuid, CollectionEntries>,
    count: usize,
    bytes: usize,
    /// A logical clock that advances with each use of an entry.
    clock: u64,
}

#[derive(Debug, Default)]
struct CollectionEntries {
    /// The indexes for which the entries were made. If the collection's indexes change, all its
    /// entries are dropped.
    indexes: Vec<Arc<Definition>>,
    entries: HashMap<PlanKey, CacheEntry>,
}

#[derive(Debug)]
struct CacheEntry {
    plan: CachedPlan,
    used: u64,
}

impl CollectionEntries {
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

impl CacheTables {
    /// Returns the entries of a collection. Drops them first if they were made for other indexes.
    fn entries_of(
        &mut self,
        collection: CollectionUuid,
        indexes: &[Arc<Definition>],
    ) -> Option<&mut CollectionEntries> {
        if !self.by_collection.get(&collection)?.is_for(indexes) {
            self.forget(collection);
        }
        self.by_collection.get_mut(&collection)
    }

    fn forget(&mut self, collection: CollectionUuid) {
        if let Some(plans) = self.by_collection.remove(&collection) {
            self.count -= plans.entries.len();
            self.bytes -= plans.bytes();
        }
    }

    fn retain(&mut self, is_kept: impl Fn(CollectionUuid, &CacheEntry) -> bool) {
        for (collection, collection_entries) in &mut self.by_collection {
            collection_entries
                .entries
                .retain(|_, entry| is_kept(*collection, entry));
        }
        self.by_collection.retain(|_, it| !it.entries.is_empty());
        let all = self.by_collection.values();
        self.count = all.clone().map(|it| it.entries.len()).sum();
        self.bytes = all.map(CollectionEntries::bytes).sum();
    }

    /// Drops the eighth of the entries that has not been used for the longest time.
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
    fn tables(&self) -> MutexGuard<'_, CacheTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the choice of an active entry.
    pub fn get(
        &self,
        collection: CollectionUuid,
        indexes: &[Arc<Definition>],
        key: PlanKey,
    ) -> Option<CachedChoice> {
        let mut tables = self.tables();
        tables.clock += 1;
        let now = tables.clock;
        let entry = tables
            .entries_of(collection, indexes)?
            .entries
            .get_mut(&key)?;
        entry.used = now;
        let plan = &entry.plan;
        plan.is_active.then(|| plan.choice.clone())
    }

    /// Records the result of a choice. `details` is called only if there is memory for them.
    pub fn put(
        &self,
        collection: CollectionUuid,
        indexes: &[Arc<Definition>],
        key: PlanKey,
        shape: Shape,
        chosen: CachedChoice,
        details: impl FnOnce() -> PlanDetails,
    ) {
        let mut tables = self.tables();
        let old = tables.entries_of(collection, indexes);
        let old = old.and_then(|it| it.entries.get_mut(&key));
        let mut is_active = false;
        if let Some(old) = old {
            let plan = &mut old.plan;
            if !plan.is_active && chosen.works > plan.choice.works {
                plan.choice.works *= GROWTH;
                return;
            }
            is_active = !plan.is_active;
        }
        let details = (tables.bytes < BYTES_MAX).then(|| Arc::new(details()));
        let bytes = size_of::<CacheEntry>() + details.as_deref().map_or(0, PlanDetails::bytes);
        let plan = CachedPlan {
            shape,
            key,
            is_active,
            choice: chosen,
            created: SystemTime::now(),
            bytes,
            details,
        };
        tables.insert(collection, indexes, plan);
    }

    /// Drops the plans of a shape, or all plans of the collection if `shape` is `None`.
    pub fn clear(&self, collection: CollectionUuid, shape: Option<&Shape>) {
        let mut tables = self.tables();
        match shape {
            None => tables.forget(collection),
            Some(shape) => {
                tables.retain(|of, entry| of != collection || entry.plan.shape != *shape);
            }
        }
    }

    /// Keeps only the plans of collections for which `is_kept` returns `true`.
    pub fn retain(&self, is_kept: impl Fn(CollectionUuid) -> bool) {
        self.tables().retain(|collection, _| is_kept(collection));
    }

    /// Returns all plans of a collection with these indexes, the oldest first.
    pub fn list(&self, collection: CollectionUuid, indexes: &[Arc<Definition>]) -> Vec<CachedPlan> {
        let mut tables = self.tables();
        let found = tables.entries_of(collection, indexes);
        let entries = found.iter().flat_map(|it| it.entries.values());
        let mut plans: Vec<CachedPlan> = entries.map(|entry| entry.plan.clone()).collect();
        plans.sort_by_key(|plan| (plan.created, plan.key.0));
        plans
    }
}

impl CacheTables {
    fn insert(
        &mut self,
        collection: CollectionUuid,
        indexes: &[Arc<Definition>],
        plan: CachedPlan,
    ) {
        if self.count >= ENTRIES_MAX {
            self.make_room();
        }
        self.clock += 1;
        let (key, bytes, used) = (plan.key, plan.bytes, self.clock);
        let collection_entries = self.by_collection.entry(collection);
        let collection_entries = collection_entries.or_insert_with(|| CollectionEntries {
            indexes: indexes.to_vec(),
            entries: HashMap::new(),
        });
        let old = collection_entries
            .entries
            .insert(key, CacheEntry { plan, used });
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

    const C: CollectionUuid = CollectionUuid([1; 16]);
    const E: CollectionUuid = CollectionUuid([2; 16]);

    fn shape(name: &str) -> Shape {
        let mut filter = DocumentBuf::new();
        filter.push(name, 1);
        let none = Document::EMPTY;
        Shape::new(filter.as_document(), none, none, None)
    }

    fn put(cache: &PlanCache, collection: CollectionUuid, name: &str, works: f64) -> PlanKey {
        let shape = shape(name);
        let key = PlanKey::new(&shape, (), &[1, 2]);
        let chosen = CachedChoice {
            indexes: vec![1],
            works,
        };
        cache.put(collection, &[], key, shape, chosen, PlanDetails::default);
        key
    }

    /// Stores choices with these amounts of work, and checks if the entry is active and which work
    /// it has.
    fn check(works: &[f64], expected: (bool, f64)) {
        let cache = PlanCache::default();
        let key = works.iter().map(|works| put(&cache, C, "a", *works)).last();
        let found = &cache.list(C, &[])[0];
        assert_eq!((found.is_active, found.choice.works), expected, "{works:?}");
        let active = cache.get(C, &[], key.unwrap());
        assert_eq!(active.is_some(), expected.0);
    }

    #[test]
    fn an_entry_becomes_active_when_confirmed() {
        check(&[10.0], (false, 10.0));
        check(&[10.0, 8.0], (true, 8.0));
        check(&[10.0, 15.0], (false, 20.0));
        check(&[10.0, 15.0, 15.0], (true, 15.0));
        // The entry was active, and its work differed too much.
        check(&[10.0, 10.0, 500.0], (false, 500.0));
        check(&[10.0, 10.0, 500.0, 10.0], (true, 10.0));
    }

    #[test]
    fn work_may_differ_by_a_factor_of_ten() {
        let far = |choice: f64, works: f64| {
            let choice = CachedChoice {
                indexes: Vec::new(),
                works: choice,
            };
            choice.differs_much(works)
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
        cache.retain(|collection| collection == E);
        assert_eq!(counts(), (0, 1));
    }

    #[test]
    fn the_least_recently_used_entries_are_evicted() {
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
