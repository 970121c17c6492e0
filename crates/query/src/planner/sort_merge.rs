//! Merges sorted scans into an order that no single scan has.
//!
//! If the leading fields of an index are a few points (`$in`) and the later fields have the order,
//! the scan of each point has the order. The same applies to the branches of an `$or`.

use windrow_mql::sort::Sort;

use super::access_path::{AccessPath, has_plain, sorted_paths};
use super::order;
use crate::bounds::IndexBounds;
use crate::bounds::interval::Intervals;
use crate::find::Find;
use crate::plan::{IndexScan, KeyOutput, Plan};

/// The largest number of scans that are merged, as in MongoDB.
const SCANS_MAX: usize = 200;

/// Returns the path split into merged scans of single points. `None` if they would not have the
/// order.
pub fn from_points(path: &AccessPath, find: &Find) -> Option<AccessPath> {
    let order = find.order().filter(|_| may_merge(find))?;
    let Plan::IndexScan(scan) = &path.plan else {
        return None;
    };
    if path.ordered || scan.index.definition.clustered {
        return None;
    }
    let inputs: Option<Vec<Plan>> = explode(&scan.bounds)?
        .into_iter()
        .map(|bounds| {
            let direction = order::direction(&scan.index, &bounds, Some(order))?;
            let scan = IndexScan {
                bounds,
                direction,
                ..scan.clone()
            };
            Some(input(scan, order))
        })
        .collect();
    let inputs = inputs?;
    Some(AccessPath {
        seeks: path.seeks.max(inputs.len() as f64),
        plan: Plan::SortMerge {
            sort: order.clone(),
            inputs,
        },
        covers: false,
        ordered: true,
        ..path.clone()
    })
}

/// Returns the sorted branches of an `$or`, merged. `None` if a branch is not a scan of an index.
pub fn from_branches(branches: Vec<AccessPath>, alone: bool, find: &Find) -> Option<AccessPath> {
    let order = find.order().filter(|_| may_merge(find))?;
    let mut whole = AccessPath::empty(alone);
    let mut inputs = Vec::with_capacity(branches.len());
    for path in branches {
        whole.add(&path);
        match path.plan {
            Plan::IndexScan(scan) if !scan.index.definition.clustered => {
                inputs.push(input(scan, order));
            }
            Plan::SortMerge { inputs: own, .. } => inputs.extend(own),
            _ => return None,
        }
    }
    if inputs.len() > SCANS_MAX {
        return None;
    }
    whole.ordered = true;
    whole.plan = Plan::SortMerge {
        sort: order.clone(),
        inputs,
    };
    Some(whole)
}

/// The keys of the merged scans cannot be shown.
fn may_merge(find: &Find) -> bool {
    !find.shows_keys()
}

/// A scan whose rows contain the sort key, in the key or in the document.
fn input(scan: IndexScan, order: &Sort) -> Plan {
    let in_key = scan.index.definition.collation.is_none()
        && sorted_paths(order).all(|path| has_plain(&scan.index, &path));
    if in_key {
        Plan::IndexScan(IndexScan {
            output: KeyOutput::Document,
            ..scan
        })
    } else {
        Plan::IndexScan(scan).fetched(None)
    }
}

/// Returns the bounds of each combination of points of the leading fields. `None` if there is only
/// one combination, or too many.
fn explode(bounds: &IndexBounds) -> Option<Vec<IndexBounds>> {
    let mut all = vec![bounds.clone()];
    let leading = bounds.fields.iter().enumerate();
    for (number, intervals) in leading.take_while(|(_, intervals)| intervals.are_points()) {
        let points = intervals.as_slice();
        if all.len() * points.len() > SCANS_MAX {
            return None;
        }
        all = all
            .iter()
            .flat_map(|one| {
                points.iter().map(move |point| {
                    let mut one = one.clone();
                    if let Some(field) = one.fields.get_mut(number) {
                        *field = Intervals::from_interval(point.clone());
                    }
                    one
                })
            })
            .collect();
    }
    (all.len() > 1).then_some(all)
}
