//! The plan that won for a query is used for the next query of the same shape if it is as good. The
//! result of a query never depends on the plan cache.

mod support;

use std::sync::Arc;

use support::Database;
use windrow_document::{DocumentBuf, Value, doc};
use windrow_mql::filter::{Environment, Filter};
use windrow_mql::sort::Sort;
use windrow_query::{Find, Source, Uninterrupted};

fn database() -> Database {
    let document = |id: i32| {
        let mut document =
            doc! { "_id": id, "a": (id % 10), "b": (id % 50), "s": (format!("{}", id % 7)) };
        if id % 3 == 0 {
            document.push("p", id);
            document.push("t", doc! { "x": (id % 5), "y": [id % 4, id % 9] });
        }
        if id % 100 == 0 {
            document.push("h", 1);
        }
        document
    };
    let documents: Vec<DocumentBuf> = (0..600).map(document).collect();
    let positive = doc! { "p": { "$gt": 300 } };
    let alike = doc! { "locale": "en", "strength": 2 };
    Database::new(
        &documents,
        vec![
            doc! { "key": { "a": 1 }, "name": "a" },
            doc! { "key": { "b": 1 }, "name": "b" },
            doc! { "key": { "a": 1, "p": 1 }, "name": "partial", "partialFilterExpression": positive },
            doc! { "key": { "p": 1 }, "name": "sparse", "sparse": true },
            doc! { "key": { "t.$**": 1 }, "name": "wild" },
            doc! { "key": { "s": 1 }, "name": "alike", "collation": alike },
            doc! { "key": { "s": 1, "a": 1 }, "name": "s" },
        ],
    )
}

fn find(filter: &DocumentBuf) -> Find {
    Find::new(Filter::parse(filter.as_document()).unwrap())
}

fn ids(find: &Find, source: &Arc<dyn Source>) -> Vec<Value> {
    let mut cursor = find.clone().open(source).unwrap();
    let mut found = Vec::new();
    while let Some(document) = cursor.next(&Uninterrupted).unwrap() {
        let id = document.as_document().get("_id").map(|id| id.to_value());
        found.extend(id);
    }
    found.sort_by_key(|id| format!("{id:>6}"));
    found
}

/// The second query has the same result with and without the plan cache, after the first one has
/// run repeatedly.
fn check(first: DocumentBuf, second: DocumentBuf, expected: usize) {
    let database = database();
    for _ in 0..3 {
        ids(&find(&first), &database.source());
    }
    let found = ids(&find(&second), &database.source());
    let unguided = self::database();
    assert_eq!(
        found,
        ids(&find(&second), &unguided.source()),
        "{first} {second}"
    );
    assert_eq!(found.len(), expected, "{first} {second}");
}

#[test]
fn other_constants_find_what_they_would_without_memory() {
    // The partial index does not contain the documents of the second query.
    check(
        doc! { "a": 6, "p": { "$gt": 500 } },
        doc! { "a": 6, "p": { "$gt": 5 } },
        20,
    );
    check(doc! { "a": 6, "p": 336 }, doc! { "a": 6, "p": 36 }, 1);
    // The sparse index does not contain the documents without its field.
    let null = || Value::Null;
    check(doc! { "a": 6, "p": 36 }, doc! { "a": 6, "p": (null()) }, 40);
    check(
        doc! { "b": 6, "p": { "$in": [36, 6] } },
        doc! { "b": 6, "p": { "$in": [6, (null())] } },
        9,
    );
    // A wildcard index contains no documents, no arrays, and no missing fields.
    check(
        doc! { "a": 6, "t.x": 1 },
        doc! { "a": 6, "t.x": (null()) },
        40,
    );
    check(doc! { "a": 0, "t.y": 0 }, doc! { "a": 0, "t.y": [0, 0] }, 4);
    check(
        doc! { "a": 6, "t": { "$gt": 5 } },
        doc! { "a": 6, "t": { "x": 1, "y": [0, 0] } },
        4,
    );
    check(
        doc! { "$or": [{ "a": 6, "p": 336 }, { "b": 3 }] },
        doc! { "$or": [{ "a": 6, "p": 36 }, { "b": 3 }] },
        13,
    );
}

#[test]
fn an_index_that_compares_otherwise_is_not_used_for_strings() {
    let database = database();
    let parsed = |filter: DocumentBuf| {
        let collation = doc! { "locale": "en", "strength": 2 };
        let collation = windrow_mql::collation::parse(collation.as_document()).unwrap();
        let environment = Environment {
            collation,
            ..Environment::default()
        };
        Find::new(Filter::parse_with(filter.as_document(), &environment).unwrap())
    };
    for _ in 0..3 {
        ids(&parsed(doc! { "s": 5, "a": 3 }), &database.source());
    }
    let found = ids(&parsed(doc! { "s": "5", "a": 3 }), &database.source());
    assert_eq!(found.len(), 9);
}

/// Returns the number of plans that compete for a query with `filter`: the chosen one and the
/// rejected ones.
fn counted(database: &Database, filter: DocumentBuf) -> usize {
    let choice = find(&filter).plan(&*database.source()).unwrap();
    1 + choice.rejected.len()
}

#[test]
fn only_the_remembered_index_is_counted() {
    let database = database();
    let query = |b: i32| doc! { "a": 3, "b": b };
    let anew = counted(&database, query(3));
    assert!(anew > 1);
    assert_eq!(
        counted(&database, query(3)),
        anew,
        "the entry is inactive yet"
    );
    assert_eq!(counted(&database, query(13)), 1);
    assert_eq!(counted(&database, query(14)), 1);
    // A plan that reads no entries cannot be compared with others.
    assert_eq!(
        counted(&database, doc! { "a": 3, "b": { "$gt": 3 } }),
        anew,
        "another shape"
    );
    let limited = Find {
        limit: Some(1),
        ..find(&query(3))
    };
    let choice = limited.plan(&*database.source()).unwrap();
    assert_eq!(
        1 + choice.rejected.len(),
        anew,
        "a limit makes another choice"
    );
}

#[test]
fn far_more_work_makes_the_planner_choose_anew() {
    let database = database();
    let query = |a: i32, h: i32| doc! { "a": { "$gte": a }, "b": { "$gte": h } };
    for _ in 0..3 {
        counted(&database, query(0, 49));
    }
    let usual = find(&query(0, 48)).plan(&*database.source()).unwrap();
    assert!(usual.winner.to_string().contains("\"b\""));
    assert!(usual.rejected.is_empty());
    let other = find(&query(9, 0)).plan(&*database.source()).unwrap();
    assert!(!other.rejected.is_empty());
    let name = "\"indexName\":\"a\"";
    assert!(
        other.winner.to_string().replace(": ", ":").contains(name),
        "{}",
        other.winner
    );
}

#[test]
fn explain_neither_uses_nor_makes_an_entry() {
    let database = database();
    let query = doc! { "a": 3, "b": 3 };
    let list = || {
        let source = database.source();
        let (uuid, indexes) = (source.uuid().unwrap(), source.indexes());
        database.planner_settings.plans.list(uuid, &indexes)
    };
    let anew = find(&query).plan_uncached(&*database.source()).unwrap();
    assert_eq!(list().len(), 0);
    for is_active in [false, true, true] {
        let cache_status = find(&query)
            .cache_status(&*database.source(), &anew.winner)
            .unwrap();
        assert!(!cache_status.is_cached || is_active);
        counted(&database, query.clone());
        let [plan] = &list()[..] else {
            panic!("one plan")
        };
        assert_eq!((plan.is_active, plan.key), (is_active, cache_status.key));
        let details = plan.details.as_ref().unwrap();
        assert_eq!(details.candidates.len(), 1 + anew.rejected.len());
    }
    let cache_status = find(&query)
        .cache_status(&*database.source(), &anew.winner)
        .unwrap();
    assert!(cache_status.is_cached);
    let sorted = Find {
        sort: Some(Sort::parse(doc! { "b": 1 }.as_document()).unwrap()),
        ..find(&query)
    };
    let other = sorted
        .cache_status(&*database.source(), &anew.winner)
        .unwrap();
    assert_ne!(other.key, cache_status.key);
    assert_eq!(list().len(), 1);
    // With other indexes, the cached plans are not used.
    let fewer = &database.source().indexes()[1..];
    let uuid = database.source().uuid().unwrap();
    assert!(database.planner_settings.plans.list(uuid, fewer).is_empty());
    assert!(list().is_empty());
}
