//! `scoreDetails` of `$search`: explanations of scores. The descriptions are those of MongoDB's
//! manual.

mod support;

use support::Database;
use support::search::{run, specification};
use windrow_document::{Document, DocumentBuf, ValueRef, array, doc};

fn database() -> Database {
    let text = |id: i32| match id {
        0 => "Autumn Leaves".to_owned(),
        id => format!(
            "{}coffee tea {}",
            "autumn ".repeat((id % 3) as usize),
            id % 7
        ),
    };
    let documents: Vec<DocumentBuf> = (0..300)
        .map(|id| doc! { "_id": id, "title": (text(id).as_str()), "year": (2000 + id % 20) })
        .collect();
    let definition = doc! { "mappings": { "dynamic": true } };
    Database::new(&documents, vec![specification(definition)])
}

/// Collects the lines of an explanation: value and description, indented by depth.
fn lines(details: Document<'_>, depth: usize, into: &mut Vec<String>) {
    let value = details.get("value").and_then(ValueRef::as_f64).unwrap();
    let description = details.get("description").unwrap();
    let description = description.as_str().unwrap();
    into.push(format!("{}{value:.3} {description}", " ".repeat(depth)));
    for detail in details.get("details").unwrap().as_array().unwrap() {
        lines(detail.as_document().unwrap(), depth + 1, into);
    }
}

/// Returns the explanations by `_id`. Checks that the score of each document is the value of its
/// explanation, and that the values of sums are the sums of their parts.
fn explained(database: &Database, mut search: DocumentBuf) -> Vec<(i64, Vec<String>)> {
    search.push("scoreDetails", true);
    let stages = array![
        { "$search": search },
        { "$project": { "score": { "$meta": "searchScore" },
            "details": { "$meta": "searchScoreDetails" }, "same": { "$meta": "scoreDetails" } } },
    ];
    let rows = run(&database.engine, stages).unwrap();
    let row = |row: &DocumentBuf| {
        let details = row.get("details").unwrap().as_document().unwrap();
        assert_eq!(row.get("score"), details.get("value"));
        assert_eq!(row.get("same"), row.get("details"));
        let mut found = Vec::new();
        lines(details, 0, &mut found);
        (row.get("_id").unwrap().as_whole().unwrap(), found)
    };
    rows.iter().map(row).collect()
}

#[test]
fn terms_are_explained_by_bm25() {
    let database = database();
    let text = doc! { "path": "title", "query": "leaves" };
    let found = explained(&database, doc! { "text": text });
    let expected = [
        "3.028 $type:string/title:leaves [BM25Similarity], result of:",
        " 3.028 score(freq=1.0), computed as boost * idf * tf from:",
        "  5.302 idf, computed as log(1 + (N - n + 0.5) / (n + 0.5)) from:",
        "   1.000 n, number of documents containing term",
        "   300.000 N, total number of documents with field",
        "  0.589 tf, computed as freq / (freq + k1 * (1 - b + b * dl / avgdl)) from:",
        "   1.000 freq, occurrences of term within document",
        "   1.200 k1, term saturation parameter",
        "   0.750 b, length normalization parameter",
        "   2.000 dl, length of field",
        "   3.993 avgdl, average length of field",
    ];
    let [(0, lines)] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(lines[..5], expected[..5]);
    assert_eq!(lines.len(), expected.len());
    let text_of = |line: &str| line.trim_start().split_once(' ').unwrap().1.to_owned();
    for (line, expected) in lines.iter().zip(expected) {
        assert_eq!(text_of(line), text_of(expected));
    }
}

/// More documents than are explained together, in the order of their scores.
#[test]
fn all_documents_are_explained() {
    let database = database();
    let text = doc! { "path": "title", "query": "autumn coffee leaves", "fuzzy": { "maxEdits": 1 },
    "score": { "boost": { "value": 2.5 } } };
    let found = explained(&database, doc! { "text": text });
    assert_eq!(found.len(), 300);
    assert!(
        found
            .iter()
            .all(|(_, lines)| lines[0].ends_with(" sum of:"))
    );
    let boosts = found.iter().filter(|(_, lines)| {
        let mut lines = lines.iter();
        lines.any(|line| line.ends_with("2.500 boost"))
    });
    assert_eq!(boosts.count(), 300);
}

#[test]
fn compounds_are_sums_of_their_clauses() {
    let database = database();
    let compound = doc! {
        "filter": [{ "text": { "path": "title", "query": "coffee" } }],
        "must": [{ "range": { "path": "year", "gte": 2001, "lt": 2002 } }],
        "should": [
            { "phrase": { "path": "title", "query": "coffee tea" } },
            { "wildcard": { "path": "title", "query": "t?a", "allowAnalyzedField": true,
                "score": { "constant": { "value": 3 } } } },
        ],
        "mustNot": [{ "text": { "path": "title", "query": "leaves" } }],
    };
    let found = explained(&database, doc! { "compound": compound });
    assert_eq!(found.len(), 15);
    for (_, lines) in &found {
        let has = |text: &str| lines.iter().any(|line| line.trim_start() == text);
        assert!(lines[0].ends_with(" sum of:"), "{lines:?}");
        assert_eq!(lines[1], " 0.000 match on required clause, product of:");
        assert_eq!(lines[2], "  0.000 # clause");
        assert_eq!(lines[3], "  1.000 $type:string/title:coffee");
        assert!(has("1.000 year:[2001 TO 2002}"), "{lines:?}");
        assert!(
            has("3.000 constant($type:string/title:wildcard(t?a))^3"),
            "{lines:?}"
        );
        let phrase = " $type:string/title:\"coffee tea\" [BM25Similarity], result of:";
        assert!(lines.iter().any(|line| line.ends_with(phrase)), "{lines:?}");
        assert!(has("1.000 phraseFreq=1.0"), "{lines:?}");
    }
}
