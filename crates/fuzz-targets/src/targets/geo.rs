//! The target `geo`: shapes, conditions, distances, operators of MongoDB Search and index keys.

use windrow_document::{ValueRef, doc};
use windrow_geo::{CellLevels, Cells, Condition, Near, SearchArea, Shape, ShapeQuery};

use crate::value_encoding::ValueDecoder;

/// The input is a shape and the operand of a condition or a distance. The key ranges of a condition
/// must contain a key of every matching shape.
pub fn run(bytes: &[u8]) {
    let mut source = ValueDecoder::new(bytes);
    let (shape, operand) = (source.value(), source.value());
    let cells = Cells::Sphere(CellLevels::default());
    let parsed = Shape::parse(shape.as_ref());
    let keys = parsed.ok().and_then(|shape| cells.keys(&shape).ok());
    for operator in ["$geoWithin", "$geoIntersects"] {
        for operand in [
            operand.clone(),
            doc! { "$geometry": (operand.clone()) }.into(),
        ] {
            let Ok(condition) = Condition::parse(operator, operand.as_ref()) else {
                continue;
            };
            let (Some(keys), Some(ranges)) = (&keys, condition.ranges(&cells)) else {
                continue;
            };
            if condition.matches(shape.as_ref()) {
                let is_covered = |key: &u64| ranges.iter().any(|range| range.contains(*key));
                assert!(
                    keys.iter().any(is_covered),
                    "{shape} matches {operator}: {operand}"
                );
            }
        }
    }
    check_distance(shape.as_ref(), operand.as_ref());
    check_search(shape.as_ref(), operand.as_ref());
}

/// The same for the operators of MongoDB Search.
fn check_search(shape: ValueRef<'_>, operand: ValueRef<'_>) {
    let Ok(shape) = Shape::parse_geojson(shape, &|_| Ok(())) else {
        return;
    };
    for option in SearchArea::OPTIONS {
        if let (Ok(area), Some(key)) = (
            SearchArea::parse(option, operand, &|_| Ok(())),
            shape.point_key(),
        ) && area.contains(key)
        {
            let ranges = area.key_ranges();
            assert!(ranges.iter().any(|range| range.contains(key)), "{operand}");
        }
    }
    let keys = shape.cell_keys();
    let shapes = [shape];
    for relation in ["contains", "intersects", "within"] {
        if let Ok(query) = ShapeQuery::parse(relation, operand, &|_| Ok(()))
            && query.matches(&shapes, &|_| Ok(())) == Ok(true)
        {
            let ranges = query.key_ranges();
            let is_covered = |key: &u64| ranges.iter().any(|range| range.contains(*key));
            assert!(keys.iter().any(is_covered), "{relation}: {operand}");
        }
    }
}

fn check_distance(shape: ValueRef<'_>, operand: ValueRef<'_>) {
    let near = match operand {
        ValueRef::Document(operators) => Near::parse(operators),
        point => Near::from_point(point, true),
    };
    if let Ok(near) = near
        && let Some(distance) = near.distance(shape)
    {
        assert!(distance >= 0.0, "{distance}");
    }
}
