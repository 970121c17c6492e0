//! Every shape that satisfies a condition, or lies within a distance, has a key in the ranges that
//! the query reads.

mod common;

use common::{Random, list, pair, point};
use windrow_document::{ArrayBuf, DocumentBuf, ValueRef, array, doc};
use windrow_geo::{CellLevels, Cells, Condition, Grid, KeyRange, Near, Shape};

fn has_key(cells: &Cells, shape: &DocumentBuf, ranges: &[KeyRange]) -> bool {
    let shape = Shape::parse(ValueRef::Document(shape.as_document())).unwrap();
    let keys = cells.keys(&shape).unwrap();
    assert!(!keys.is_empty() && keys.len() < 200);
    let inside = |key: &u64| ranges.iter().any(|range| range.contains(*key));
    keys.iter().any(inside)
}

fn holds(condition: &Condition, shape: &DocumentBuf) -> bool {
    condition.matches(ValueRef::Document(shape.as_document()))
}

/// Asserts that the ranges contain a matching shape, and counts the matches and the shapes that the
/// ranges exclude.
fn check(cells: &Cells, condition: &Condition, shape: &DocumentBuf, tally: &mut (u32, u32)) {
    let ranges = condition.ranges(cells).unwrap();
    let found = has_key(cells, shape, &ranges);
    if holds(condition, shape) {
        assert!(found, "{} {shape}", condition.source());
        tally.0 += 1;
    } else if !found {
        tally.1 += 1;
    }
}

fn circle(center: (f64, f64), radius: f64) -> ArrayBuf {
    array![pair(center), radius]
}

#[test]
fn ranges_on_the_sphere_contain_all_matches() {
    let mut random = Random(1);
    let mut tally = (0, 0);
    for levels in [
        CellLevels::default(),
        CellLevels {
            coarsest: 3,
            finest: 9,
        },
    ] {
        for _ in 0..1500 {
            let cells = Cells::Sphere(levels);
            let center = random.position();
            let size = [0.01, 1.0, 20.0][random.below(3) as usize];
            let shape = random.shape(center, size);
            let near = random.beside(center, size);
            let region = random.shape(near, size * 2.0);
            let operator = match random.below(3) {
                0 => doc! { "$centerSphere": (circle(near, size.to_radians() * 2.0)) },
                _ => doc! { "$geometry": region },
            };
            let name = match random.below(2) {
                0 if operator.get("$geometry").is_some() => "$geoIntersects",
                _ => "$geoWithin",
            };
            // Near a pole a random star can intersect itself.
            if Shape::parse(ValueRef::Document(shape.as_document())).is_err() {
                continue;
            }
            let operand = ValueRef::Document(operator.as_document());
            if let Ok(condition) = Condition::parse(name, operand) {
                check(&cells, &condition, &shape, &mut tally);
            }
        }
    }
    assert!(tally.0 > 300 && tally.1 > 300, "{tally:?}");
}

#[test]
fn ranges_in_the_plane_contain_all_matches() {
    let mut random = Random(2);
    let mut tally = (0, 0);
    for bits in [1, 7, 26, 32] {
        let cells = Cells::Plane(Grid {
            bits,
            ..Grid::default()
        });
        for _ in 0..800 {
            let center = random.position();
            let size = [0.01, 1.0, 20.0][random.below(3) as usize];
            let near = random.beside(center, size);
            let operator = match random.below(4) {
                0 => doc! { "$box": (list(&[near, random.beside(near, size * 2.0)])) },
                1 => doc! { "$center": (circle(near, size * 1.5)) },
                2 => doc! { "$centerSphere": (circle(near, size.to_radians())) },
                _ => doc! { "$polygon": (list(&random.star(near, size * 2.0))) },
            };
            let operand = ValueRef::Document(operator.as_document());
            let condition = Condition::parse("$geoWithin", operand).unwrap();
            check(&cells, &condition, &point(center), &mut tally);
        }
    }
    assert!(tally.0 > 300 && tally.1 > 300, "{tally:?}");
}

#[test]
fn ranges_of_a_distance_contain_all_shapes_within_it() {
    let mut random = Random(3);
    let mut found = 0;
    let kinds = [
        Cells::Sphere(CellLevels::default()),
        Cells::Plane(Grid::default()),
    ];
    for _ in 0..2000 {
        let center = random.position();
        let size = [0.01, 1.0, 20.0, 150.0][random.below(4) as usize];
        let cells = kinds[random.below(2) as usize];
        let shape = match cells {
            Cells::Sphere(_) => random.shape(random_beside(center, size), size),
            Cells::Plane(_) => point(random.beside(center, size)),
        };
        let geometry = point(center);
        let operators = match random.below(3) {
            0 => doc! { "$near": { "$geometry": geometry } },
            1 => {
                doc! { "$nearSphere": (pair(center)) }
            }
            _ => doc! { "$near": (pair(center)) },
        };
        let near = Near::parse(operators.as_document()).unwrap();
        if !cells.supports(&near) {
            continue;
        }
        let Ok(valid) = Shape::parse(ValueRef::Document(shape.as_document())) else {
            continue;
        };
        let distance = near
            .distance(ValueRef::Document(shape.as_document()))
            .unwrap();
        let ranges = cells.ranges_within(&near, distance);
        assert!(
            has_key(&cells, &shape, &ranges),
            "{operators} {shape} {valid:?}"
        );
        assert!(distance <= cells.distance_max(&near));
        found += 1;
    }
    assert!(found > 500);
}

fn random_beside((x, y): (f64, f64), size: f64) -> (f64, f64) {
    Random(size as u64 + 9).beside((x, y), size)
}
