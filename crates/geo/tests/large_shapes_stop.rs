//! Work on a large shape stops at an interrupt.

use std::cell::Cell;
use std::f64::consts::TAU;

use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, array, doc};
use windrow_geo::{Condition, Error, Near, Shape};
use windrow_interrupt::{Interrupted, WorkCounter};

const VERTICES: usize = 100_000;

fn stopped() -> Interrupted {
    Interrupted::with_code(50, "time is over")
}

/// A polygon of one ring, whose first vertex is repeated at the end.
fn polygon(vertices: impl Iterator<Item = (f64, f64)>) -> DocumentBuf {
    let vertices: Vec<(f64, f64)> = vertices.collect();
    let closed = vertices.iter().chain(vertices.first());
    let ring: ArrayBuf = closed
        .map(|(x, y)| Value::Array(array![(*x), (*y)]))
        .collect();
    doc! { "type": "Polygon", "coordinates": [ring] }
}

fn circle(vertices: usize, radius: f64) -> DocumentBuf {
    let turns = (0..vertices).map(|step| step as f64 / vertices as f64 * TAU);
    polygon(turns.map(|turn| (20.0 + radius * turn.cos(), 20.0 + radius * turn.sin())))
}

/// Each edge crosses about half of the others.
fn zigzag(vertices: usize) -> DocumentBuf {
    let vertex = |step: usize| {
        let random = (step as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        let y = random as f64 / f64::from(1 << 24);
        (if step.is_multiple_of(2) { -10.0 } else { 10.0 }, y)
    };
    polygon((0..vertices).map(vertex))
}

/// No edges cross, but nearly all are in the same cells of the index.
fn comb(vertices: usize) -> DocumentBuf {
    let tooth = |step: usize| {
        let x = if step.is_multiple_of(2) { -10.0 } else { 10.0 };
        (x, step as f64 * 20.0 / vertices as f64)
    };
    polygon((0..vertices).map(tooth).chain([(10.5, 20.0), (10.5, -1.0)]))
}

/// A polygon of 500,000 vertices took two seconds, in which an operation could not be stopped.
#[test]
fn a_large_polygon_asks_between_its_vertices_and_steps() {
    let operand = doc! { "$geometry": (circle(VERTICES, 5.0)) };
    let operand = ValueRef::Document(operand.as_document());
    let calls = Cell::new(0);
    let parse = |calls_max: usize| {
        calls.set(0);
        Condition::parse_with("$geoWithin", operand, &|_| {
            calls.set(calls.get() + 1);
            if calls.get() < calls_max {
                Ok(())
            } else {
                Err(stopped())
            }
        })
    };
    assert!(parse(usize::MAX).is_ok());
    let all = calls.get();
    assert!(all > VERTICES, "{all}");
    for calls_max in [1, all / 2, all - 2, all - 1, all] {
        assert_eq!(parse(calls_max).unwrap_err(), Error::from(stopped()));
        assert_eq!(calls.get(), calls_max);
    }
}

/// All pairs of crossing edges were collected before the first was reported: 5,000 vertices took 6
/// GB, and 20,000 vertices all memory.
#[test]
fn the_first_crossing_refuses_a_polygon() {
    let crossed = zigzag(VERTICES);
    let units = Cell::new(0);
    let parsed = Shape::parse_with(ValueRef::Document(crossed.as_document()), &|more| {
        units.set(units.get() + more);
        Ok(())
    });
    assert_eq!(parsed.unwrap_err().code, 2);
    assert!(units.get() < 1_000 * VERTICES, "{}", units.get());
}

/// Edges that lie close to each other are compared in pairs, and nothing stopped that.
#[test]
fn the_comparison_of_close_edges_stops() {
    let close = comb(VERTICES);
    let units = Cell::new(0);
    let parsed = Shape::parse_with(ValueRef::Document(close.as_document()), &|more| {
        units.set(units.get() + more);
        if units.get() < 1_000 * VERTICES {
            Ok(())
        } else {
            Err(stopped())
        }
    });
    assert_eq!(parsed.unwrap_err(), Error::from(stopped()));
}

/// A condition and a distance parse each stored shape, and compare each of its edges with each edge
/// of the query. Nothing stopped that, and an error of a shape only means that it does not match.
#[test]
fn matching_a_large_shape_stops() {
    let small = circle(200, 5.0);
    let large = circle(20_000, 6.0);
    let check = |run: &dyn Fn(WorkCounter<'_>) -> Result<bool, Interrupted>| {
        let units = Cell::new(0);
        let count = |more| {
            units.set(units.get() + more);
            Ok(())
        };
        assert_eq!(run(&count), Ok(true));
        let all = units.replace(0);
        assert!(all > 20_000, "{all}");
        for units_max in [1, all / 4, all / 2, all * 3 / 4, all] {
            units.set(0);
            let stop = |more| {
                units.set(units.get() + more);
                if units.get() < units_max {
                    Ok(())
                } else {
                    Err(stopped())
                }
            };
            assert_eq!(run(&stop), Err(stopped()), "{units_max} of {all}");
        }
    };
    for (operator, region, shape) in [
        ("$geoWithin", &large, &small),
        ("$geoIntersects", &small, &large),
    ] {
        let operand = doc! { "$geometry": (region.clone()) };
        let operand = ValueRef::Document(operand.as_document());
        let condition = Condition::parse(operator, operand).unwrap();
        let shape = ValueRef::Document(shape.as_document());
        check(&|count_work| condition.matches_with(shape, count_work));
    }
    let near = Near::from_point(ValueRef::Array(array![0, 0].as_array()), true).unwrap();
    let shape = ValueRef::Document(large.as_document());
    check(&|count_work| Ok(near.distance_with(shape, count_work)?.is_some()));
}
