//! What decides over plans besides the collections themselves, for all queries of a server.

use crate::plan_cache::PlanCache;
use crate::restrictions::Restrictions;

/// Both end with the process.
#[derive(Debug, Default)]
pub struct Guidance {
    /// What plans must keep to.
    pub restrictions: Restrictions,
    /// What was chosen before.
    pub plans: PlanCache,
}

impl Guidance {
    /// Frees what is held for collections that are gone. No query can meet it, since a new collection has
    /// a new UUID.
    pub fn retain(&self, is_there: impl Fn(&[u8; 16]) -> bool) {
        self.restrictions.retain_filters(&is_there);
        self.plans.retain(&is_there);
    }
}
