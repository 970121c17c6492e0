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
    /// Forgets a collection that is gone.
    pub fn forget(&self, namespace: &str) {
        self.restrictions.clear_filters(namespace, None);
        self.plans.clear(namespace, None);
    }
}
