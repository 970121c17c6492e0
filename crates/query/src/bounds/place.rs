//! Conditions on places as parts of an index: the cells in which what fulfils them lies.

use std::sync::Arc;

use windrow_document::path::Path;
use windrow_geo::{Cells, Condition, KeyRange};
use windrow_index::{Definition, KeyField};

use super::interval::{Interval, Intervals};

/// A `$geoWithin` or `$geoIntersects` of the conjunction.
#[derive(Clone, Debug)]
pub struct Place {
    pub path: Path,
    pub condition: Arc<Condition>,
}

/// Where the values of a field lie that can fulfil one of the conditions on it; None where the index
/// cannot say. Several conditions may be fulfilled by different cells of one shape.
pub fn intervals_of(
    definition: &Definition,
    field: &KeyField,
    places: &[Place],
) -> Option<Intervals> {
    let geo = definition.geo.as_ref().filter(|_| field.kind.is_geo())?;
    let mut on_path = places.iter().filter(|place| place.path == field.path);
    let ranges = on_path.find_map(|place| place.condition.ranges(&geo.cells))?;
    Some(intervals(&geo.cells, &ranges))
}

/// Whether an index has every document that can fulfil the conditions: one of places does where one of
/// them is on a place that it holds.
pub fn has_all(definition: &Definition, places: &[Place]) -> bool {
    !definition.is_geo()
        || definition
            .fields
            .iter()
            .any(|field| intervals_of(definition, field, places).is_some())
}

/// Ranges of keys as intervals of the values that stand for them.
pub fn intervals(cells: &Cells, ranges: &[KeyRange]) -> Intervals {
    Intervals::union(ranges.iter().map(|range| {
        let (low, high) = (cells.value(range.first), cells.value(range.last));
        Interval::new(low, true, high, true)
    }))
}
