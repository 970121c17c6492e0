//! Two indexes together: the records that both have.
//!
//! The postings of one key are in the order of record ids, so that two such lists are merged without a
//! table. It pays where each list is long and few records are in both.

use super::access::Access;
use crate::plan::{IndexScan, Plan};

/// So few documents are fetched as fast as another list is read.
const DOCUMENTS_MIN: f64 = 32.0;

/// The two shortest lists that say different things, merged; None where there are no two. `total`: of
/// documents.
pub fn of(ways: &[Access], total: f64) -> Option<Access> {
    let mut lists: Vec<(&Access, &IndexScan)> = ways
        .iter()
        .filter_map(|way| Some((way, sorted_list(way)?)))
        .collect();
    lists.sort_by(|one, other| one.0.documents.total_cmp(&other.0.documents));
    let (shortest, scan) = *lists.first()?;
    if shortest.documents < DOCUMENTS_MIN {
        return None;
    }
    let others = lists.iter().skip(1);
    let (other, _) = *others
        .into_iter()
        .find(|(_, other)| is_apart(scan, other))?;
    let mut both = Access::nothing(false);
    both.add(shortest);
    both.add(other);
    both.documents = shortest.documents * other.documents / total.max(1.0);
    both.certain = false;
    both.plan = Plan::AndSorted(vec![shortest.plan.clone(), other.plan.clone()]);
    Some(both)
}

/// A scan of the postings of one key.
fn sorted_list(way: &Access) -> Option<&IndexScan> {
    match &way.plan {
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

/// Whether no field is in both.
pub fn is_apart(one: &IndexScan, other: &IndexScan) -> bool {
    let (ours, theirs) = (&one.index.definition.fields, &other.index.definition.fields);
    ours.iter()
        .all(|field| theirs.iter().all(|other| !field.path.overlaps(&other.path)))
}
