//! The target `search`: query strings of `$search`, parsed and run on a few documents.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use windrow_collection::InsertOrder;
use windrow_document::{DocumentBuf, ObjectId, Value, array, doc};
use windrow_mql::filter::Environment;
use windrow_query::{Aggregate, Collections, EngineCollections, Pipeline};
use windrow_storage::MemoryDisk;

use super::pipeline::CheckLimit;
use super::test_engine::{create_collection, open_engine};

static COLLECTIONS: LazyLock<Arc<EngineCollections>> = LazyLock::new(|| {
    let engine = open_engine(&MemoryDisk::new()).expect("an engine");
    let collection = create_collection(&engine, "d", "c", &[index()]);
    for text in [
        "Hot coffee and a tea.",
        "no",
        "a AND b. C TO d!",
        "水 ä coffee a b",
    ] {
        let document = doc! { "_id": text, "t": text, "u": [text, 5] };
        let inserted = collection.insert(
            Bytes::from(document.as_bytes().to_vec()),
            InsertOrder::Ordered,
        );
        inserted.expect("a document");
    }
    Arc::new(EngineCollections::new(engine))
});

fn index() -> DocumentBuf {
    doc! {
        "v": 2, "key": { "_search": "search" }, "name": "$search.default",
        "searchIndex": {
            "id": (Value::ObjectId(ObjectId([0; 12]))), "name": "default", "version": 0,
            "createdAt": (Value::DateTime(0)),
            "definition": { "mappings": { "dynamic": true } },
        },
    }
}

/// The input is a query string. Each document is found once at most.
pub fn run(bytes: &[u8]) {
    let query = String::from_utf8_lossy(bytes);
    let operator = doc! { "defaultPath": "t", "query": (&*query) };
    let stages = array![{ "$search": { "queryString": operator } }];
    let Ok(pipeline) = Pipeline::parse(stages.as_array(), &Environment::default()) else {
        return;
    };
    let source = COLLECTIONS.source("d", "c").expect("a snapshot");
    let Ok(mut cursor) = Aggregate::new(pipeline).open(&source, &COLLECTIONS) else {
        return;
    };
    let check_limit = CheckLimit(Cell::new(0));
    let mut found = Vec::new();
    while let Ok(Some(row)) = cursor.next(&check_limit) {
        let id = row.as_document().get("_id").map(|id| id.to_value());
        assert!(id.is_some() && !found.contains(&id), "{query}: {id:?}");
        found.push(id);
    }
}
