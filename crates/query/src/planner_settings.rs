//! Settings of a server that influence the choice of plans: restrictions and the plan cache.

use windrow_collection::CollectionUuid;

use crate::plan_cache::PlanCache;
use crate::restrictions::Restrictions;

/// The planner settings of a server. They are kept in memory only and end with the process.
#[derive(Debug, Default)]
pub struct PlannerSettings {
    /// Index filters and `notablescan`.
    pub restrictions: Restrictions,
    /// The plan cache.
    pub plans: PlanCache,
}

impl PlannerSettings {
    /// Drops the entries of collections for which `is_there` returns `false`. No query can use them
    /// any more, because a new collection has a new UUID.
    pub fn retain(&self, is_there: impl Fn(CollectionUuid) -> bool) {
        self.restrictions.retain_filters(&is_there);
        self.plans.retain(&is_there);
    }
}
