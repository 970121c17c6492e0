//! `highlight` of `$search`: the hits and the passages. The first cases are the examples of
//! MongoDB's manual.

mod support;

use support::Database;
use support::search::{run, specification};
use windrow_document::{DocumentBuf, ValueRef, array, doc};

const APPLES: &str = "Apples come in several varieties, including Fuji, Granny Smith, and Honeycrisp. \
    The most popular varieties are McIntosh, Gala, and Granny Smith.";

fn fruit() -> Database {
    let documents = [
        doc! { "_id": 1, "summary": "Apple varieties", "description": APPLES },
        doc! { "_id": 2, "summary": "Banana",
        "description": "Bananas are usually sold in bunches of five or six." },
        doc! { "_id": 3, "summary": "Pear varieties",
        "description": "Bosc and Bartlett are the most common varieties of pears." },
    ];
    let definition = doc! { "analyzer": "lucene.english", "mappings": { "dynamic": true } };
    Database::new(&documents, vec![specification(definition)])
}

/// A path, texts with the hits in brackets, and a score.
type Shown = (String, String, f64);

/// Returns the highlights of each document by its `_id`.
fn highlights(database: &Database, search: DocumentBuf) -> Vec<(i64, Vec<Shown>)> {
    let stages = array![
        { "$search": search },
        { "$project": { "found": { "$meta": "searchHighlights" } } },
        { "$sort": { "_id": 1 } },
    ];
    let shown = |highlight: ValueRef<'_>| {
        let ValueRef::Document(highlight) = highlight else {
            panic!("{highlight:?}");
        };
        let mut text = String::new();
        for part in highlight.get("texts").unwrap().as_array().unwrap() {
            let part = part.as_document().unwrap();
            let value = part.get("value").unwrap().as_str().unwrap();
            match part.get("type").unwrap().as_str() {
                Some("hit") => text.extend(["[", value, "]"]),
                Some("text") => text.push_str(value),
                other => panic!("{other:?}"),
            }
        }
        let path = match highlight.get("path").unwrap() {
            ValueRef::String(path) => path.to_owned(),
            path => path.to_value().as_ref().to_string(),
        };
        (
            path,
            text,
            highlight.get("score").unwrap().as_f64().unwrap(),
        )
    };
    let rows = run(&database.engine, stages).unwrap();
    let row = |row: &DocumentBuf| {
        let found = row.get("found").unwrap().as_array().unwrap();
        let id = row.get("_id").unwrap().as_whole().unwrap();
        (id, found.iter().map(shown).collect())
    };
    rows.iter().map(row).collect()
}

/// Returns the texts without ids and scores.
fn texts(database: &Database, search: DocumentBuf) -> Vec<String> {
    let found = highlights(database, search).into_iter();
    let found = found.flat_map(|(_, highlights)| highlights);
    found
        .map(|(path, text, _)| format!("{path}: {text}"))
        .collect()
}

#[test]
fn passages_have_texts_hits_and_scores() {
    let database = fruit();
    let text = doc! { "path": "description", "query": ["variety", "bunch"] };
    let search = doc! { "text": text.clone(), "highlight": { "path": "description" } };
    let found = highlights(&database, search);
    let path = || "description".to_owned();
    let expected = [
        (
            1,
            "Apples come in several [varieties], including Fuji, Granny Smith, and Honeycrisp. ",
        ),
        (
            1,
            "The most popular [varieties] are McIntosh, Gala, and Granny Smith.",
        ),
        (2, "Bananas are usually sold in [bunches] of five or six."),
        (
            3,
            "Bosc and Bartlett are the most common [varieties] of pears.",
        ),
    ];
    let scores = [
        1.033_063_769_340_515_1,
        1.094_099_283_218_383_8,
        1.284_190_654_754_638_7,
        1.269_151_449_203_491_2,
    ];
    let all: Vec<_> = found
        .iter()
        .flat_map(|(id, all)| all.iter().map(move |one| (*id, one)))
        .collect();
    assert_eq!(all.len(), expected.len());
    for ((id, one), (expected, score)) in all.into_iter().zip(expected.into_iter().zip(scores)) {
        assert_eq!(
            (id, &one.0, one.1.as_str()),
            (expected.0, &path(), expected.1)
        );
        assert!((one.2 - score).abs() < 1e-6, "{} and {score}", one.2);
    }
    let highlight = doc! { "path": "description", "maxNumPassages": 1, "maxCharsToExamine": 40 };
    let found = highlights(&database, doc! { "text": text, "highlight": highlight });
    let shown = |at: usize| {
        found[at]
            .1
            .iter()
            .map(|one| one.1.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(0), ["Apples come in several [varieties], includ"]);
    assert_eq!(shown(1), ["Bananas are usually sold in [bunches] of f"]);
    assert_eq!(shown(2), [""; 0]);
}

#[test]
fn other_fields_are_highlighted_in_the_order_of_their_paths() {
    let database = fruit();
    for path in [
        doc! { "path": ["summary", "description"] },
        doc! { "path": { "wildcard": "*" } },
        doc! { "path": ["description", { "wildcard": "s*" }, "summary"] },
    ] {
        let text = doc! { "path": "description", "query": "bosc variety" };
        let search = doc! { "compound": { "must": [{ "text": text }],
        "filter": [{ "text": { "path": "summary", "query": "pear" } }] }, "highlight": path };
        let found = texts(&database, search);
        let expected = [
            "description: [Bosc] and Bartlett are the most common [varieties] of [pears].",
            "summary: [Pear] [varieties]",
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn hits_are_what_matches() {
    let documents = [doc! {
        "_id": 1, "n": 5, "k": "Hot coffee",
        "t": ["Hot coffee. A hot tea, coffee hot", 5, "coffee", "Iced COFFEE! Coffee beans"],
        "by": [{ "name": "Ann Hot" }, { "name": "Bo" }],
    }];
    let keyword = doc! { "type": "string", "analyzer": "lucene.keyword" };
    let t = doc! { "type": "string", "multi": { "simple": { "type": "string",
    "analyzer": "lucene.simple" } } };
    let fields = doc! { "k": keyword, "t": t, "tag": { "type": "token" } };
    let definition = doc! { "mappings": { "dynamic": true, "fields": fields } };
    let database = Database::new(&documents, vec![specification(definition)]);
    let check = |operator: DocumentBuf, path: DocumentBuf, expected: &[&str]| {
        let mut search = operator;
        let path = path.get("path").map(ValueRef::to_value).unwrap();
        search.push("highlight", doc! { "path": path });
        let shown = search.to_string();
        assert_eq!(texts(&database, search), expected, "{shown}");
    };
    let t = || doc! { "path": "t" };
    // The words of a phrase are hits only where the whole phrase occurs.
    check(
        doc! { "phrase": { "path": "t", "query": "hot coffee" } },
        t(),
        &["t: [Hot] [coffee]. "],
    );
    check(
        doc! { "phrase": { "path": "t", "query": "tea hot", "slop": 1 } },
        t(),
        &["t: A hot [tea], coffee [hot]"],
    );
    check(
        doc! { "wildcard": { "path": "t", "query": "i?ed", "allowAnalyzedField": true } },
        t(),
        &["t: [Iced] COFFEE! "],
    );
    check(
        doc! { "text": { "path": "t", "query": "ited", "fuzzy": { "maxEdits": 1 } } },
        t(),
        &["t: [Iced] COFFEE! "],
    );
    check(
        doc! { "queryString": { "defaultPath": "t", "query": "be*s AND NOT ann" } },
        t(),
        &["t: Coffee [beans]"],
    );
    check(
        doc! { "regex": { "path": "k", "query": "Hot .*" } },
        doc! { "path": ["k", "by.name"] },
        &["k: [Hot coffee]"],
    );
    check(
        doc! { "text": { "path": "t", "query": "hot" } },
        doc! { "path": "by.name" },
        &["by.name: Ann [Hot]"],
    );
    check(
        doc! { "text": { "path": "t", "query": "tea" } },
        doc! { "path": { "value": "t", "multi": "simple" } },
        &[r#"{"value":"t","multi":"simple"}: A hot [tea], coffee hot"#],
    );
    // Prohibited terms and values that are not text have no hits.
    let not = doc! { "compound": { "mustNot": [{ "text": { "path": "t", "query": "milk" } }] } };
    check(not, t(), &[]);
    check(doc! { "equals": { "path": "n", "value": 5 } }, t(), &[]);
    check(doc! { "exists": { "path": "t" } }, t(), &[]);
}

#[test]
fn what_is_not_valid_is_refused() {
    let definition = doc! { "mappings": { "fields": { "t": { "type": "string" },
    "k": { "type": "token" } } } };
    let database = Database::new(
        &[doc! { "_id": 1, "t": "a" }],
        vec![specification(definition)],
    );
    for highlight in [
        doc! {},
        doc! { "path": [] },
        doc! { "path": "k" },
        doc! { "path": "none" },
        doc! { "path": { "value": "t", "multi": "none" } },
        doc! { "path": "t", "maxNumPassages": 0 },
        doc! { "path": "t", "maxNumPassages": 1.5 },
        doc! { "path": "t", "maxCharsToExamine": (-1) },
        doc! { "path": "t", "maxCharsToExamine": "5" },
        doc! { "path": "t", "more": 1 },
    ] {
        let shown = highlight.to_string();
        let text = doc! { "path": "t", "query": "a" };
        let search = doc! { "text": text, "highlight": highlight };
        let found = run(&database.engine, array![{ "$search": search }]);
        assert_eq!(found.map_err(|error| error.0), Err(2), "{shown}");
    }
    // Without the option there are no highlights.
    let stages = array![
        { "$search": { "text": { "path": "t", "query": "a" } } },
        { "$project": { "found": { "$meta": "searchHighlights" } } },
    ];
    assert_eq!(run(&database.engine, stages).unwrap(), [doc! { "_id": 1 }]);
}

#[test]
fn long_texts_have_their_best_passages() {
    let text = "Nothing here. ".repeat(5_000) + &"A hit here! ".repeat(3_000);
    let database = Database::new(
        &[doc! { "_id": 1, "t": (text.as_str()) }],
        vec![specification(doc! { "mappings": { "dynamic": true } })],
    );
    let search = |passages: i32| {
        let highlight = doc! { "path": "t", "maxNumPassages": passages };
        doc! { "text": { "path": "t", "query": "hit" }, "highlight": highlight }
    };
    assert_eq!(texts(&database, search(2)), ["t: A [hit] here! "; 2]);
    assert_eq!(texts(&database, search(10_000)).len(), 3_000);
}
