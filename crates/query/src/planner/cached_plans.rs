//! The planner's use of the plan cache.
//!
//! An entry contains the indexes that the cheapest path reads. With an entry, only these indexes
//! are counted. If the resulting cost differs much from the cached cost, or a collection scan is
//! cheaper, the plan is chosen again. A collection scan is never cached, because its advantage
//! depends on the constants.

use std::sync::Arc;

use windrow_document::{Collation, Document};
use windrow_index::Definition;
use windrow_mql::projection::Projection;
use windrow_mql::sort::Sort;

use super::access_path::PlanningContext;
use super::ranking::{RankedPath, RankedPaths};
use super::{PlanChoice, assemble};
use crate::Error;
use crate::bounds::wildcard::CandidateIndex;
use crate::find::Find;
use crate::plan::Plan;
use crate::plan_cache::{self, CachedChoice, PlanCache, PlanDetails, PlanKey};
use crate::print::print_plan;
use crate::shape::{Shape, ShapeParts};
use crate::source::{CollectionUuid, Source};

/// The plan cache of one collection.
pub struct CollectionPlans<'s> {
    cache: &'s PlanCache,
    collection: CollectionUuid,
    source: &'s dyn Source,
}

impl CollectionPlans<'_> {
    pub fn new(source: &dyn Source) -> Option<CollectionPlans<'_>> {
        Some(CollectionPlans {
            cache: source.plans()?,
            collection: source.uuid()?,
            source,
        })
    }

    /// Called only if indexes compete, because most queries are by `_id`.
    fn indexes(&self) -> Vec<Arc<Definition>> {
        self.source.indexes()
    }

    fn get(&self, key: PlanKey) -> Option<CachedChoice> {
        self.cache.get(self.collection, &self.indexes(), key)
    }
}

/// The entry of a query in the plan cache, which may not exist yet.
pub struct CacheSlot<'p> {
    plans: &'p CollectionPlans<'p>,
    shape: Shape,
    key: PlanKey,
}

impl<'p> CacheSlot<'p> {
    /// Returns `None` if only one index is applicable.
    pub fn new(
        plans: &'p CollectionPlans<'p>,
        find: &Find,
        context: &PlanningContext<'_>,
        candidates: &[CandidateIndex],
    ) -> Result<Option<CacheSlot<'p>>, Error> {
        let usable_indexes = context.usable_indexes(candidates)?;
        let competes = usable_indexes
            .iter()
            .any(|number| Some(number) != usable_indexes.first());
        Ok(competes.then(|| {
            let shape = find.shape();
            let key = key(find, &shape, &usable_indexes);
            CacheSlot { plans, shape, key }
        }))
    }

    pub fn cached(&self) -> Option<CachedChoice> {
        self.plans.get(self.key)
    }

    /// Stores the cheapest path.
    pub fn store(self, find: &Find, ranked: &RankedPaths) {
        let Some(RankedPath { path, .. }) = ranked.paths.first() else {
            return;
        };
        let chosen = CachedChoice {
            indexes: indexes_of(&path.plan),
            // By the estimates of its own indexes, because only those are counted the next time.
            works: ranked.own_cost(find, path),
        };
        let CollectionPlans {
            cache, collection, ..
        } = *self.plans;
        let indexes = self.plans.indexes();
        let details = || details(find, ranked);
        cache.put(collection, &indexes, self.key, self.shape, chosen, details);
    }
}

/// The key of the query. The limit and the needed paths influence the choice, too.
fn key(find: &Find, shape: &Shape, usable_indexes: &[usize]) -> PlanKey {
    let needs = find.needs.as_ref();
    let needs = needs.map(|paths| paths.iter().map(ToString::to_string).collect::<Vec<_>>());
    let options = (find.limit.is_some(), find.return_key, needs);
    PlanKey::new(shape, options, usable_indexes)
}

fn details(find: &Find, ranked: &RankedPaths) -> PlanDetails {
    let candidate = |RankedPath { path, cost }: &RankedPath| plan_cache::CandidatePlan {
        plan: print_plan(&assemble(find, path.clone())),
        keys: path.entries,
        documents: path.documents,
        works: *cost,
    };
    let projection = find.projection.as_ref().map(Projection::source);
    let collation = find.filter.collation().map(Collation::specification);
    PlanDetails {
        query: ShapeParts {
            query: find.filter.to_document(),
            sort: find.order().map(Sort::to_document).unwrap_or_default(),
            projection: projection.unwrap_or(Document::EMPTY).to_buf(),
            collation: collation.map(Document::to_buf),
        },
        candidates: ranked.paths.iter().map(candidate).collect(),
    }
}

/// The numbers of the indexes that a plan reads.
fn indexes_of(plan: &Plan) -> Vec<usize> {
    let own = match plan {
        Plan::IndexScan(scan) => Some(scan.index.number),
        Plan::ClusteredScan(scan) => Some(scan.scan.index.number),
        _ => None,
    };
    let below = plan.inputs().into_iter().flat_map(indexes_of);
    let mut all: Vec<usize> = own.into_iter().chain(below).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl PlanningContext<'_> {
    /// Returns the cheapest path by the cached indexes. `None` if its cost differs much from the
    /// cached cost, or a collection scan is cheaper.
    pub fn cached_choice(
        &self,
        find: &Find,
        candidates: &[CandidateIndex],
        cached: &CachedChoice,
    ) -> Result<Option<PlanChoice>, Error> {
        let among = candidates.iter();
        let among = among.filter(|one| cached.indexes.contains(&one.index.number));
        let context = self.clone().with_only(cached.indexes.clone());
        let paths = context.paths_from(among.cloned().collect(), find)?;
        let ranked = RankedPaths::new(find, self.source, paths);
        let is_other = ranked.cost().is_none_or(|cost| cached.differs_much(cost));
        if is_other || ranked.scan_is_cheaper(find, self.source) {
            return Ok(None);
        }
        Ok(ranked.into_choice(find))
    }
}

/// The state of the plan cache for a query.
pub struct CacheStatus {
    /// The shape of the query.
    pub shape: Shape,
    /// The key of the query in the plan cache.
    pub key: PlanKey,
    /// `true` if the plan reads the same indexes as the cached plan.
    pub is_cached: bool,
}

impl CacheStatus {
    pub(super) fn new(
        find: &Find,
        source: &dyn Source,
        plans: Option<&CollectionPlans<'_>>,
        plan: &Plan,
    ) -> Result<CacheStatus, Error> {
        let context =
            PlanningContext::new(find.filter.root(), find.filter.collation_shared(), source);
        let usable_indexes = context.usable_indexes(&context.candidates(find.order())?)?;
        let shape = find.shape();
        let key = key(find, &shape, &usable_indexes);
        // A scan of distinct keys is chosen without the plan cache.
        let is_chosen_apart = find.distinct.is_some() && plan.reads_distinct_prefix();
        let plans = plans.filter(|_| !is_chosen_apart);
        let cached = plans.and_then(|plans| plans.get(key));
        let is_cached = cached.is_some_and(|it| it.indexes == indexes_of(plan));
        Ok(CacheStatus {
            shape,
            key,
            is_cached,
        })
    }
}
