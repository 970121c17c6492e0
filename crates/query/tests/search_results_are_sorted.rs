//! The options `sort`, `searchAfter` and `searchBefore` of `$search`.

mod support;

use support::Database;
use support::search::{run, specification};
use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, array, doc};

fn index() -> DocumentBuf {
    let value = array![{ "type": "token" }, { "type": "number" }, { "type": "boolean" },
        { "type": "date" }];
    let fields = doc! {
        "all": { "type": "string" },
        "v": (value),
        "group": { "type": "token" },
        "facet": { "type": "numberFacet" },
    };
    specification(doc! { "mappings": { "fields": fields } })
}

fn database(values: Vec<Option<Value>>) -> Database {
    let document = |(id, value): (i32, Option<Value>)| {
        let group = if id % 2 == 0 { "even" } else { "odd" };
        let words = "all ".repeat(1 + id as usize % 3);
        let mut document = doc! { "_id": id, "all": words, "group": group };
        if let Some(value) = value {
            document.push("v", value);
        }
        document
    };
    let documents: Vec<DocumentBuf> = (0..).zip(values).map(document).collect();
    Database::new(&documents, vec![index()])
}

fn all() -> DocumentBuf {
    doc! { "text": { "query": "all", "path": "all" } }
}

fn with(mut search: DocumentBuf, name: &str, value: impl Into<Value>) -> DocumentBuf {
    search.push(name, value);
    search
}

/// Returns the ids of a search, each with its token.
fn tokens(database: &Database, search: DocumentBuf, limit: i32) -> Vec<(i32, String)> {
    let shown = search.to_string();
    let token = doc! { "token": { "$meta": "searchSequenceToken" } };
    let stages = array![{ "$search": search }, { "$limit": limit }, { "$project": token }];
    let rows = run(&database.engine, stages).unwrap_or_else(|error| panic!("{shown}: {error:?}"));
    let pair = |row: &DocumentBuf| match (row.get("_id"), row.get("token")) {
        (Some(ValueRef::Int32(id)), Some(ValueRef::String(token))) => (id, token.to_owned()),
        other => panic!("{other:?}"),
    };
    rows.iter().map(pair).collect()
}

fn ids(pairs: &[(i32, String)]) -> Vec<i32> {
    pairs.iter().map(|(id, _)| *id).collect()
}

#[test]
fn values_are_in_the_order_of_their_types() {
    let array = |values: ArrayBuf| Some(Value::from(values));
    let database = database(vec![
        array(array![(-3), 12]),
        Some(Value::from(5)),
        array(array![6, 18]),
        Some(Value::Double(13.5)),
        Some(Value::from("text")),
        Some(Value::Bool(true)),
        Some(Value::Null),
        None,
        array(array![]),
        Some(Value::DateTime(0)),
        array(array!["foo", null, 15, true, false]),
        array(array![[8, [1]], 9]),
    ]);
    let sorted = |sort: DocumentBuf| ids(&tokens(&database, with(all(), "sort", sort), 100));
    let ascending = sorted(doc! { "v": 1 });
    assert_eq!(ascending, [6, 7, 8, 10, 0, 11, 1, 2, 3, 4, 5, 9]);
    let descending = sorted(doc! { "v": (-1) });
    assert_eq!(descending, [9, 5, 10, 4, 2, 3, 0, 11, 1, 6, 7, 8]);
    let highest = sorted(doc! { "v": { "order": 1, "noData": "highest" } });
    assert_eq!(highest, [0, 11, 1, 2, 3, 10, 4, 5, 9, 6, 7, 8]);
    let highest = sorted(doc! { "v": { "order": (-1), "noData": "highest" } });
    assert_eq!(highest, [6, 7, 8, 10, 9, 5, 4, 2, 3, 0, 11, 1]);
    // Ties are in the order of the records or of the next field.
    let two = sorted(doc! { "group": (-1), "v": 1 });
    assert_eq!(two, [7, 11, 1, 3, 5, 9, 6, 8, 10, 0, 2, 4]);
    assert_eq!(sorted(doc! { "v": 1, "group": (-1) })[..3], [7, 6, 8]);
    let best = ids(&tokens(&database, all(), 100));
    assert_eq!(sorted(doc! { "s": { "$meta": "searchScore" } }), best);
    let worst = sorted(doc! { "s": { "$meta": "searchScore", "order": 1 }, "v": 1 });
    assert_eq!(worst[8..], [8, 11, 2, 5]);
}

/// Pages of any size, in both directions, add up to the whole result.
#[test]
fn pages_follow_each_other() {
    let values = (0..50).map(|n| Some(Value::from(n * 7 % 20))).collect();
    let database = database(values);
    for sort in [
        None,
        Some(doc! { "v": 1 }),
        Some(doc! { "v": (-1), "group": 1 }),
        Some(doc! { "s": { "$meta": "searchScore" }, "v": 1 }),
    ] {
        let search = match sort {
            Some(sort) => with(all(), "sort", sort),
            None => all(),
        };
        let whole = tokens(&database, search.clone(), 100);
        assert_eq!(whole.len(), 50);
        for size in [1, 7, 100] {
            let (mut pages, mut next) = (Vec::new(), search.clone());
            loop {
                let page = tokens(&database, next, size);
                let Some((_, last)) = page.last() else {
                    break;
                };
                next = with(search.clone(), "searchAfter", last.as_str());
                pages.extend(page);
            }
            assert_eq!(pages, whole, "{search} by {size}");
        }
        let before = with(search.clone(), "searchBefore", whole[30].1.as_str());
        let expected: Vec<_> = whole[20..30].iter().rev().cloned().collect();
        assert_eq!(tokens(&database, before, 10), expected, "{search}");
        let first = with(search.clone(), "searchBefore", whole[0].1.as_str());
        assert_eq!(tokens(&database, first, 10), []);
    }
}

#[test]
fn what_is_not_valid_is_refused() {
    let database = database(vec![Some(Value::from(1)), Some(Value::from(2))]);
    let refused = |search: DocumentBuf, expected: &str| {
        let shown = search.to_string();
        let refused = run(&database.engine, array![{ "$search": search }]);
        let (code, message) = refused.expect_err(&shown);
        assert_eq!(code, 2, "{shown}");
        assert!(message.contains(expected), "{shown}: {message}");
    };
    for (sort, expected) in [
        (doc! {}, "at least one field"),
        (doc! { "v": 2 }, "sort order must be 1 or -1"),
        (doc! { "v": "up" }, "sort order must be 1 or -1"),
        (doc! { "v": { "noData": "lowest" } }, "order\" is required"),
        (
            doc! { "v": { "order": 1, "noData": "first" } },
            "must be \"lowest\" or \"highest\"",
        ),
        (doc! { "v": { "order": 1, "x": 1 } }, "Unrecognized field"),
        (
            doc! { "s": { "$meta": "textScore" } },
            "must be \"searchScore\"",
        ),
        (doc! { "all": 1 }, "all is not indexed as sortable"),
        (doc! { "facet": 1 }, "facet is not indexed as sortable"),
        (doc! { "none.a": (-1) }, "none.a is not indexed as sortable"),
    ] {
        refused(with(all(), "sort", sort), expected);
    }
    let token = tokens(&database, all(), 1).remove(0).1;
    let other = with(all(), "sort", doc! { "v": 1 });
    refused(
        with(other, "searchAfter", token.as_str()),
        "another operator, index or sort",
    );
    let text = doc! { "text": { "query": "other", "path": "all" } };
    refused(
        with(text, "searchBefore", token.as_str()),
        "another operator, index or sort",
    );
    refused(
        with(all(), "searchAfter", "no token"),
        "Invalid format for token value",
    );
    let both = with(all(), "searchBefore", token.as_str());
    refused(with(both, "searchAfter", token.as_str()), "only one of");
    // Other options may change between pages.
    let counted = with(all(), "count", doc! { "type": "total" });
    assert_eq!(
        ids(&tokens(
            &database,
            with(counted, "searchAfter", token.as_str()),
            5
        ))
        .len(),
        1
    );
}

/// A sort by one field reads the keys of the index if that is cheaper, and a sort by several fields
/// reads documents. With a second field that is the same in all documents, the results are equal.
#[test]
fn keys_and_documents_tell_the_same_order() {
    let date = |number: i64| Value::DateTime(1_600_000_000_000 + number * 977 % 40_000);
    let value = |number: i64| match number % 11 {
        0 => None,
        1 => Some(Value::Null),
        2 => Some(Value::from(array![
            (date(number)),
            null,
            (date(number * 31))
        ])),
        3 => Some(Value::from("text")),
        _ => Some(date(number)),
    };
    let document = |number: i64| {
        let words = if number % 3 == 0 { "all some" } else { "all" };
        let mut document = doc! { "_id": (number as i32), "all": words, "same": "one" };
        if let Some(value) = value(number) {
            document.push("v", value);
        }
        document
    };
    let documents: Vec<DocumentBuf> = (0..9_000).map(document).collect();
    let fields = doc! {
        "all": { "type": "string" },
        "v": { "type": "date" },
        "same": { "type": "token" },
    };
    let index = specification(doc! { "mappings": { "fields": fields } });
    let database = Database::new(&documents, vec![index]);
    for (word, count) in [("all", 9_000), ("some", 3_000)] {
        let search = || doc! { "text": { "query": word, "path": "all" } };
        for order in [1, -1] {
            for no_data in ["lowest", "highest"] {
                let by = doc! { "order": order, "noData": no_data };
                let by_keys = with(search(), "sort", doc! { "v": (by.clone()) });
                let by_documents = with(search(), "sort", doc! { "v": by, "same": 1 });
                let expected = ids(&tokens(&database, by_documents, 10_000));
                assert_eq!(expected.len(), count);
                for limit in [1, 10, 900, 5_000, 10_000] {
                    let found = tokens(&database, by_keys.clone(), limit);
                    let expected = &expected[..count.min(limit as usize)];
                    assert_eq!(ids(&found), expected, "{word} {order} {no_data} {limit}");
                }
                let first = tokens(&database, by_keys.clone(), 1_000);
                let next = with(by_keys, "searchAfter", first[999].1.as_str());
                let second = tokens(&database, next, 10_000);
                assert_eq!(ids(&second), expected[1_000..]);
            }
        }
    }
}

/// The scores of records that were sorted by keys are those of the search.
#[test]
fn sorted_records_have_their_scores() {
    let values = (0..2_000).map(|n| Some(Value::from(n * 7 % 1_999)));
    let database = database(values.collect());
    let score = doc! { "score": { "$meta": "searchScore" } };
    let scores = |search: DocumentBuf| -> Vec<(i32, f64)> {
        let stages =
            array![{ "$search": search }, { "$limit": 2_000 }, { "$project": (score.clone()) }];
        let rows = run(&database.engine, stages).unwrap();
        let pair = |row: &DocumentBuf| match (row.get("_id"), row.get("score")) {
            (Some(ValueRef::Int32(id)), Some(score)) => (id, score.as_f64().unwrap()),
            other => panic!("{other:?}"),
        };
        let mut pairs: Vec<(i32, f64)> = rows.iter().map(pair).collect();
        pairs.sort_by_key(|(id, _)| *id);
        pairs
    };
    let expected = scores(all());
    assert!(expected.iter().all(|(_, score)| *score > 0.0));
    assert_eq!(scores(with(all(), "sort", doc! { "v": (-1) })), expected);
}

/// `$skip` directly after `$search` drops rows that are not read.
#[test]
fn skipped_rows_are_not_read() {
    let database = database((0..300).map(|n| Some(Value::from(n))).collect());
    let search = with(all(), "sort", doc! { "v": (-1) });
    let found = |stages: ArrayBuf| -> Vec<i32> {
        let rows = run(&database.engine, stages).unwrap();
        let ids = rows.iter().map(|row| match row.get("_id") {
            Some(ValueRef::Int32(id)) => id,
            other => panic!("{other:?}"),
        });
        ids.collect()
    };
    let stages = array![{ "$search": (search.clone()) }, { "$skip": 200 }, { "$limit": 3 }];
    assert_eq!(found(stages), [99, 98, 97]);
    let stages = array![{ "$search": (search.clone()) }, { "$skip": 298 }];
    assert_eq!(found(stages), [1, 0]);
    let doubled = doc! { "v": { "$multiply": ["$v", 2] } };
    let stages = array![{ "$search": search }, { "$project": doubled }, { "$skip": 299 }];
    assert_eq!(found(stages), [0]);
}
