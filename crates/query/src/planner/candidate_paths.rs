//! All candidate paths of a filter: single indexes, and combinations of indexes.

use windrow_mql::filter::{Filter, Node};

use super::access_path::{AccessPath, PlanningContext};
use super::{distinct_prefix, index_intersection, skip_scan, sort_merge};
use crate::Error;
use crate::bounds::wildcard::CandidateIndex;
use crate::find::Find;
use crate::plan::Plan;

impl PlanningContext<'_> {
    /// Returns the candidate paths that restrict the rows or have the requested order.
    pub fn ways(&self, find: &Find) -> Result<Vec<AccessPath>, Error> {
        self.ways_by(self.candidates(find.order())?, find)
    }

    /// The same, for known candidate indexes.
    pub fn ways_by(
        &self,
        candidates: Vec<CandidateIndex>,
        find: &Find,
    ) -> Result<Vec<AccessPath>, Error> {
        let mut ways = Vec::new();
        for candidate in candidates {
            let Some(mut access) = self.scan(candidate, find)? else {
                continue;
            };
            access.lead_in_order(find.order());
            let Plan::IndexScan(scan) = &access.plan else {
                continue;
            };
            // A sparse index is short, whatever its bounds are.
            let definition = &scan.index.definition;
            let leaves_out = definition.sparse && !definition.is_wildcard();
            if scan.bounds.restricts() || access.ordered || leaves_out {
                ways.extend(sort_merge::of_points(&access, find));
                ways.push(access);
            }
        }
        if ways.is_empty() {
            ways.extend(distinct_prefix::ways(self, find)?);
        }
        ways.extend(self.by_or(find)?);
        ways.extend(index_intersection::of(&ways, self.source.count() as f64));
        if !ways.iter().any(restricts) {
            ways.extend(skip_scan::ways(self, self.source, find)?);
        }
        Ok(ways)
    }

    /// Returns the cheapest path that restricts the rows and has the requested order.
    pub fn best_in_order(&self, find: &Find) -> Result<Option<AccessPath>, Error> {
        let total = self.source.count() as f64;
        let ways = self.ways(find)?.into_iter();
        let ordered = ways.filter(|way| way.ordered && restricts(way));
        Ok(ordered.min_by(|one, other| {
            let cost = |way: &AccessPath| way.cost(find, way.documents, total);
            cost(one).total_cmp(&cost(other))
        }))
    }

    /// Returns the cheapest path that restricts the rows.
    pub fn best(&self) -> Result<Option<AccessPath>, Error> {
        let find = Find::of(Filter::all());
        let mut ways = self.ways(&find)?;
        let total = self.source.count() as f64;
        ways.sort_by(|one, other| {
            let cost = |way: &AccessPath| way.cost(&find, way.documents, total);
            cost(one).total_cmp(&cost(other))
        });
        Ok(ways.into_iter().next())
    }

    /// Returns the numbers of the candidate indexes, then of those that the branches of an `$or`
    /// can use. They are part of the key in the plan cache, because constants can exclude an index.
    pub fn usable(&self, candidates: &[CandidateIndex]) -> Result<Vec<usize>, Error> {
        let mut usable: Vec<usize> = candidates.iter().map(|one| one.index.number).collect();
        for branch in branches(self.root).into_iter().flat_map(|(all, _)| all) {
            let branch = self.branch(branch);
            usable.extend(branch.usable(&branch.candidates(None)?)?);
        }
        Ok(usable)
    }

    fn branch<'b>(&'b self, root: &'b Node) -> PlanningContext<'b> {
        let scene = PlanningContext::new(root, self.predicates.collation.as_ref(), self.source);
        match &self.only {
            Some(only) => scene.with_only(only.clone()),
            None => scene,
        }
    }

    /// Returns the paths for an `$or`: the best path of each branch, and the best one in the
    /// requested order.
    fn by_or(&self, find: &Find) -> Result<Vec<AccessPath>, Error> {
        let Some((branches, alone)) = branches(self.root) else {
            return Ok(Vec::new());
        };
        let branches: Vec<PlanningContext<'_>> =
            branches.iter().map(|it| self.branch(it)).collect();
        let mut whole = AccessPath::nothing(alone);
        let mut inputs = Vec::with_capacity(branches.len());
        for branch in &branches {
            let Some(way) = branch.best()? else {
                return Ok(Vec::new());
            };
            whole.add(&way);
            inputs.push(way.into_rows());
        }
        whole.plan = Plan::Or(inputs);
        let mut ways = vec![whole];
        let in_order: Result<Option<Vec<AccessPath>>, Error> = match find.order() {
            Some(_) => branches
                .iter()
                .map(|branch| branch.best_in_order(find))
                .collect(),
            None => Ok(None),
        };
        ways.extend(in_order?.and_then(|branches| sort_merge::of_branches(branches, alone, find)));
        Ok(ways)
    }
}

/// Returns the branches of the filter's `$or`. The flag is `true` if there are no other conditions.
fn branches(root: &Node) -> Option<(&[Node], bool)> {
    match root {
        Node::Or(branches) => Some((branches, true)),
        Node::And(children) => children.iter().find_map(|child| match child {
            Node::Or(branches) => Some((branches.as_slice(), false)),
            _ => None,
        }),
        _ => None,
    }
}

/// Returns `true` if the path does not read the whole index.
fn restricts(way: &AccessPath) -> bool {
    match &way.plan {
        Plan::IndexScan(scan) => scan.bounds.restricts(),
        _ => true,
    }
}
