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
    pub fn paths(&self, find: &Find) -> Result<Vec<AccessPath>, Error> {
        self.paths_from(self.candidates(find.order())?, find)
    }

    /// The same, for known candidate indexes.
    pub fn paths_from(
        &self,
        candidates: Vec<CandidateIndex>,
        find: &Find,
    ) -> Result<Vec<AccessPath>, Error> {
        let mut paths = Vec::new();
        for candidate in candidates {
            let Some(mut path) = self.scan(candidate, find)? else {
                continue;
            };
            path.set_order_direction(find.order());
            let Plan::IndexScan(scan) = &path.plan else {
                continue;
            };
            // A sparse index is short, whatever its bounds are.
            let definition = &scan.index.definition;
            let leaves_out = definition.sparse && !definition.is_wildcard();
            if scan.bounds.restricts() || path.ordered || leaves_out {
                paths.extend(sort_merge::from_points(&path, find));
                paths.push(path);
            }
        }
        if paths.is_empty() {
            paths.extend(distinct_prefix::paths(self, find)?);
        }
        paths.extend(self.or_paths(find)?);
        paths.extend(index_intersection::intersect(
            &paths,
            self.source.count() as f64,
        ));
        if !paths.iter().any(restricts) {
            paths.extend(skip_scan::paths(self, self.source, find)?);
        }
        Ok(paths)
    }

    /// Returns the cheapest path that restricts the rows and has the requested order.
    pub fn best_in_order(&self, find: &Find) -> Result<Option<AccessPath>, Error> {
        let total = self.source.count() as f64;
        let paths = self.paths(find)?.into_iter();
        let ordered = paths.filter(|path| path.ordered && restricts(path));
        Ok(ordered.min_by(|one, other| {
            let cost = |path: &AccessPath| path.cost(find, path.documents, total);
            cost(one).total_cmp(&cost(other))
        }))
    }

    /// Returns the cheapest path that restricts the rows.
    pub fn best(&self) -> Result<Option<AccessPath>, Error> {
        let find = Find::new(Filter::all());
        let mut paths = self.paths(&find)?;
        let total = self.source.count() as f64;
        paths.sort_by(|one, other| {
            let cost = |path: &AccessPath| path.cost(&find, path.documents, total);
            cost(one).total_cmp(&cost(other))
        });
        Ok(paths.into_iter().next())
    }

    /// Returns the numbers of the candidate indexes, then of those that the branches of an `$or`
    /// can use. They are part of the key in the plan cache, because constants can exclude an index.
    pub fn usable_indexes(&self, candidates: &[CandidateIndex]) -> Result<Vec<usize>, Error> {
        let mut usable_indexes: Vec<usize> =
            candidates.iter().map(|one| one.index.number).collect();
        for branch in OrBranches::from_filter(self.root)
            .into_iter()
            .flat_map(|or| or.branches)
        {
            let branch = self.branch(branch);
            usable_indexes.extend(branch.usable_indexes(&branch.candidates(None)?)?);
        }
        Ok(usable_indexes)
    }

    fn branch<'b>(&'b self, root: &'b Node) -> PlanningContext<'b> {
        let context = PlanningContext::new(root, self.predicates.collation.as_ref(), self.source);
        match &self.only {
            Some(only) => context.with_only(only.clone()),
            None => context,
        }
    }

    /// Returns the paths for an `$or`: the best path of each branch, and the best one in the
    /// requested order.
    fn or_paths(&self, find: &Find) -> Result<Vec<AccessPath>, Error> {
        let Some(OrBranches { branches, is_alone }) = OrBranches::from_filter(self.root) else {
            return Ok(Vec::new());
        };
        let branches: Vec<PlanningContext<'_>> =
            branches.iter().map(|it| self.branch(it)).collect();
        let mut whole = AccessPath::empty(is_alone);
        let mut inputs = Vec::with_capacity(branches.len());
        for branch in &branches {
            let Some(path) = branch.best()? else {
                return Ok(Vec::new());
            };
            whole.add(&path);
            inputs.push(path.into_rows());
        }
        whole.plan = Plan::Or(inputs);
        let mut paths = vec![whole];
        let in_order: Result<Option<Vec<AccessPath>>, Error> = match find.order() {
            Some(_) => branches
                .iter()
                .map(|branch| branch.best_in_order(find))
                .collect(),
            None => Ok(None),
        };
        paths.extend(
            in_order?.and_then(|branches| sort_merge::from_branches(branches, is_alone, find)),
        );
        Ok(paths)
    }
}

/// An `$or` in a filter.
struct OrBranches<'n> {
    branches: &'n [Node],
    /// `true` if the filter has no other conditions.
    is_alone: bool,
}

impl OrBranches<'_> {
    /// Returns the `$or` of a filter, or the first one of its conjunction.
    fn from_filter(root: &Node) -> Option<OrBranches<'_>> {
        match root {
            Node::Or(branches) => Some(OrBranches {
                branches,
                is_alone: true,
            }),
            Node::And(children) => children.iter().find_map(|child| match child {
                Node::Or(branches) => Some(OrBranches {
                    branches,
                    is_alone: false,
                }),
                _ => None,
            }),
            _ => None,
        }
    }
}

/// Returns `true` if the path does not read the whole index.
fn restricts(path: &AccessPath) -> bool {
    match &path.plan {
        Plan::IndexScan(scan) => scan.bounds.restricts(),
        _ => true,
    }
}
