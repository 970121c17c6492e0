//! Geospatial conditions as bounds of an index: the cells that contain the matching shapes.

use std::ops::Bound::Included;
use std::sync::Arc;

use windrow_document::path::Path;
use windrow_geo::{Cells, Condition, KeyRange};
use windrow_index::{Definition, KeyField};

use super::interval::{Interval, Intervals};

/// A `$geoWithin` or `$geoIntersects` of the conjunction.
#[derive(Clone, Debug)]
pub struct GeoPredicate {
    /// The path.
    pub path: Path,
    /// The condition.
    pub condition: Arc<Condition>,
}

/// Returns the intervals for one of the conditions on a field. `None` if the index cannot answer
/// any of them. The intervals of several conditions cannot be intersected, because different cells
/// of one shape may satisfy them.
pub fn intervals_of(
    definition: &Definition,
    field: &KeyField,
    geo_predicates: &[GeoPredicate],
) -> Option<Intervals> {
    let geo = definition.geo.as_ref().filter(|_| field.kind.is_geo())?;
    let mut on_path = geo_predicates.iter().filter(|one| one.path == field.path);
    let ranges = on_path.find_map(|one| one.condition.ranges(&geo.cells))?;
    Some(intervals(&geo.cells, &ranges))
}

/// Returns `true` if the index contains every document that can match. A geospatial index does if
/// one of the conditions is on one of its fields.
pub fn has_all(definition: &Definition, geo_predicates: &[GeoPredicate]) -> bool {
    !definition.is_geo()
        || definition
            .fields
            .iter()
            .any(|field| intervals_of(definition, field, geo_predicates).is_some())
}

/// Converts ranges of cell keys to intervals of the values that represent the cells in the index.
pub fn intervals(cells: &Cells, ranges: &[KeyRange]) -> Intervals {
    Intervals::union(ranges.iter().map(|range| {
        let (low, high) = (cells.value(range.first), cells.value(range.last));
        Interval::new(Included(low), Included(high))
    }))
}
