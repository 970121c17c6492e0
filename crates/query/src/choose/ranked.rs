//! All ways, by what they cost.

use super::access::{self, Access};
use super::{Choice, assemble};
use crate::find::Find;
use crate::source::Source;

/// Collections of fewer documents are scanned only where no index says anything.
const SCANNED_MIN: f64 = 10_000.0;

/// Ways with their costs, the cheapest first.
pub struct Ranked {
    pub ways: Vec<(f64, Access)>,
    /// The number of documents that match, as far as the ways know.
    least: f64,
    total: f64,
}

impl Ranked {
    pub fn of(find: &Find, source: &dyn Source, ways: Vec<Access>) -> Ranked {
        let documents = ways.iter().map(|way| way.documents);
        let least = documents.fold(f64::INFINITY, f64::min);
        let total = source.count() as f64;
        let with_cost = |way: Access| (way.cost(find, least, total), way);
        let mut ways: Vec<(f64, Access)> = ways.into_iter().map(with_cost).collect();
        ways.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ranked { ways, least, total }
    }

    /// What the cheapest way costs.
    pub fn cost(&self) -> Option<f64> {
        self.ways.first().map(|(cost, _)| *cost)
    }

    /// Whether reading all documents one after the other costs less than every way by an index. Not
    /// asked of small collections, whose plans people read, nor where an index has the order.
    pub fn scan_is_cheaper(&self, find: &Find, source: &dyn Source) -> bool {
        let is_ordered = find.order().is_some() && self.ways.iter().any(|(_, way)| way.ordered);
        if self.total < SCANNED_MIN || is_ordered || source.prefers_indexes() {
            return false;
        }
        let scan = access::scan_cost(find, self.least, self.total);
        self.cost().is_none_or(|cost| scan < cost)
    }

    /// The cheapest way as a plan, and the others; None where there is no way.
    pub fn into_choice(self, find: &Find) -> Option<Choice> {
        let ways = self.ways.into_iter();
        let mut plans = ways.map(|(_, way)| assemble(find, way));
        Some(Choice {
            winner: plans.next()?,
            rejected: plans.collect(),
        })
    }
}
