//! Intersection of two indexes: the records that both contain.
//!
//! The postings of one key are in the order of record ids, so two such lists are merged without a
//! hash table. This pays if both lists are long and few records are in both.

use super::access_path::AccessPath;
use crate::plan::{IndexScan, Plan};

/// Fetching this many documents is as fast as reading another list.
const DOCUMENTS_MIN: f64 = 32.0;

/// Returns the intersection of the two shortest lists that restrict different fields. `None` if
/// there are no two. `total` is the number of documents.
pub fn intersect(paths: &[AccessPath], total: f64) -> Option<AccessPath> {
    let mut lists: Vec<(&AccessPath, &IndexScan)> = paths
        .iter()
        .filter_map(|path| Some((path, single_key_scan(path)?)))
        .collect();
    lists.sort_by(|one, other| one.0.documents.total_cmp(&other.0.documents));
    let (shortest, scan) = *lists.first()?;
    if shortest.documents < DOCUMENTS_MIN {
        return None;
    }
    let others = lists.iter().skip(1);
    let (other, _) = *others
        .into_iter()
        .find(|(_, other)| are_disjoint(scan, other))?;
    let mut both = AccessPath::empty(false);
    both.add(shortest);
    both.add(other);
    both.documents = shortest.documents * other.documents / total.max(1.0);
    both.certain = false;
    both.plan = Plan::AndSorted(vec![shortest.plan.clone(), other.plan.clone()]);
    Some(both)
}

/// Returns the scan if it reads the postings of one key.
fn single_key_scan(path: &AccessPath) -> Option<&IndexScan> {
    match &path.plan {
        Plan::IndexScan(scan) => {
            let definition = &scan.index.definition;
            let is_list = scan.bounds.is_one_key()
                && !definition.clustered
                && !definition.unique
                && !definition.is_wildcard();
            is_list.then_some(scan)
        }
        _ => None,
    }
}

/// Returns `true` if the two indexes have no fields in common.
pub fn are_disjoint(one: &IndexScan, other: &IndexScan) -> bool {
    let (ours, theirs) = (&one.index.definition.fields, &other.index.definition.fields);
    ours.iter()
        .all(|field| theirs.iter().all(|other| !field.path.overlaps(&other.path)))
}
