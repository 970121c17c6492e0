//! Tests of commands on collections and indexes, each with an empty server.

use std::sync::Arc;

use windrow_document::{Document, DocumentBuf, Value, ValueRef, array, doc};

use crate::client::Client;
use crate::connection::request_for_tests;
use crate::log::Log;
use crate::state::Services;
use crate::{Config, State, dispatch};

fn server() -> State {
    let services = Services::in_memory(Arc::new(Log::to_nowhere())).unwrap();
    State::new(Config::default(), services, 27017)
}

fn say(state: &State, command: &DocumentBuf) -> DocumentBuf {
    let mut command = command.clone();
    if command.get("$db").is_none() {
        command.push("$db", "d");
    }
    let request = request_for_tests(&command);
    dispatch::run(state, &Client::for_tests(), &request).to_document()
}

/// Runs the steps. Each reply must contain the expected fields: "a.b" is the field b of a, null
/// means that it is missing.
fn check(steps: Vec<(DocumentBuf, DocumentBuf)>) {
    let state = server();
    for (command, expected) in steps {
        let reply = say(&state, &command);
        for (path, expected) in expected.iter() {
            let found = at(reply.as_document(), path).map_or(Value::Null, ValueRef::to_value);
            let is_same = found.as_ref().equals(expected);
            assert!(is_same, "{command}: {path} is not {expected:?} in {reply}");
        }
    }
}

fn at<'a>(document: Document<'a>, path: &str) -> Option<ValueRef<'a>> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match document.get(first)? {
        value if rest.is_empty() => Some(value),
        ValueRef::Document(inner) => at(inner, rest),
        ValueRef::Array(inner) => at(inner.as_document(), rest),
        _ => None,
    }
}

fn failed(code: i32) -> DocumentBuf {
    doc! { "ok": 0.0, "code": code }
}

fn ok() -> DocumentBuf {
    doc! { "ok": 1.0 }
}

fn index(key: DocumentBuf, name: &str) -> DocumentBuf {
    doc! { "createIndexes": "c", "indexes": [{ "key": key, "name": name }] }
}

#[test]
fn collections_are_created_once() {
    check(vec![
        (doc! { "create": "c" }, ok()),
        // Since MongoDB 7.0. Source: MongoDB's manual, `create`.
        (doc! { "create": "c" }, ok()),
        (
            doc! { "create": "c", "collation": { "locale": "fr" } },
            failed(48),
        ),
        (doc! { "create": "v", "viewOn": "c" }, ok()),
        (doc! { "create": "v", "viewOn": "c", "pipeline": [] }, ok()),
        (doc! { "create": "v", "viewOn": "d" }, failed(48)),
        (doc! { "create": "v" }, failed(48)),
        (doc! { "create": "system.foo" }, failed(73)),
        (doc! { "create": "a$b" }, failed(73)),
        (doc! { "create": "" }, failed(73)),
        (doc! { "create": 5 }, failed(2)),
        (doc! { "create": ("n".repeat(254)) }, failed(17_381)),
        (doc! { "create": ("n".repeat(253)) }, ok()),
        (doc! { "create": "e", "foo": 1 }, failed(40_415)),
    ]);
}

#[test]
fn options_of_create_are_checked() {
    check(vec![
        (
            doc! { "create": "c", "capped": "yes", "size": 1 },
            failed(14),
        ),
        (doc! { "create": "c", "capped": true }, failed(72)),
        (
            doc! { "create": "c", "capped": true, "size": (-1) },
            failed(2),
        ),
        (
            doc! { "create": "capped", "capped": true, "size": 4097, "max": 3 },
            ok(),
        ),
        (
            doc! { "listCollections": 1, "filter": { "name": "capped" } },
            doc! { "cursor.firstBatch.0.options": { "capped": true, "size": 4352, "max": 3 } },
        ),
        (doc! { "drop": "capped" }, ok()),
        (doc! { "create": "c", "size": 4096 }, failed(72)),
        (doc! { "create": "c", "validator": "x" }, failed(14)),
        (
            doc! { "create": "c", "validator": { "$text": { "$search": "x" } } },
            failed(2),
        ),
        (doc! { "create": "c", "viewOn": "" }, failed(2)),
        (doc! { "create": "c", "viewOn": 1 }, failed(14)),
        (
            doc! { "create": "c", "timeseries": { "timeField": "t" }, "expireAfterSeconds": 5 },
            failed(238),
        ),
        (
            doc! { "create": "c", "collation": { "locale": "xx" } },
            failed(2),
        ),
        (doc! { "create": "c", "collation": {} }, failed(2)),
        (doc! { "create": "c", "autoIndexId": false }, failed(50_001)),
        (
            doc! { "create": "c", "idIndex": { "key": { "a": 1 } } },
            failed(2),
        ),
        (
            doc! { "create": "c", "idIndex": { "key": { "_id": 1 }, "sparse": true } },
            failed(197),
        ),
        (doc! { "create": "c", "validationLevel": "x" }, failed(2)),
        (
            doc! { "create": "c", "storageEngine": { "x": {} } },
            failed(72),
        ),
        (
            doc! { "create": "c", "collation": { "locale": "simple" }, "validationLevel": "off" },
            ok(),
        ),
        (
            doc! { "listCollections": 1 },
            doc! { "cursor.firstBatch.0.options": { "validationLevel": "off" } },
        ),
    ]);
}

#[test]
fn dropped_collections_do_not_exist() {
    check(vec![
        (doc! { "drop": "c" }, ok()),
        (index(doc! { "a": 1 }, "a_1"), ok()),
        (doc! { "drop": "c" }, doc! { "nIndexesWas": 2, "ns": "d.c" }),
        (doc! { "listIndexes": "c" }, failed(26)),
        (doc! { "create": "c" }, ok()),
        (doc! { "create": "e", "$db": "other" }, ok()),
        (doc! { "dropDatabase": 2 }, failed(20)),
        (doc! { "dropDatabase": 1 }, doc! { "dropped": "d", "ok": 1 }),
        (
            doc! { "dropDatabase": 1 },
            doc! { "dropped": (Value::Null), "ok": 1 },
        ),
        (
            doc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" },
            doc! { "databases": [{ "name": "other" }] },
        ),
    ]);
}

#[test]
fn lists_are_filtered_and_split_into_batches() {
    check(vec![
        (doc! { "create": "a" }, ok()),
        (doc! { "create": "b" }, ok()),
        (
            doc! { "listCollections": 1, "nameOnly": true, "filter": { "name": { "$gt": "a" } } },
            doc! { "cursor.firstBatch": [{ "name": "b", "type": "collection" }], "cursor.id": 0 },
        ),
        (
            doc! { "listCollections": 1, "filter": { "name": { "$foo": 1 } } },
            failed(2),
        ),
        (doc! { "listCollections": 1, "filter": 5 }, failed(14)),
        (
            doc! { "listCollections": 1, "nameOnly": true, "cursor": { "batchSize": 1 } },
            doc! { "cursor.firstBatch": [{ "name": "a", "type": "collection" }] },
        ),
        (
            doc! { "listDatabases": 1, "filter": { "name": "x" }, "$db": "admin" },
            doc! { "databases": (Value::Array(array![])), "totalSize": 0 },
        ),
        (
            doc! { "listIndexes": "a", "cursor": { "foo": 1 } },
            failed(2),
        ),
        (doc! { "listDatabases": 1 }, failed(13)),
    ]);
}

#[test]
fn indexes_are_created_and_counted() {
    check(vec![
        (
            index(doc! { "a": 1 }, "a_1"),
            doc! { "createdCollectionAutomatically": true, "numIndexesBefore": 1, "numIndexesAfter": 2 },
        ),
        (
            index(doc! { "a": 1.0 }, "a_1"),
            doc! {
                "createdCollectionAutomatically": (Value::Null), "numIndexesAfter": 2,
                "note": "all indexes already exist",
            },
        ),
        (
            doc! { "createIndexes": "c", "indexes": [
                { "key": { "a": 1 }, "name": "a_1" }, { "key": { "b": 1 }, "name": "b_1" },
            ] },
            doc! { "numIndexesBefore": 2, "numIndexesAfter": 3, "note": "index already exists" },
        ),
        (
            doc! { "listIndexes": "c" },
            doc! { "cursor.firstBatch.2": { "v": 2, "key": { "b": 1 }, "name": "b_1" } },
        ),
        (index(doc! { "a": 1 }, "x"), failed(85)),
        (index(doc! { "a": (-1) }, "a_1"), failed(86)),
        (index(doc! { "x": "nothing" }, "x"), failed(67)),
        (
            doc! { "createIndexes": "c", "indexes": [
                { "key": { "y": 1 }, "name": "y" }, { "key": { "y": 1 }, "name": "y" },
            ] },
            failed(68),
        ),
        (doc! { "createIndexes": "c" }, failed(9)),
        (
            doc! { "createIndexes": "c", "indexes": (Value::Array(array![])) },
            failed(2),
        ),
        (doc! { "createIndexes": "c", "indexes": [5] }, failed(14)),
        (
            doc! { "createIndexes": "c", "indexes": [{ "key": { "z": 1 } }] },
            failed(9),
        ),
        (doc! { "createIndexes": "c", "indexes": "x" }, failed(14)),
        (index(doc! { "z": 1 }, "*"), failed(2)),
        (
            doc! { "createIndexes": "c", "indexes": [{ "key": { "z": 1 }, "name": "z", "foo": 1 }] },
            failed(197),
        ),
        (
            doc! {
                "createIndexes": "c", "ignoreUnknownIndexOptions": true,
                "indexes": [{ "key": { "z": 1 }, "name": "z", "foo": 1 }],
            },
            ok(),
        ),
        (
            doc! { "listIndexes": "c" },
            doc! { "cursor.firstBatch.3": { "v": 2, "key": { "z": 1 }, "name": "z" } },
        ),
    ]);
}

#[test]
fn invalid_indexes_create_no_collection() {
    let many: Vec<Value> = (0..64)
        .map(|n| {
            Value::from(
                doc! { "key": { (format!("f{n}").as_str()): 1 }, "name": (format!("f{n}")) },
            )
        })
        .collect();
    check(vec![
        (index(doc! { "a": 0 }, "a"), failed(67)),
        (doc! { "createIndexes": "c", "indexes": many }, failed(67)),
        (
            doc! { "createIndexes": "c", "indexes": [
                { "key": { "a": 1 }, "name": "a" }, { "key": { "a": 1 }, "name": "b" },
            ] },
            failed(85),
        ),
        (doc! { "listIndexes": "c" }, failed(26)),
    ]);
}

#[test]
fn a_failed_unique_index_does_not_exist() {
    check(vec![
        (
            doc! { "insert": "c", "documents": [{ "_id": 1, "a": 1 }, { "_id": 2, "a": 1 }] },
            ok(),
        ),
        (
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a", "unique": true }] },
            doc! { "code": 11_000, "keyPattern": { "a": 1 }, "keyValue": { "a": 1 } },
        ),
        (
            doc! { "listIndexes": "c" },
            doc! { "cursor.firstBatch.1": (Value::Null) },
        ),
    ]);
}

#[test]
fn indexes_are_dropped_by_name_and_key() {
    let both = || {
        doc! { "createIndexes": "c", "indexes": [
            { "key": { "a": 1 }, "name": "a_1" }, { "key": { "b": 1 }, "name": "b_1" },
        ] }
    };
    check(vec![
        (both(), ok()),
        (doc! { "dropIndexes": "c", "index": "x" }, failed(27)),
        (doc! { "dropIndexes": "c", "index": "_id_" }, failed(72)),
        (
            doc! { "dropIndexes": "c", "index": ["a_1", "x"] },
            failed(27),
        ),
        (doc! { "dropIndexes": "c", "index": ["a_1", 5] }, failed(14)),
        (
            doc! { "dropIndexes": "c", "index": 5 },
            doc! { "nIndexesWas": 3 },
        ),
        (
            doc! { "dropIndexes": "c", "index": { "a": 1.0 } },
            doc! { "nIndexesWas": 3 },
        ),
        (doc! { "dropIndexes": "c", "index": { "a": 1 } }, failed(27)),
        (
            doc! { "deleteIndexes": "c", "index": ["b_1"] },
            doc! { "nIndexesWas": 2 },
        ),
        (both(), ok()),
        (
            doc! { "dropIndexes": "c", "index": "*" },
            doc! { "nIndexesWas": 3, "msg": "non-_id indexes dropped for collection" },
        ),
        (doc! { "dropIndexes": "e", "index": "*" }, failed(26)),
    ]);
}

#[test]
fn sizes_are_correct_and_scaled() {
    // 5 bytes of a document, 9 of its `_id` and 7 of its `a`.
    let documents: Vec<Value> = (0..100)
        .map(|n| Value::from(doc! { "_id": n, "a": n }))
        .collect();
    check(vec![
        (
            doc! { "collStats": "c" },
            doc! { "ns": "d.c", "count": 0, "nindexes": 0, "ok": 1 },
        ),
        (doc! { "insert": "c", "documents": documents }, ok()),
        (index(doc! { "a": 1 }, "a_1"), ok()),
        (
            doc! { "collStats": "c" },
            doc! { "count": 100, "size": 2100, "avgObjSize": 21, "nindexes": 2, "scaleFactor": 1 },
        ),
        (
            doc! { "collStats": "c", "scale": 1000 },
            doc! { "size": 2, "avgObjSize": 21 },
        ),
        (doc! { "collStats": "c", "scale": 0 }, failed(2)),
        (
            doc! { "dbStats": 1, "scale": 100 },
            doc! { "db": "d", "collections": 1, "objects": 100, "dataSize": 21.0, "indexes": 2 },
        ),
        (
            doc! { "validate": "c", "full": true },
            doc! { "valid": true, "nrecords": 100, "keysPerIndex": { "_id_": 100, "a_1": 100 } },
        ),
        (doc! { "validate": "x" }, failed(26)),
        (
            doc! { "serverStatus": 1 },
            doc! { "indexBuilds.total": 1, "indexBuilds.failed": 0, "indexBuilds.active": 0, "windrow.folds": 0 },
        ),
    ]);
}

#[test]
fn a_cursor_ends_with_its_collection() {
    let state = server();
    let documents = doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }, { "_id": 3 }] };
    say(&state, &documents);
    let found = say(&state, &doc! { "find": "c", "batchSize": 1 });
    let id = at(found.as_document(), "cursor.id").unwrap().to_value();
    say(&state, &doc! { "drop": "c" });
    let more = say(&state, &doc! { "getMore": id, "collection": "c" });
    assert_eq!(more.get("code"), Some(ValueRef::Int32(175)), "{more}");
}

#[test]
fn builds_log_their_phases() {
    let state = server();
    say(
        &state,
        &doc! { "insert": "c", "documents": [{ "_id": 1, "a": [1, 2] }] },
    );
    say(&state, &index(doc! { "a": 1 }, "a_1"));
    let (lines, _) = state.services.log.recent();
    for expected in [
        "Index build: registering",
        "Index build: starting",
        r#""totalRecords":1"#,
        r#""keysInserted":2"#,
        "Index build: done building",
        "Index build: completed successfully",
    ] {
        assert!(
            lines.iter().any(|line| line.contains(expected)),
            "{expected}"
        );
    }
}
