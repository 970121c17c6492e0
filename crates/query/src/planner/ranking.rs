//! All candidate paths, sorted by cost.

use super::access_path::{self, AccessPath};
use super::index_intersection::are_disjoint;
use super::{PlanChoice, assemble};
use crate::find::Find;
use crate::plan::{IndexScan, Plan};
use crate::source::Source;

/// In smaller collections, an index is used whenever one is applicable.
const SCANNED_MIN: f64 = 10_000.0;

/// The candidate paths of a query.
pub struct RankedPaths {
    /// The paths, the cheapest first.
    pub paths: Vec<RankedPath>,
    /// The estimated number of documents that match.
    matching: f64,
    /// The number of documents of the collection.
    total: f64,
}

/// A path with its cost.
pub struct RankedPath {
    pub path: AccessPath,
    /// The cost, in index entries read.
    pub cost: f64,
}

/// Estimates how many documents match: the smallest number of documents of a path, or less if paths
/// with different fields are assumed to be independent.
fn matching(paths: &[AccessPath], total: f64) -> f64 {
    let least = paths.iter().map(|path| path.documents);
    let least = least.fold(f64::INFINITY, f64::min);
    let mut sorted: Vec<&AccessPath> = paths.iter().collect();
    sorted.sort_by(|one, other| one.documents.total_cmp(&other.documents));
    let mut disjoint: Vec<&IndexScan> = Vec::new();
    let mut together = total;
    for path in sorted {
        if let Plan::IndexScan(scan) = &path.plan
            && disjoint.iter().all(|one| are_disjoint(one, scan))
        {
            together *= (path.documents / total.max(1.0)).min(1.0);
            disjoint.push(scan);
        }
    }
    least.min(together)
}

impl RankedPaths {
    pub fn new(find: &Find, source: &dyn Source, paths: Vec<AccessPath>) -> RankedPaths {
        let total = source.count() as f64;
        let matching = matching(&paths, total);
        let with_cost = |path: AccessPath| RankedPath {
            cost: path.cost(find, matching, total),
            path,
        };
        let mut paths: Vec<RankedPath> = paths.into_iter().map(with_cost).collect();
        paths.sort_by(|one, other| one.cost.total_cmp(&other.cost));
        RankedPaths {
            paths,
            matching,
            total,
        }
    }

    /// Returns `true` if the cost of the cheapest path does not depend on other indexes. With a
    /// limit, an ordered path ends earlier or later depending on how many documents match, and
    /// another index may have the better estimate of that.
    pub fn is_independent(&self, find: &Find) -> bool {
        let mut cheapest = self.paths.first().into_iter();
        find.order().is_none()
            || cheapest.all(|ranked| self.own_cost(find, &ranked.path) == ranked.cost)
    }

    /// Returns the cost of a path by the estimates of its own indexes.
    pub fn own_cost(&self, find: &Find, path: &AccessPath) -> f64 {
        path.cost(find, path.documents, self.total)
    }

    /// Returns the cost of the cheapest path.
    pub fn cost(&self) -> Option<f64> {
        self.paths.first().map(|ranked| ranked.cost)
    }

    /// Returns `true` if a collection scan is cheaper than all paths. Small collections are not
    /// scanned, to keep their plans predictable for people. Neither are collections for which an
    /// index has the order.
    pub fn scan_is_cheaper(&self, find: &Find, source: &dyn Source) -> bool {
        let mut paths = self.paths.iter().map(|ranked| &ranked.path);
        let is_ordered = find.order().is_some() && paths.any(|path| path.ordered);
        if self.total < SCANNED_MIN || is_ordered || source.prefers_indexes() {
            return false;
        }
        let Some(RankedPath { path, cost }) = self.paths.first() else {
            return true;
        };
        access_path::scan_cost(find, self.matching, self.total, path.certain) < *cost
    }

    /// Returns the plan of the cheapest path, and the other plans. `None` if there is no path.
    pub fn into_choice(self, find: &Find) -> Option<PlanChoice> {
        let paths = self.paths.into_iter();
        let mut plans = paths.map(|ranked| assemble(find, ranked.path));
        Some(PlanChoice {
            winner: plans.next()?,
            rejected: plans.collect(),
        })
    }
}
