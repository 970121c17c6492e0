//! All candidate paths, sorted by cost.

use super::access_path::{self, AccessPath};
use super::index_intersection::is_apart;
use super::{PlanChoice, assemble};
use crate::find::Find;
use crate::plan::{IndexScan, Plan};
use crate::source::Source;

/// In smaller collections, an index is used whenever one is applicable.
const SCANNED_MIN: f64 = 10_000.0;

/// The candidate paths with their costs, the cheapest first.
pub struct RankedPaths {
    pub ways: Vec<(f64, AccessPath)>,
    /// The estimated number of documents that match.
    matching: f64,
    total: f64,
}

/// Estimates how many documents match: the smallest number of documents of a path, or less if paths
/// with different fields are assumed to be independent.
fn matching(ways: &[AccessPath], total: f64) -> f64 {
    let least = ways.iter().map(|way| way.documents);
    let least = least.fold(f64::INFINITY, f64::min);
    let mut scans: Vec<(&AccessPath, &IndexScan)> = ways.iter().filter_map(scanning).collect();
    scans.sort_by(|one, other| one.0.documents.total_cmp(&other.0.documents));
    let mut apart: Vec<&IndexScan> = Vec::new();
    let mut together = total;
    for (way, scan) in scans {
        if apart.iter().all(|one| is_apart(one, scan)) {
            together *= (way.documents / total.max(1.0)).min(1.0);
            apart.push(scan);
        }
    }
    least.min(together)
}

fn scanning(way: &AccessPath) -> Option<(&AccessPath, &IndexScan)> {
    match &way.plan {
        Plan::IndexScan(scan) => Some((way, scan)),
        _ => None,
    }
}

impl RankedPaths {
    pub fn of(find: &Find, source: &dyn Source, ways: Vec<AccessPath>) -> RankedPaths {
        let total = source.count() as f64;
        let matching = matching(&ways, total);
        let with_cost = |way: AccessPath| (way.cost(find, matching, total), way);
        let mut ways: Vec<(f64, AccessPath)> = ways.into_iter().map(with_cost).collect();
        ways.sort_by(|one, other| one.0.total_cmp(&other.0));
        RankedPaths {
            ways,
            matching,
            total,
        }
    }

    /// Returns `true` if the cost of the cheapest path does not depend on other indexes. With a
    /// limit, an ordered path ends earlier or later depending on how many documents match, and
    /// another index may have the better estimate of that.
    pub fn stands_alone(&self, find: &Find) -> bool {
        let mut cheapest = self.ways.first().into_iter();
        find.order().is_none() || cheapest.all(|(cost, way)| self.cost_alone(find, way) == *cost)
    }

    /// Returns the cost of a path by the estimates of its own indexes.
    pub fn cost_alone(&self, find: &Find, way: &AccessPath) -> f64 {
        way.cost(find, way.documents, self.total)
    }

    /// Returns the cost of the cheapest path.
    pub fn cost(&self) -> Option<f64> {
        self.ways.first().map(|(cost, _)| *cost)
    }

    /// Returns `true` if a collection scan is cheaper than all paths. Small collections are not
    /// scanned, to keep their plans predictable for people. Neither are collections for which an
    /// index has the order.
    pub fn scan_is_cheaper(&self, find: &Find, source: &dyn Source) -> bool {
        let is_ordered = find.order().is_some() && self.ways.iter().any(|(_, way)| way.ordered);
        if self.total < SCANNED_MIN || is_ordered || source.prefers_indexes() {
            return false;
        }
        let Some((cost, way)) = self.ways.first() else {
            return true;
        };
        access_path::scan_cost(find, self.matching, self.total, way.certain) < *cost
    }

    /// Returns the plan of the cheapest path, and the other plans. `None` if there is no path.
    pub fn into_choice(self, find: &Find) -> Option<PlanChoice> {
        let ways = self.ways.into_iter();
        let mut plans = ways.map(|(_, way)| assemble(find, way));
        Some(PlanChoice {
            winner: plans.next()?,
            rejected: plans.collect(),
        })
    }
}
