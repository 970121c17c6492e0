//! Parsing a large shape stops when it is told to.

use std::cell::Cell;

use windrow_document::{ArrayBuf, Value, ValueRef, array, doc};
use windrow_geo::{Condition, Error};

const VERTICES: usize = 100_000;

/// A polygon of 500,000 vertices took two seconds, in which an operation could not be stopped.
#[test]
fn a_large_polygon_asks_between_its_vertices_and_steps() {
    let vertex = |step: usize| {
        let turn = (step % VERTICES) as f64 / VERTICES as f64 * std::f64::consts::TAU;
        Value::Array(array![20.0 + 5.0 * turn.cos(), 20.0 + 5.0 * turn.sin()])
    };
    let ring: ArrayBuf = (0..=VERTICES).map(vertex).collect();
    let rings = array![ring];
    let operand = doc! { "$geometry": { "type": "Polygon", "coordinates": rings } };
    let operand = ValueRef::Document(operand.as_document());
    let calls = Cell::new(0);
    let parse = |calls_max: usize| {
        calls.set(0);
        Condition::parse_while("$geoWithin", operand, &|| {
            calls.set(calls.get() + 1);
            match calls.get() < calls_max {
                true => Ok(()),
                false => Err(Error::new(50, "time is over")),
            }
        })
    };
    assert!(parse(usize::MAX).is_ok());
    let all = calls.get();
    assert!(all > VERTICES / 2_000, "{all}");
    for calls_max in [1, all / 2, all - 2, all - 1, all] {
        let error = parse(calls_max).unwrap_err();
        assert_eq!(error.code, 50);
        assert_eq!(calls.get(), calls_max);
    }
}
