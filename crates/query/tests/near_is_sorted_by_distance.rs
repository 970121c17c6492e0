//! `$near` returns documents in the order of their distance by any index that supports it, and
//! geospatial conditions have the same result with an index as without one.

mod support;

use std::collections::BTreeSet;

use support::Database;
use windrow_document::{DocumentBuf, ValueRef, array, doc};
use windrow_mql::filter::Filter;
use windrow_mql::projection::Projection;
use windrow_query::{Direction, Find, Hint, Uninterrupted};

/// Few enough points that their order is the same on the sphere and in the plane.
const COUNT: i32 = 150;

/// Points on a spiral, each farther from (0, 0) than the previous one. Every third is of kind 1.
fn documents() -> Vec<DocumentBuf> {
    let document = |id: i32| {
        let (turn, far) = (f64::from(id) * 0.7, f64::from(id) * 0.1);
        doc! { "_id": id, "kind": (id % 3), "p": [(far * turn.cos()), (far * turn.sin())] }
    };
    (0..COUNT).map(document).collect()
}

fn database(key: DocumentBuf) -> Database {
    Database::new(&documents(), vec![doc! { "key": key, "name": "places" }])
}

fn find(filter: &DocumentBuf) -> Find {
    Find::new(Filter::parse(filter.as_document()).unwrap())
}

fn ids(database: &Database, find: &Find) -> Result<Vec<i64>, i32> {
    let mut cursor = find
        .clone()
        .open(&database.source())
        .map_err(|error| error.code().unwrap_or_default())?;
    let mut found = Vec::new();
    while let Some(content) = cursor.next(&Uninterrupted).unwrap() {
        found.push(
            content
                .as_document()
                .get("_id")
                .unwrap()
                .as_whole()
                .unwrap(),
        );
    }
    Ok(found)
}

fn check(key: DocumentBuf, filter: DocumentBuf, expected: Result<Vec<i64>, i32>) {
    let found = ids(&database(key.clone()), &find(&filter));
    assert_eq!(found, expected, "{key} {filter}");
}

#[test]
fn in_the_order_of_distances() {
    let sphere = || doc! { "p": "2dsphere" };
    let plane = || doc! { "p": "2d" };
    let origin = doc! { "$geometry": { "type": "Point", "coordinates": [0, 0] } };
    let all = || Ok((0..i64::from(COUNT)).collect::<Vec<i64>>());
    check(plane(), doc! { "p": { "$near": [0, 0] } }, all());
    check(plane(), doc! { "p": { "$nearSphere": [0, 0] } }, all());
    check(sphere(), doc! { "p": { "$nearSphere": [0, 0] } }, all());
    check(sphere(), doc! { "p": { "$near": (origin.clone()) } }, all());
    check(sphere(), doc! { "p": { "$near": [0, 0] } }, Err(291));
    check(plane(), doc! { "p": { "$near": origin } }, Err(291));
    check(
        doc! { "q": "2d" },
        doc! { "p": { "$near": [0, 0] } },
        Err(291),
    );
}

#[test]
fn within_bounds_and_beside_conditions() {
    let near = || doc! { "$near": [0, 0], "$minDistance": 1.05, "$maxDistance": 2.05 };
    let between = || 11..=20i64;
    let of_kind = |kind: i64| Ok(between().filter(|id| id % 3 == kind).collect());
    check(
        doc! { "p": "2d" },
        doc! { "p": near() },
        Ok(between().collect()),
    );
    check(
        doc! { "p": "2d", "kind": 1 },
        doc! { "p": near(), "kind": 1 },
        of_kind(1),
    );
    let sphere = doc! { "$nearSphere": [0, 0], "$minDistance": 0.0183, "$maxDistance": 0.0357 };
    let behind = || doc! { "kind": 1, "p": "2dsphere" };
    check(
        behind(),
        doc! { "p": (sphere.clone()), "kind": 2 },
        of_kind(2),
    );
    check(behind(), doc! { "p": sphere }, Err(291));
}

#[test]
fn a_limit_reads_little() {
    let database = database(doc! { "p": "2dsphere" });
    let filter = doc! { "p": { "$nearSphere": [0, 0] } };
    let query = Find {
        limit: Some(4),
        skip: 1,
        ..find(&filter)
    };
    assert_eq!(ids(&database, &query), Ok(vec![1, 2, 3, 4]));
    let natural = Find {
        hint: Some(Hint::Natural(Direction::Forward)),
        ..find(&filter)
    };
    assert_eq!(ids(&database, &natural), Err(2));
}

#[test]
fn distances_can_be_shown() {
    let database = database(doc! { "p": "2d" });
    let query = find(&doc! { "p": { "$near": [0, 0] } });
    let shown = doc! { "d": { "$meta": "geoNearDistance" }, "at": { "$meta": "geoNearPoint" } };
    let projection = Projection::parse(shown.as_document(), &query.filter).unwrap();
    let query = Find {
        projection: Some(projection),
        ..query
    };
    let mut cursor = query.open(&database.source()).unwrap();
    for id in 0..COUNT {
        let row = cursor.next(&Uninterrupted).unwrap().unwrap();
        let document = row.as_document();
        let distance = document.get("d").and_then(ValueRef::as_f64).unwrap();
        assert!((distance - f64::from(id) * 0.1).abs() < 1e-9);
        assert_eq!(document.get("at"), document.get("p"));
    }
}

#[test]
fn an_index_finds_what_a_scan_finds() {
    for key in [
        doc! { "p": "2d" },
        doc! { "p": "2dsphere" },
        doc! { "kind": 1, "p": "2dsphere" },
    ] {
        let database = database(key.clone());
        for (x, size) in [(0, 1.0), (3, 5.0), (-20, 30.0), (70, 9.0)] {
            let corner = f64::from(x) + size;
            let corners = array![[x, x], [corner, x], [corner, corner], [x, corner], [x, x]];
            let square = doc! { "type": "Polygon", "coordinates": [corners] };
            for region in [
                doc! { "$geoWithin": { "$box": [[x, x], [corner, corner]] } },
                doc! { "$geoWithin": { "$centerSphere": [[x, x], (size / 57.3)] } },
                doc! { "$geoWithin": { "$geometry": square.clone() } },
                doc! { "$geoIntersects": { "$geometry": square.clone() } },
            ] {
                let filter = doc! { "kind": 1, "p": region };
                let scan = Find {
                    hint: Some(Hint::Natural(Direction::Forward)),
                    ..find(&filter)
                };
                let set = |found: Result<Vec<i64>, i32>| BTreeSet::from_iter(found.unwrap());
                assert_eq!(
                    set(ids(&database, &find(&filter))),
                    set(ids(&database, &scan)),
                    "{key} {filter}"
                );
            }
        }
    }
}
