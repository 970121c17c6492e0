//! Random texts that are written, replaced and folded, and random searches: the records, the scores
//! and the best records agree with those computed from all documents.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use support::{Database, Random};
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_mql::sort::Sort;
use windrow_query::{Count, ExplainedCommand, Find, Source, Uninterrupted, Verbosity};
use windrow_text::{DocumentTerms, Language, Matcher, Query, Sensitivity, TextVersion};

/// A few words are in most texts, many words in few.
const WORDS: [&str; 24] = [
    "the", "of", "data", "index", "search", "word", "Café", "log", "fold", "merge", "tail", "run",
    "block", "page", "cursor", "snapshot", "posting", "list", "union", "phrase", "weight", "field",
    "query", "plan",
];

fn word(random: &mut Random) -> &'static str {
    let limit = 1 + random.below(WORDS.len() as u64);
    WORDS[random.below(limit) as usize]
}

fn text(random: &mut Random) -> String {
    let words = match random.below(20) {
        0 => 1,
        1 => 300,
        _ => 3 + random.below(20),
    };
    let words: Vec<&str> = (0..words).map(|_| word(random)).collect();
    words.join(if random.below(3) == 0 { ", " } else { " " })
}

fn document(id: i32, random: &mut Random) -> DocumentBuf {
    let mut number = || random.below(100) as i32;
    let (one, other) = (number(), number());
    let mut document = doc! { "_id": id, "t": (text(random).as_str()), "n": one };
    match random.below(10) {
        0 => document.push("m", vec![Value::Int32(one), Value::Int32(other)]),
        _ => document.push("m", other),
    }
    document
}

fn search(random: &mut Random) -> String {
    let mut parts = Vec::new();
    for _ in 0..1 + random.below(3) {
        parts.push(match random.below(9) {
            0 => format!("\"{} {}\"", word(random), word(random)),
            1 | 2 => format!("-{}", word(random)),
            3 => "nowhere".to_owned(),
            _ => word(random).to_owned(),
        });
    }
    parts.join(" ")
}

/// Computes the matching records and their scores from the texts.
fn expected(documents: &[DocumentBuf], search: &str, version: TextVersion) -> BTreeMap<i32, f64> {
    let query = Query::parse(search, Language::NONE, Sensitivity::NONE, version);
    let (mut matcher, mut terms) = (Matcher::new(&query), DocumentTerms::new(version));
    let mut found = BTreeMap::new();
    for (id, document) in documents.iter().enumerate() {
        let text = document.get("t").and_then(ValueRef::as_str).unwrap();
        terms.clear();
        terms.add(text, 1.0, Language::NONE);
        let scores: BTreeMap<&str, f64> = terms.iter().collect();
        let own = query
            .terms()
            .iter()
            .filter_map(|it| scores.get(it.as_str()));
        let is_candidate = own.clone().next().is_some();
        if is_candidate && matcher.matches([(text, Language::NONE)]) {
            found.insert(id as i32, own.sum());
        }
    }
    found
}

/// A condition that the indexes on n and m answer completely, in part, or not at all.
fn condition(random: &mut Random) -> DocumentBuf {
    let number = random.below(100) as i32;
    match random.below(7) {
        0 => doc! { "n": number },
        1 => doc! { "n": { "$gte": number, "$lt": (number + 5) } },
        2 => doc! { "m": number },
        3 => doc! { "m": { "$gt": number, "$lt": (number + 9) } },
        4 => doc! { "n": { "$lt": number }, "t": { "$regex": "data" } },
        5 => doc! { "$or": [{ "n": number }, { "m": { "$gt": 97 } }] },
        _ => doc! { "t": { "$regex": "data" } },
    }
}

fn find(search: &str, sorted: bool, limit: Option<u64>) -> Find {
    find_among(search, &DocumentBuf::new(), sorted, limit)
}

fn find_among(search: &str, condition: &DocumentBuf, sorted: bool, limit: Option<u64>) -> Find {
    let mut filter = doc! { "$text": { "$search": search } };
    for (name, value) in condition.iter() {
        filter.push(name, value);
    }
    let mut find = Find::new(Filter::parse(filter.as_document()).unwrap());
    if sorted {
        let order = doc! { "score": { "$meta": "textScore" } };
        find.sort = Some(Sort::parse(order.as_document()).unwrap());
    }
    find.limit = limit;
    find
}

/// Returns ids and scores in the order of the rows.
fn run(source: &Arc<dyn Source>, find: &Find) -> Vec<i32> {
    let mut cursor = find.clone().open(source).unwrap();
    let mut found = Vec::new();
    while let Some(row) = cursor.next(&Uninterrupted).unwrap() {
        match row.as_document().get("_id") {
            Some(ValueRef::Int32(id)) => found.push(id),
            other => panic!("{other:?}"),
        }
    }
    found
}

fn check(
    database: &Database,
    documents: &[DocumentBuf],
    version: TextVersion,
    random: &mut Random,
) {
    let source = database.source();
    for _ in 0..12 {
        let search = search(random);
        let expected = expected(documents, &search, version);
        let mut found = run(&source, &find(&search, false, None));
        found.sort_unstable();
        assert!(found.iter().eq(expected.keys()), "{search}");
        let mut all = run(&source, &find(&search, true, None));
        let scores: Vec<f64> = all.iter().map(|id| expected[id]).collect();
        assert!(scores.is_sorted_by(|one, other| one >= other), "{search}");
        for limit in [1, 3, 10, 100] {
            let best = run(&source, &find(&search, true, Some(limit)));
            assert_eq!(
                best,
                all[..all.len().min(limit as usize)],
                "{limit} of {search}: {:?} and {:?}",
                best.iter().map(|id| expected.get(id)).collect::<Vec<_>>(),
                &scores[..scores.len().min(limit as usize)],
            );
        }
        let count = Count {
            filter: find(&search, false, None).filter,
            skip: 0,
            limit: None,
            hint: None,
        };
        let count = count.run(&source, &Uninterrupted, |_| {}).unwrap();
        assert_eq!(count, all.len() as u64, "{search}");
        all.sort_unstable();
        assert_eq!(all, found);
        check_among(&source, (&search, &condition(random)), &expected, documents);
    }
}

/// Checks that a search with a condition has the same result as the search whose rows are filtered
/// afterwards, in the same order.
fn check_among(
    source: &Arc<dyn Source>,
    (search, condition): (&str, &DocumentBuf),
    expected: &BTreeMap<i32, f64>,
    documents: &[DocumentBuf],
) {
    let filter = Filter::parse(condition.as_document()).unwrap();
    let fulfils = |id: &i32| {
        let document = documents[*id as usize].as_document();
        filter.matches(document).unwrap()
    };
    let alone = run(source, &find(search, true, None));
    assert_eq!(alone.len(), expected.len());
    let wanted: Vec<i32> = alone.into_iter().filter(fulfils).collect();
    for limit in [None, Some(2), Some(20)] {
        let found = run(source, &find_among(search, condition, true, limit));
        let most = limit.map_or(wanted.len(), |limit| wanted.len().min(limit as usize));
        assert_eq!(found, wanted[..most], "{search} {condition:?} {limit:?}");
    }
    let count = Count {
        filter: find_among(search, condition, false, None).filter,
        skip: 0,
        limit: None,
        hint: None,
    };
    let count = count.run(source, &Uninterrupted, |_| {}).unwrap();
    assert_eq!(count, wanted.len() as u64, "{search} {condition:?}");
}

fn check_all(seed: u64, specification: DocumentBuf, version: TextVersion) {
    let mut random = Random(seed);
    let mut documents: Vec<DocumentBuf> = (0..1_500).map(|id| document(id, &mut random)).collect();
    let indexes = vec![
        specification,
        doc! { "key": { "n": 1 }, "name": "n" },
        doc! { "key": { "m": -1 }, "name": "m" },
    ];
    let database = Database::new(&documents, indexes);
    for round in 0..4 {
        check(&database, &documents, version, &mut random);
        for _ in 0..150 {
            let id = random.below(documents.len() as u64) as i32;
            documents[id as usize] = document(id, &mut random);
            database.replace(id, &documents[id as usize]);
        }
        check(&database, &documents, version, &mut random);
        if round != 1 {
            database.fold();
        }
    }
    check(&database, &documents, version, &mut random);
}

#[test]
fn searches_agree_with_reading_all_documents() {
    let index = |options: DocumentBuf| {
        let mut index = doc! { "key": { "t": "text" }, "name": "t", "default_language": "none" };
        options
            .iter()
            .for_each(|(name, value)| index.push(name, value));
        index
    };
    check_all(0x9E37_79B9_7F4A_7C15, index(doc! {}), TextVersion::V3);
    check_all(
        0x1234_5678_9ABC_DEF1,
        index(doc! { "positions": false }),
        TextVersion::V3,
    );
    check_all(
        0x0BAD_CAFE_0BAD_CAFE,
        index(doc! { "textIndexVersion": 2 }),
        TextVersion::V2,
    );
}

/// Most postings of a word that is in all texts are skipped if only the best records are needed.
#[test]
fn postings_that_cannot_be_among_the_best_are_skipped() {
    let text = |id: i32| match id {
        700 => "data data data".to_owned(),
        _ => format!("data {}", "word ".repeat(10 + (id % 7) as usize)),
    };
    let documents: Vec<DocumentBuf> = (0..20_000)
        .map(|id| doc! { "_id": id, "t": (text(id).as_str()) })
        .collect();
    let index = doc! { "key": { "t": "text" }, "name": "t", "default_language": "none" };
    let database = Database::new(&documents, vec![index]);
    let source = database.source();
    let best = find("data", true, Some(1));
    assert_eq!(run(&source, &best), [700]);
    let explained = explain(&source, &best);
    assert_eq!(number(&explained, "totalDocsExamined"), 1, "{explained}");
    assert!(number(&explained, "keysSkipped") > 15_000, "{explained}");
}

fn explain(source: &Arc<dyn Source>, find: &Find) -> String {
    let explained = find.explain(
        source,
        Verbosity::ExecutionStats,
        &ExplainedCommand::None,
        &Uninterrupted,
    );
    explained.unwrap().to_string()
}

/// Returns the first number with this name.
fn number(explained: &str, name: &str) -> u64 {
    let (_, behind) = explained.split_once(&format!("\"{name}\":")).unwrap();
    let digits = behind.trim_start().chars().take_while(char::is_ascii_digit);
    digits.collect::<String>().parse().unwrap()
}

/// With the condition `{year: 7}`, `$text` read the documents of all texts with the word. An index
/// on the year restricts the search to its records, and only the returned documents are read.
#[test]
fn no_document_is_read_that_an_index_excludes() {
    let documents: Vec<DocumentBuf> = (0..20_000)
        .map(|id| doc! { "_id": id, "t": "data word", "year": (id % 100), "month": (id % 12) })
        .collect();
    let indexes = vec![
        doc! { "key": { "t": "text" }, "name": "t", "default_language": "none" },
        doc! { "key": { "year": 1 }, "name": "year" },
    ];
    let database = Database::new(&documents, indexes);
    let source = database.source();
    let year = doc! { "year": 7 };
    let examined = |condition: &DocumentBuf, sorted, limit| {
        let explained = explain(&source, &find_among("data", condition, sorted, limit));
        assert!(explained.contains("IXSCAN") && explained.contains("TEXT_OR"));
        let examined = number(&explained, "totalDocsExamined");
        (number(&explained, "nReturned"), examined)
    };
    assert_eq!(examined(&year, false, None), (200, 200));
    assert_eq!(examined(&year, true, Some(10)), (10, 10));
    // Conditions that the index does not answer are tested on the remaining documents.
    let both = doc! { "year": 7, "month": 7 };
    let expected = (0..20_000).filter(|id| id % 100 == 7 && id % 12 == 7);
    assert_eq!(examined(&both, false, None), (expected.count() as u64, 200));
    // An index that excludes few documents is not read.
    let most = doc! { "year": { "$gte": 1 } };
    let explained = explain(&source, &find_among("data", &most, true, Some(10)));
    assert!(!explained.contains("indexBounds"), "{explained}");
}
