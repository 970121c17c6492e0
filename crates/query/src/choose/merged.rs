//! An order that no single scan has: scans that have it, merged.
//!
//! Where the leading fields of an index are a few points (`$in`) and the fields behind them have the
//! order, each point's scan has it. So may each branch of a `$or`.

use windrow_mql::sort::Sort;

use super::access::{Access, has_plain, sorted_paths};
use super::order;
use crate::bounds::IndexBounds;
use crate::bounds::interval::Intervals;
use crate::find::Find;
use crate::plan::{IndexScan, KeyOutput, Plan};

/// Scans of one index that are merged at most, as in MongoDB.
const SCANS_MAX: usize = 200;

/// The same way as scans of single points that are merged; None where they would not have the order.
pub fn of_points(access: &Access, find: &Find) -> Option<Access> {
    let order = find.order().filter(|_| may_merge(find))?;
    let Plan::IndexScan(scan) = &access.plan else {
        return None;
    };
    if access.ordered || scan.index.definition.clustered {
        return None;
    }
    let inputs: Option<Vec<Plan>> = exploded(&scan.bounds)?
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
    Some(Access {
        seeks: access.seeks.max(inputs.len() as f64),
        plan: Plan::SortMerge {
            sort: order.clone(),
            inputs,
        },
        covers: false,
        ordered: true,
        ..access.clone()
    })
}

/// The branches of a `$or`, each in order, merged; None where a branch is no scan of an index.
pub fn of_branches(branches: Vec<Access>, alone: bool, find: &Find) -> Option<Access> {
    let order = find.order().filter(|_| may_merge(find))?;
    let mut whole = Access::nothing(alone);
    let mut inputs = Vec::with_capacity(branches.len());
    for way in branches {
        whole.add(&way);
        match way.plan {
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

/// Keys of single scans are not shown of merged ones.
fn may_merge(find: &Find) -> bool {
    !find.shows_keys()
}

/// A scan whose rows say where they stand in the order: by their keys, or by their documents.
fn input(scan: IndexScan, order: &Sort) -> Plan {
    let in_key = scan.index.definition.collation.is_none()
        && sorted_paths(order).all(|path| has_plain(&scan.index, &path));
    match in_key {
        true => Plan::IndexScan(IndexScan {
            output: KeyOutput::Document,
            ..scan
        }),
        false => Plan::IndexScan(scan).fetched(None),
    }
}

/// The bounds for each combination of points of the leading fields; None where there is but one, or
/// there are too many.
fn exploded(bounds: &IndexBounds) -> Option<Vec<IndexBounds>> {
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
                        *field = Intervals::of(point.clone());
                    }
                    one
                })
            })
            .collect();
    }
    (all.len() > 1).then_some(all)
}
