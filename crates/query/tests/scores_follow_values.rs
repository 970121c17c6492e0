//! `near`, and scores that are multiplied by fields or computed by functions.

mod support;

use support::Database;
use support::search::{self, specification};
use windrow_document::{DocumentBuf, Value, ValueRef, array, doc};

const DAY: i64 = 24 * 60 * 60 * 1000;

fn database() -> Database {
    let documents = vec![
        doc! { "_id": 0, "title": "coffee", "n": 5, "day": (Value::DateTime(0)) },
        doc! { "_id": 1, "title": "coffee", "n": 7.5, "day": (Value::DateTime(10 * DAY)) },
        doc! { "_id": 2, "title": "coffee", "n": [-20, 12] },
        doc! { "_id": 3, "title": "coffee", "n": "five" },
        doc! { "_id": 4, "title": "tea", "n": 100 },
    ];
    let dynamic = specification(doc! { "mappings": { "dynamic": true } });
    Database::new(&documents, vec![dynamic])
}

/// Returns the ids and scores that a search finds, the best first.
fn found(database: &Database, search: DocumentBuf) -> Vec<(i32, f64)> {
    let score = doc! { "score": { "$meta": "searchScore" } };
    let stages = array![{ "$search": search }, { "$project": score }];
    let rows = search::run(&database.engine, stages).unwrap();
    let row = |row: &DocumentBuf| match (row.get("_id"), row.get("score")) {
        (Some(ValueRef::Int32(id)), Some(ValueRef::Double(score))) => (id, score),
        other => panic!("{other:?}"),
    };
    rows.iter().map(row).collect()
}

fn check(database: &Database, search: DocumentBuf, expected: &[(i32, f64)]) {
    let shown = search.to_string();
    let found = found(database, search);
    let ids = |rows: &[(i32, f64)]| rows.iter().map(|row| row.0).collect::<Vec<_>>();
    assert_eq!(ids(&found), ids(expected), "{shown}: {found:?}");
    for ((_, score), (_, expected)) in found.iter().zip(expected) {
        assert!((score - expected).abs() < 1e-6, "{shown}: {found:?}");
    }
}

#[test]
fn near_values_have_high_scores() {
    let database = database();
    let near = |origin: Value, pivot: f64, path: &str| {
        doc! { "near": { "path": path, "origin": origin, "pivot": pivot } }
    };
    let expected = [(2, 1.0), (1, 2.0 / 6.5), (0, 2.0 / 9.0), (4, 2.0 / 90.0)];
    check(&database, near(12.into(), 2.0, "n"), &expected);
    let by_days = [(1, 0.5), (0, 1.0 / 12.0)];
    let origin = Value::DateTime(11 * DAY);
    check(&database, near(origin, DAY as f64, "day"), &by_days);
    check(&database, near(1.into(), 1.0, "title"), &[]);
    let compound = doc! { "compound": {
        "filter": [{ "text": { "query": "coffee", "path": "title" } }],
        "should": [{ "near": { "path": "n", "origin": 5, "pivot": 5,
            "score": { "boost": { "value": 2 } } } }],
    } };
    let expected = [(0, 2.0), (1, 10.0 / 7.5), (2, 10.0 / 12.0), (3, 0.0)];
    check(&database, compound, &expected);
}

#[test]
fn scores_are_multiplied_by_fields() {
    let database = database();
    let all = |score: DocumentBuf| {
        doc! { "exists": { "path": "title", "score": score } }
    };
    let boost = doc! { "boost": { "path": "n", "undefined": 6 } };
    // The least of several values counts, and a negative score is 0.
    let expected = [(4, 100.0), (1, 7.5), (3, 6.0), (0, 5.0), (2, 0.0)];
    check(&database, all(boost), &expected);
    let recent = doc! { "gauss": { "path": "day", "origin": (10 * DAY), "scale": (10 * DAY) } };
    let function = doc! { "function": { "multiply": [
        { "score": "relevance" },
        { "add": [{ "constant": 1 }, recent] },
        { "log1p": { "path": { "value": "n", "undefined": 9 } } },
    ] } };
    let log = |n: f64| (n + 1.0).log10();
    let found = found(&database, all(function));
    let score_of = |id: i32| found.iter().find(|row| row.0 == id).map(|row| row.1);
    let close = |id: i32, expected: f64| {
        let score = score_of(id).unwrap();
        assert!((score - expected).abs() < 1e-4, "{id}: {score} {expected}");
    };
    close(0, 1.5 * log(5.0));
    close(1, 2.0 * log(7.5));
    // Without a day, the distance is that of 1970.
    close(3, 1.5);
    close(4, 1.5 * log(100.0));
    assert_eq!(score_of(2), Some(0.0));
}

/// A function of the score keeps the best records, whatever the order of the lists is.
#[test]
fn the_best_by_a_function_are_found_among_many() {
    let documents: Vec<DocumentBuf> = (0..5_000)
        .map(|id| doc! { "_id": id, "title": "coffee", "n": (id * 7_919 % 5_000) })
        .collect();
    let dynamic = specification(doc! { "mappings": { "dynamic": true } });
    let database = Database::new(&documents, vec![dynamic]);
    let boost = doc! { "boost": { "path": "n" } };
    let search = doc! { "text": { "query": "coffee", "path": "title", "score": boost } };
    let stages = array![{ "$search": search }, { "$limit": 3 }, { "$project": { "n": 1 } }];
    let rows = search::run(&database.engine, stages).unwrap();
    let numbers: Vec<_> = rows
        .iter()
        .map(|row| row.get("n").unwrap().as_f64())
        .collect();
    assert_eq!(numbers, [Some(4_999.0), Some(4_998.0), Some(4_997.0)]);
}
