//! The target `plan`: every index finds what a scan finds.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use windrow_collection::{Direction, Engine, InsertOrder};
use windrow_document::{ArrayBuf, DocumentBuf, Value, ValueRef, doc};
use windrow_mql::filter::Filter;
use windrow_query::{Collections, Count, EngineCollections, Find, Hint, Uninterrupted};
use windrow_storage::MemoryDisk;

use super::test_engine::{create_collection, open_engine};
use crate::value_encoding::ValueDecoder;

/// The database of the collection.
pub const DATABASE: &str = "d";
/// The name of the collection.
pub const COLLECTION: &str = "c";

static ENGINE: LazyLock<Arc<Engine>> = LazyLock::new(|| {
    let engine = open_engine(&MemoryDisk::new()).expect("an engine");
    let collection = create_collection(&engine, DATABASE, COLLECTION, &indexes());
    for document in documents() {
        let bytes = Bytes::from(document.into_bytes());
        collection
            .insert(bytes, InsertOrder::Ordered)
            .expect("a document");
    }
    engine
});

/// Returns an engine with a collection of documents of all types, and indexes of most kinds.
pub fn engine() -> Arc<Engine> {
    ENGINE.clone()
}

fn indexes() -> Vec<DocumentBuf> {
    vec![
        doc! { "key": { "a": 1 }, "name": "a" },
        doc! { "key": { "b": -1, "a": 1 }, "name": "b_a" },
        doc! { "key": { "a.b": 1, "c": -1 }, "name": "ab_c" },
        doc! { "key": { "c": 1 }, "name": "c", "sparse": true },
        doc! { "key": { "$**": 1 }, "name": "all" },
        doc! { "key": { "x": "hashed" }, "name": "x" },
        doc! { "key": { "y": 1 }, "name": "y", "partialFilterExpression": { "y": { "$gt": 1 } } },
        doc! { "key": { "loc": "2dsphere" }, "name": "loc" },
    ]
}

fn documents() -> Vec<DocumentBuf> {
    let values: Vec<Value> = vec![
        Value::Null,
        1.into(),
        2.5.into(),
        (-3i64).into(),
        f64::NAN.into(),
        "x".into(),
        "a".into(),
        true.into(),
        Value::DateTime(1_563_080_767_089),
        Value::Array([Value::from(1), 2.into(), 5.into()].into_iter().collect()),
        Value::Array([Value::Null, "x".into()].into_iter().collect()),
        Value::Array(
            [
                Value::from(doc! { "b": 1 }),
                doc! { "b": [2, 3], "c": 1 }.into(),
            ]
            .into_iter()
            .collect(),
        ),
        Value::Array(ArrayBuf::new()),
        doc! { "b": 1 }.into(),
        doc! { "b": [1, "x"] , "c": { "d": 1 } }.into(),
        doc! {}.into(),
        Value::MinKey,
        Value::MaxKey,
        Value::Regex {
            pattern: "^a".to_owned(),
            options: "i".to_owned(),
        },
        Value::Binary {
            subtype: 0,
            bytes: vec![1, 2],
        },
    ];
    let mut documents = Vec::new();
    for (number, value) in values.iter().enumerate() {
        let other = &values[(number * 7 + 3) % values.len()];
        let mut document = doc! { "_id": (number as i32) };
        document.push("a", value.clone());
        document.push("b", other.clone());
        if number % 3 > 0 {
            document.push("c", values[(number * 3 + 1) % values.len()].clone());
        }
        if !matches!(other, Value::Array(_)) {
            document.push("x", other.clone());
        }
        document.push("y", (number % 5) as i32);
        if number % 4 == 0 {
            let position = [number as f64 * 3.0, number as f64 - 5.0];
            document.push(
                "loc",
                doc! { "type": "Point", "coordinates": [(position[0]), (position[1])] },
            );
        }
        documents.push(document);
    }
    documents.push(doc! { "_id": "none" });
    documents
}

/// The input is a filter and a byte that selects an index as hint.
pub fn run(bytes: &[u8]) {
    let mut source = ValueDecoder::new(bytes);
    let query = source.document();
    let Ok(filter) = Filter::parse(query.as_document()) else {
        return;
    };
    if filter.text().is_some() || filter.near().is_some() {
        return;
    }
    let Some(expected) = scan_ids(&filter) else {
        return;
    };
    let indexes = indexes();
    let index = indexes.get(usize::from(source.byte()) % (indexes.len() + 1));
    let hint = index.filter(|index| is_complete(index)).and_then(|index| {
        let name = index.get("name")?.as_str()?;
        Some(Hint::Name(name.to_owned()))
    });
    for hint in [None, hint.clone()] {
        if let Some(found) = find_ids(&filter, hint.clone()) {
            assert_eq!(found, expected, "{query} with {hint:?}");
        }
    }
    let snapshot = EngineCollections::new(engine())
        .source(DATABASE, COLLECTION)
        .expect("a snapshot");
    let count = Count {
        filter,
        skip: 0,
        limit: None,
        hint,
    };
    if let Ok(count) = count.run(&snapshot, &Uninterrupted, |_| {}) {
        assert_eq!(count, expected.len() as u64, "the count of {query}");
    }
}

/// A hinted index that does not contain all documents finds fewer, as in MongoDB.
fn is_complete(index: &DocumentBuf) -> bool {
    let incomplete = ["sparse", "partialFilterExpression"];
    let has_all_documents = incomplete.iter().all(|option| index.get(option).is_none());
    let key = index.get("key").and_then(ValueRef::as_document);
    has_all_documents && key.is_some_and(|key| !key.contains("loc") && !key.contains("$**"))
}

/// The `_id`s of documents, as text.
type Ids = BTreeSet<String>;

/// Returns the matching documents of a scan, or `None` if matching fails.
fn scan_ids(filter: &Filter) -> Option<Ids> {
    let snapshot = EngineCollections::new(engine())
        .source(DATABASE, COLLECTION)
        .ok()?;
    let (mut ids, mut records) = (Ids::new(), snapshot.records(Direction::Forward).ok()?);
    while records.next().ok()? {
        let document = DocumentBuf::from_validated(records.document().to_vec());
        if filter.matches(document.as_document()).ok()? {
            ids.insert(id(&document));
        }
    }
    Some(ids)
}

/// Returns the matching documents of a plan, or `None` if the hinted index cannot be used.
fn find_ids(filter: &Filter, hint: Option<Hint>) -> Option<Ids> {
    let snapshot = EngineCollections::new(engine())
        .source(DATABASE, COLLECTION)
        .ok()?;
    let mut find = Find::new(filter.clone());
    find.hint = hint;
    let (mut ids, mut cursor) = (Ids::new(), find.open(&snapshot).ok()?);
    while let Some(found) = cursor.next(&Uninterrupted).ok()? {
        let is_new = ids.insert(id(&found.as_document().to_buf()));
        assert!(is_new, "a document is returned twice");
    }
    Some(ids)
}

fn id(document: &DocumentBuf) -> String {
    document
        .get("_id")
        .map(|id| id.to_string())
        .unwrap_or_default()
}
