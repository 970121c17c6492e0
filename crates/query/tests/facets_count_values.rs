//! The collector `facet` of `$search` and `$searchMeta`: the counts agree with the documents.

mod support;

use std::collections::{BTreeMap, BTreeSet};

use support::search::{run, specification};
use support::{Database, Random};
use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, array, doc};

fn index() -> DocumentBuf {
    let fields = doc! {
        "tag": { "type": "token" },
        "low": [{ "type": "token", "normalizer": "lowercase" }, { "type": "string" }],
        "old": { "type": "stringFacet" },
        "n": { "type": "number" },
        "by": { "type": "document", "fields": { "when": { "type": "date" } } },
        "text": { "type": "string" },
    };
    specification(doc! { "mappings": { "fields": fields } })
}

fn metadata(database: &Database, search: DocumentBuf) -> DocumentBuf {
    let shown = search.to_string();
    match run(&database.engine, array![{ "$searchMeta": search }]) {
        Ok(mut rows) => rows.pop().expect("a row"),
        Err(error) => panic!("{shown}: {error:?}"),
    }
}

/// Returns one value, several or none.
fn values(random: &mut Random, one: &mut dyn FnMut(u64) -> Value) -> Option<Value> {
    match random.below(8) {
        0 => None,
        1 => Some(Value::Null),
        2 => {
            let count = random.below(4);
            let some: ArrayBuf = (0..count).map(|_| one(random.below(30))).collect();
            Some(Value::from(some))
        }
        _ => Some(one(random.below(30))),
    }
}

fn document(id: i32, random: &mut Random) -> DocumentBuf {
    let mut document = doc! { "_id": id, "text": (format!("all w{}", id % 100)) };
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            document.push(name, value);
        }
    };
    put(
        "tag",
        values(random, &mut |n| Value::from(format!("t{}", n * n % 7))),
    );
    put(
        "low",
        values(random, &mut |n| {
            Value::from(["", "Ab", "aB", "c"][n as usize % 4])
        }),
    );
    put("old", values(random, &mut |n| Value::from(format!("o{n}"))));
    put(
        "n",
        values(random, &mut |n| match n % 3 {
            0 => Value::Int32(n as i32),
            1 => Value::Double(n as f64 + 0.5),
            _ => Value::from("no number"),
        }),
    );
    let when = values(random, &mut |n| Value::DateTime(n as i64 * 1_000));
    if let Some(when) = when {
        document.push("by", doc! { "when": when });
    }
    document
}

/// Collects the values of a field, with the elements of arrays.
fn flat<'d>(value: Option<ValueRef<'d>>, into: &mut Vec<ValueRef<'d>>) {
    match value {
        Some(ValueRef::Array(array)) => array.iter().for_each(|one| flat(Some(one), into)),
        Some(value) => into.push(value),
        None => {}
    }
}

fn values_of<'d>(document: &'d DocumentBuf, path: &str) -> Vec<ValueRef<'d>> {
    let value = match path {
        "by.when" => match document.get("by") {
            Some(ValueRef::Document(by)) => by.get("when"),
            _ => None,
        },
        path => document.get(path),
    };
    let mut found = Vec::new();
    flat(value, &mut found);
    found
}

/// Returns the most frequent strings of a field.
fn strings(documents: &[&DocumentBuf], path: &str, most: usize, lower: bool) -> DocumentBuf {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for document in documents {
        let texts = values_of(document, path).into_iter();
        let texts = texts.filter_map(|value| value.as_str().map(str::to_owned));
        let texts: BTreeSet<String> = texts
            .map(|text| if lower { text.to_lowercase() } else { text })
            .collect();
        for text in texts.into_iter().filter(|text| !text.is_empty()) {
            *counts.entry(text).or_default() += 1;
        }
    }
    let mut counts: Vec<(String, i64)> = counts.into_iter().collect();
    counts.sort_by_key(|(text, count)| (-count, text.clone()));
    buckets(
        counts
            .into_iter()
            .take(most)
            .map(|(text, count)| (Value::from(text), count)),
    )
}

fn buckets(counts: impl Iterator<Item = (Value, i64)>) -> DocumentBuf {
    let bucket = |(id, count)| Value::from(doc! { "_id": (id), "count": count });
    let buckets: ArrayBuf = counts.map(bucket).collect();
    doc! { "buckets": buckets }
}

fn ranges(documents: &[&DocumentBuf], path: &str, boundaries: &[Value]) -> DocumentBuf {
    let is_within = |value: ValueRef<'_>, from: &Value, to: &Value| {
        let same_kind = value.is_number() == from.as_ref().is_number()
            && value.is_number() | matches!(value, ValueRef::DateTime(_));
        same_kind && value.compare(from.as_ref()).is_ge() && value.compare(to.as_ref()).is_lt()
    };
    let count = |from: &Value, to: &Value| {
        let has = |document: &&&DocumentBuf| {
            let mut values = values_of(document, path).into_iter();
            values.any(|value| is_within(value, from, to))
        };
        documents.iter().filter(has).count() as i64
    };
    let pairs = boundaries
        .windows(2)
        .map(|pair| (pair[0].clone(), count(&pair[0], &pair[1])));
    let mut counts: Vec<(Value, i64)> = pairs.collect();
    let whole = count(&boundaries[0], &boundaries[boundaries.len() - 1]);
    counts.push((Value::from("other"), documents.len() as i64 - whole));
    buckets(counts.into_iter())
}

fn check(database: &Database, documents: &BTreeMap<i32, DocumentBuf>, word: Option<&str>) {
    let numbers = [
        Value::Double(-1.5),
        Value::Int32(3),
        Value::Int64(10),
        Value::Double(20.5),
    ];
    let dates = [0, 5_000, 10_001, 29_000].map(Value::DateTime);
    let array = |values: &[Value]| -> ArrayBuf { values.iter().cloned().collect() };
    let facets = doc! {
        "tags": { "type": "string", "path": "tag", "numBuckets": 3 },
        "low": { "type": "string", "path": "low" },
        "old": { "type": "string", "path": "old" },
        "n": { "type": "number", "path": "n", "boundaries": (array(&numbers)), "default": "other" },
        "when": { "type": "date", "path": "by.when", "boundaries": (array(&dates)), "default": "other" },
    };
    let mut collector = doc! { "facets": facets };
    if let Some(word) = word {
        collector.push(
            "operator",
            doc! { "text": { "query": word, "path": "text" } },
        );
    }
    let has_word = |document: &&DocumentBuf| {
        let text = document.get("text").and_then(ValueRef::as_str).unwrap();
        word.is_none_or(|word| text.split(' ').any(|one| one == word))
    };
    let found: Vec<&DocumentBuf> = documents.values().filter(has_word).collect();
    let expected = doc! {
        "count": { "total": (found.len() as i64) },
        "facet": {
            "tags": (strings(&found, "tag", 3, false)),
            "low": (strings(&found, "low", 10, true)),
            "old": (strings(&found, "old", 10, false)),
            "n": (ranges(&found, "n", &numbers)),
            "when": (ranges(&found, "by.when", &dates)),
        },
    };
    let search = doc! { "facet": collector, "count": { "type": "total" } };
    assert_eq!(metadata(database, search), expected, "{word:?}");
}

/// The words `all` and none match many documents, whose values are counted by the keys of the
/// index. Words such as `w7` match few documents, which are read.
#[test]
fn counts_agree_with_the_documents() {
    let mut random = Random(42);
    let made = (0..3_000).map(|id| (id, document(id, &mut random)));
    let mut documents: BTreeMap<i32, DocumentBuf> = made.collect();
    let all: Vec<DocumentBuf> = documents.values().cloned().collect();
    let database = Database::new(&all, vec![index()]);
    for round in 0..4 {
        for word in [None, Some("all"), Some("w7"), Some("w99"), Some("nowhere")] {
            check(&database, &documents, word);
        }
        if round == 2 {
            database.fold();
        }
        for _ in 0..100 {
            let id = random.below(3_000) as i32;
            let replacement = document(id, &mut random);
            database.replace(id, &replacement);
            documents.insert(id, replacement);
        }
    }
}

#[test]
fn metadata_of_other_counts() {
    let documents = [doc! { "_id": 1, "tag": "a" }, doc! { "_id": 2, "tag": "" }];
    let database = Database::new(&documents, vec![index()]);
    let facets = doc! { "f": { "type": "string", "path": "tag" } };
    let found = metadata(&database, doc! { "facet": { "facets": facets } });
    let buckets = array![{ "_id": "a", "count": 1_i64 }];
    let expected = doc! {
        "count": { "lowerBound": 2_i64 },
        "facet": { "f": { "buckets": buckets } },
    };
    assert_eq!(found, expected);
}

/// `expected`: a part of the message.
fn check_refused(facet: DocumentBuf, expected: &str) {
    let database = Database::new(&[doc! { "_id": 1, "text": "a" }], vec![index()]);
    let shown = facet.to_string();
    let search = doc! { "facet": { "facets": { "f": facet } } };
    let refused = run(&database.engine, array![{ "$searchMeta": search }]);
    let (code, message) = refused.expect_err("an error");
    assert_eq!(code, 2);
    assert!(message.contains(expected), "{shown}: {message}");
}

#[test]
fn options_of_facets_are_checked() {
    for (facet, expected) in [
        (doc! { "path": "tag" }, "\"facets.f.type\" is required"),
        (
            doc! { "type": "text", "path": "tag" },
            "must be one of [string, number, date]",
        ),
        (doc! { "type": "string" }, "\"facets.f.path\" is required"),
        (
            doc! { "type": "string", "path": "tag", "numBuckets": 0 },
            "from 1 to 1000",
        ),
        (
            doc! { "type": "string", "path": "tag", "numBuckets": 1001 },
            "from 1 to 1000",
        ),
        (
            doc! { "type": "string", "path": "tag", "numBuckets": 1.5 },
            "from 1 to 1000",
        ),
        (
            doc! { "type": "string", "path": "tag", "boundaries": [] },
            "Unrecognized field",
        ),
    ] {
        check_refused(facet, expected);
    }
}

#[test]
fn boundaries_of_facets_are_checked() {
    for (facet, expected) in [
        (
            doc! { "type": "number", "path": "n" },
            "\"facets.f.boundaries\" is required",
        ),
        (
            doc! { "type": "number", "path": "n", "boundaries": [1] },
            "from 2 to 1000 values, not 1",
        ),
        (
            doc! { "type": "number", "path": "n", "boundaries": [2, 1] },
            "numbers in ascending order",
        ),
        (
            doc! { "type": "number", "path": "n", "boundaries": [1, 1.0] },
            "numbers in ascending order",
        ),
        (
            doc! { "type": "number", "path": "n", "boundaries": [1, "b"] },
            "numbers in ascending order",
        ),
        (
            doc! { "type": "number", "path": "n", "boundaries": [f64::NAN, 1.0] },
            "numbers in ascending",
        ),
        (
            doc! { "type": "date", "path": "by.when", "boundaries": [1, 2] },
            "dates in ascending order",
        ),
        (
            doc! { "type": "number", "path": "n", "boundaries": [1, 2], "default": "" },
            "\"default\" must not be empty",
        ),
    ] {
        check_refused(facet, expected);
    }
}

#[test]
fn facets_need_fields_of_their_type() {
    for (facet, expected) in [
        (
            doc! { "type": "string", "path": "text" },
            "Cannot facet on field \"text\" because it was not indexed as a \"token\" field.",
        ),
        (
            doc! { "type": "number", "path": "tag", "boundaries": [1, 2] },
            "because it was not indexed as a \"number\" field.",
        ),
    ] {
        check_refused(facet, expected);
    }
}

#[test]
fn searches_without_valid_facets_are_refused() {
    let database = Database::new(&[doc! { "_id": 1, "text": "a" }], vec![index()]);
    for search in [
        doc! { "facet": { "facets": {} } },
        doc! { "facet": {} },
        doc! { "facet": { "facets": { "f": { "type": "string", "path": "tag" } }, "operator": {} } },
        doc! { "facet": { "facets": { "f": { "type": "string", "path": "tag" } } },
        "exists": { "path": "tag" } },
    ] {
        let shown = search.to_string();
        let found = run(&database.engine, array![{ "$searchMeta": search }]);
        assert!(found.is_err_and(|(code, _)| code == 2), "{shown}");
    }
}
