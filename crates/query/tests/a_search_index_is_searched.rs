//! `$search` and `$searchMeta` on a search index: which documents the operators find, and in which
//! order.

mod support;

use std::sync::Arc;

use support::Database;
use support::search::{self, specification};
use windrow_collection::Engine;
use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, array, doc};
use windrow_mql::filter::Environment;
use windrow_query::Pipeline;

fn dynamic() -> DocumentBuf {
    specification(doc! { "mappings": { "dynamic": true } })
}

fn run(engine: &Arc<Engine>, stages: ArrayBuf) -> Result<Vec<DocumentBuf>, i32> {
    search::run(engine, stages).map_err(|(code, _)| code)
}

/// Returns the ids that a search finds, the best first.
fn found(database: &Database, search: DocumentBuf) -> Result<Vec<i32>, i32> {
    let rows = run(&database.engine, array![{ "$search": search }])?;
    let id = |row: &DocumentBuf| match row.get("_id") {
        Some(ValueRef::Int32(id)) => id,
        other => panic!("{other:?}"),
    };
    Ok(rows.iter().map(id).collect())
}

fn sorted(database: &Database, search: DocumentBuf) -> Result<Vec<i32>, i32> {
    let mut ids = found(database, search)?;
    ids.sort_unstable();
    Ok(ids)
}

fn documents() -> Vec<DocumentBuf> {
    vec![
        doc! { "_id": 0, "title": "Coffee and cakes", "n": 5, "tag": "Food",
        "by": { "name": "Ann Lee" } },
        doc! { "_id": 1, "title": "The coffee shop", "n": 7.5, "tag": "Place" },
        doc! { "_id": 2, "title": ["Tea", "a shop for coffee beans and more coffee"], "n": 12 },
        doc! { "_id": 3, "title": "Cold brew", "n": (-3), "tag": "Food", "gone": Value::Null },
        doc! { "_id": 4, "text": "coffee coffee coffee", "when": (Value::DateTime(1_000)) },
        doc! { "_id": 5 },
    ]
}

fn check(database: &Database, search: DocumentBuf, expected: &[i32]) {
    let shown = search.to_string();
    assert_eq!(sorted(database, search), Ok(expected.to_vec()), "{shown}");
}

#[test]
fn words_are_found_in_their_paths() {
    let database = Database::new(&documents(), vec![dynamic()]);
    check(
        &database,
        doc! { "text": { "query": "coffee", "path": "title" } },
        &[0, 1, 2],
    );
    check(
        &database,
        doc! { "text": { "query": "COFFEE cold", "path": "title" } },
        &[0, 1, 2, 3],
    );
    check(
        &database,
        doc! { "text": { "query": ["cakes", "brew"], "path": ["title", "text"] } },
        &[0, 3],
    );
    check(
        &database,
        doc! { "text": { "query": "coffee shop", "path": "title", "matchCriteria": "all" } },
        &[1, 2],
    );
    check(
        &database,
        doc! { "text": { "query": "coffee", "path": { "wildcard": "t*" } } },
        &[0, 1, 2, 4],
    );
    check(
        &database,
        doc! { "text": { "query": "lee", "path": "by.name" } },
        &[0],
    );
    check(
        &database,
        doc! { "text": { "query": "cofee", "path": "title", "fuzzy": { "maxEdits": 1 } } },
        &[0, 1, 2],
    );
}

#[test]
fn phrases_are_found() {
    let database = Database::new(&documents(), vec![dynamic()]);
    check(
        &database,
        doc! { "phrase": { "query": "coffee shop", "path": "title" } },
        &[1],
    );
    check(
        &database,
        doc! { "phrase": { "query": "shop coffee", "path": "title", "slop": 1 } },
        &[2],
    );
    check(
        &database,
        doc! { "phrase": { "query": "tea a shop", "path": "title" } },
        &[],
    );
}

#[test]
fn patterns_are_found_in_analyzed_fields() {
    let database = Database::new(&documents(), vec![dynamic()]);
    let wildcard = doc! { "query": "c?ke*", "path": "title", "allowAnalyzedField": true };
    check(&database, doc! { "wildcard": wildcard }, &[0]);
    let regex = doc! { "query": "(tea|bre.)", "path": "title", "allowAnalyzedField": true };
    check(&database, doc! { "regex": regex }, &[2, 3]);
}

#[test]
fn values_are_found() {
    let database = Database::new(&documents(), vec![dynamic()]);
    check(
        &database,
        doc! { "range": { "path": "n", "gte": 5, "lt": 12 } },
        &[0, 1],
    );
    check(
        &database,
        doc! { "range": { "path": "n", "gt": 5 } },
        &[1, 2],
    );
    check(
        &database,
        doc! { "range": { "path": "n", "lte": 5 } },
        &[0, 3],
    );
    check(
        &database,
        doc! { "range": { "path": "when", "gte": (Value::DateTime(1)) } },
        &[4],
    );
    check(
        &database,
        doc! { "equals": { "path": "n", "value": 12 } },
        &[2],
    );
    check(
        &database,
        doc! { "in": { "path": "n", "value": [5, 7.5, 8] } },
        &[0, 1],
    );
    check(
        &database,
        doc! { "equals": { "path": "gone", "value": Value::Null } },
        &[3],
    );
    check(&database, doc! { "exists": { "path": "tag" } }, &[0, 1, 3]);
    check(&database, doc! { "exists": { "path": "by" } }, &[0]);
}

#[test]
fn compound_queries_combine_their_clauses() {
    let database = Database::new(&documents(), vec![dynamic()]);
    let text = |word: &str| doc! { "text": { "query": word, "path": "title" } };
    check(
        &database,
        doc! { "compound": { "must": [text("coffee")], "mustNot": [text("shop")] } },
        &[0],
    );
    check(
        &database,
        doc! { "compound": { "mustNot": [text("coffee")] } },
        &[3, 4, 5],
    );
    check(
        &database,
        doc! { "compound": { "should": [text("cold"), text("tea"), text("shop")],
        "minimumShouldMatch": 2 } },
        &[2],
    );
    check(
        &database,
        doc! { "compound": { "filter": [{ "range": { "path": "n", "gt": 6 } }],
        "must": [text("shop")] } },
        &[1, 2],
    );
}

#[test]
fn query_strings_are_searched() {
    let database = Database::new(&documents(), vec![dynamic()]);
    let query_string =
        |query: &str| doc! { "queryString": { "defaultPath": "title", "query": query } };
    check(&database, query_string("coffee AND (shop OR tea)"), &[1, 2]);
    check(&database, query_string("coffee -shop"), &[0]);
    check(
        &database,
        query_string("\"coffee shop\" OR text:coffee"),
        &[1, 4],
    );
    check(
        &database,
        query_string("title:c?ke* OR by.name:[kim TO lee]"),
        &[0],
    );
    check(
        &database,
        query_string("cofee~1 AND NOT /be[a-n]+s/"),
        &[0, 1],
    );
    check(&database, query_string("*:* -coffee"), &[3, 4, 5]);
    check(&database, query_string("n:5"), &[]);
}

#[test]
fn an_index_that_does_not_exist_finds_nothing() {
    let database = Database::new(&documents(), vec![dynamic()]);
    check(
        &database,
        doc! { "index": "other", "text": { "query": "coffee", "path": "title" } },
        &[],
    );
}

/// Lucene's score of a term that one of two records contains: with k1 = 1.2 and b = 0.75 the
/// inverse document frequency is ln(1 + 1.5 / 1.5) = ln 2.
#[test]
fn scores_are_those_of_bm25() {
    let documents = [
        doc! { "_id": 0, "t": "one two three four" },
        doc! { "_id": 1, "t": "five six" },
    ];
    let database = Database::new(&documents, vec![dynamic()]);
    let stages = array![
        { "$search": { "text": { "query": "two", "path": "t" } } },
        { "$project": { "score": { "$meta": "searchScore" } } },
    ];
    let rows = run(&database.engine, stages).unwrap();
    let score = rows[0].get("score").and_then(ValueRef::as_f64).unwrap();
    let norm = 1.2 * (0.25 + 0.75 * 4.0 / 3.0);
    let expected = 2_f64.ln() / (1.0 + norm);
    assert!((score - expected).abs() < 1e-6, "{score} and {expected}");
}

/// A fuzzy word counted as a word that only one record contains, so its score was too high.
#[test]
fn words_with_errors_are_as_rare_as_they_are() {
    let text = |id: i32| if id < 40 { "coffee with milk" } else { "tea" };
    let documents: Vec<DocumentBuf> = (0..100)
        .map(|id| doc! { "_id": id, "t": (text(id)) })
        .collect();
    let database = Database::new(&documents, vec![dynamic()]);
    let scores = |operator: DocumentBuf| -> Vec<f64> {
        let score = doc! { "$meta": "searchScore" };
        let stages = array![
            { "$search": { "text": operator } }, { "$project": { "score": score } },
        ];
        let rows = run(&database.engine, stages).unwrap();
        let score = |row: &DocumentBuf| row.get("score").and_then(ValueRef::as_f64).unwrap();
        rows.iter().map(score).collect()
    };
    let exact = scores(doc! { "query": "coffee", "path": "t" });
    assert_eq!(exact.len(), 40);
    let fuzzy = doc! { "query": "coffee", "path": "t", "fuzzy": { "maxEdits": 1 } };
    assert_eq!(scores(fuzzy), exact);
}

#[test]
fn the_best_come_first_and_limits_change_nothing() {
    let text = |id: i32| "coffee ".repeat(1 + (id * 7 % 5) as usize) + &"tea ".repeat(3);
    let documents: Vec<DocumentBuf> = (0..900)
        .map(|id| doc! { "_id": id, "t": (text(id).as_str()) })
        .collect();
    let database = Database::new(&documents, vec![dynamic()]);
    let search = || doc! { "text": { "query": "coffee", "path": "t" } };
    let all = found(&database, search()).unwrap();
    assert_eq!(all.len(), 900);
    let repeats = |id: &i32| id * 7 % 5;
    assert!(all.is_sorted_by(|one, other| repeats(one) >= repeats(other)));
    for limit in [1, 10, 300] {
        let stages = array![{ "$search": search() }, { "$limit": limit }];
        let rows = run(&database.engine, stages).unwrap();
        let ids = rows.iter().filter_map(|row| row.get("_id")?.as_whole());
        assert!(ids.eq(all.iter().take(limit as usize).map(|id| i64::from(*id))));
    }
    let count = |kind: &str| {
        let mut search = search();
        search.push("count", doc! { "type": kind });
        run(&database.engine, array![{ "$searchMeta": search }]).unwrap()
    };
    assert_eq!(count("total"), [doc! { "count": { "total": 900_i64 } }]);
    assert_eq!(
        count("lowerBound"),
        [doc! { "count": { "lowerBound": 900_i64 } }]
    );
}

/// Terms that occur in one document only are not searched, and frequent terms have less weight.
#[test]
fn documents_like_others_are_found() {
    let documents: Vec<DocumentBuf> = (0..60)
        .map(|id| {
            let rare = ["tea", "milk", "water"][id as usize / 20];
            let text = format!("coffee with {rare} only{id}");
            let name = format!("name{}", id % 3);
            doc! { "_id": id, "t": (text.as_str()), "by": { "name": (name.as_str()) } }
        })
        .collect();
    let database = Database::new(&documents, vec![dynamic()]);
    let like = |like: DocumentBuf| doc! { "moreLikeThis": like };
    let all = like(doc! { "like": { "t": "Milk with coffee" } });
    let all = found(&database, all).unwrap();
    assert_eq!(all.len(), 60);
    assert!(
        all.iter().take(20).all(|id| (20..40).contains(id)),
        "{all:?}"
    );
    let check = |search: DocumentBuf, expected: usize| {
        let shown = search.to_string();
        let count = found(&database, search).map(|ids| ids.len());
        assert_eq!(count, Ok(expected), "{shown}");
    };
    check(like(doc! { "like": { "t": "only5" } }), 0);
    check(like(doc! { "like": { "t": "none", "n": 5 } }), 0);
    check(like(doc! { "like": { "by": { "name": ["name1"] } } }), 20);
    check(
        like(doc! { "like": [{ "t": "milk" }, { "t": "only5 tea", "_id": 5 }] }),
        40,
    );
    let not = doc! { "compound": {
        "must": [like(doc! { "like": { "t": "milk" } })],
        "mustNot": [{ "equals": { "path": "_id", "value": 25 } }],
    } };
    check(not, 19);
}

#[test]
fn what_is_not_valid_is_refused() {
    let database = Database::new(&documents(), vec![dynamic()]);
    let text = || doc! { "query": "a", "path": "title" };
    for search in [
        doc! {},
        doc! { "text": text(), "phrase": text() },
        doc! { "text": { "query": "a" } },
        doc! { "text": { "query": [], "path": "title" } },
        doc! { "text": { "query": 5, "path": "title" } },
        doc! { "text": { "query": "a", "path": "title", "more": 1 } },
        doc! { "text": { "query": "a", "path": "title", "fuzzy": { "maxEdits": 3 } } },
        doc! { "wildcard": { "query": "a*", "path": "title" } },
        doc! { "range": { "path": "n" } },
        doc! { "range": { "path": "n", "gt": 1, "gte": 1 } },
        doc! { "range": { "path": "n", "gt": 1, "lt": "a" } },
        doc! { "compound": {} },
        doc! { "compound": { "should": [], "minimumShouldMatch": 1, "must": [{ "text": text() }] } },
        doc! { "autocomplete": text() },
        doc! { "near": { "path": "n", "origin": "a", "pivot": 1 } },
        doc! { "near": { "path": "n", "origin": 1, "pivot": 0 } },
        doc! { "near": { "path": "n", "origin": (f64::NAN), "pivot": 1 } },
        doc! { "queryString": { "defaultPath": "title", "query": "a AND" } },
        doc! { "queryString": { "defaultPath": "title", "query": "" } },
        doc! { "queryString": { "query": "a" } },
        doc! { "queryString": { "defaultPath": ["title"], "query": "a" } },
        doc! { "queryString": { "defaultPath": "title", "query": "/[/" } },
        doc! { "nonsense": text() },
        doc! { "moreLikeThis": {} },
        doc! { "moreLikeThis": { "like": [] } },
        doc! { "moreLikeThis": { "like": ["a"] } },
        doc! { "moreLikeThis": { "like": { "title": "a" }, "path": "title" } },
        doc! { "text": text(), "count": { "type": "all" } },
        doc! { "text": { "query": "a", "path": "title", "synonyms": "s" } },
        doc! { "phrase": { "query": "a", "path": "title", "synonyms": "s" } },
        doc! { "text": text(), "returnStoredSource": true },
    ] {
        let shown = search.to_string();
        assert_eq!(found(&database, search), Err(2), "{shown}");
    }
    let late = array![{ "$match": {} }, { "$search": { "text": text() } }];
    assert_eq!(run(&database.engine, late), Err(40602));
}

fn scored(score: DocumentBuf) -> DocumentBuf {
    doc! { "text": { "query": "a", "path": "title", "score": score } }
}

#[test]
fn what_is_not_supported_is_named() {
    for (search, part) in [
        (doc! { "span": {} }, "span"),
        (doc! { "vectorSearch": {} }, "vectorSearch"),
        (scored(doc! { "embedded": {} }), "embedded"),
    ] {
        let stages = array![{ "$search": search }];
        let pipeline = Pipeline::parse(stages.as_array(), &Environment::default());
        let message = pipeline
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        let is_named = message.contains(part) && message.ends_with("is not supported");
        assert!(is_named, "{message}");
    }
}

#[test]
fn invalid_scores_are_refused() {
    let database = Database::new(&documents(), vec![dynamic()]);
    for score in [
        doc! { "function": {} },
        doc! { "function": { "score": "x" } },
        doc! { "function": { "add": [{ "constant": 1 }] } },
        doc! { "function": { "other": 1 } },
        doc! { "function": { "constant": (f64::NAN) } },
        doc! { "function": { "gauss": { "path": "n", "origin": 1 } } },
        doc! { "function": { "gauss": { "path": "n", "origin": 1, "scale": 0 } } },
        doc! { "function": { "gauss": { "path": "n", "origin": 1, "scale": 1, "decay": 1 } } },
        doc! { "boost": { "path": "n", "value": 2 } },
        doc! { "boost": { "value": 2 }, "constant": { "value": 1 } },
    ] {
        let shown = score.to_string();
        assert_eq!(found(&database, scored(score)), Err(2), "{shown}");
    }
}
