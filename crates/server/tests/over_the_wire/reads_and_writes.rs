//! Documents are inserted, found, updated and deleted, with MongoDB's counts and errors.

use std::sync::Arc;

use crate::client::{Client, Running, code, is_ok, start};
use windrow_document::{DocumentBuf, Value, ValueRef, doc};
use windrow_server::Config;

/// Runs a command on the database "t". Returns its whole reply.
fn check(client: &mut Client, command: DocumentBuf, expected: DocumentBuf) {
    let mut command = command;
    command.push("$db", "t");
    let mut expected = expected;
    expected.push("ok", 1.0);
    let reply = client.command(&command);
    assert_eq!(without_messages(&reply), expected, "{command:.300}");
}

/// The error code of a failed command, or of its first failed statement.
fn refuse(client: &mut Client, command: DocumentBuf, expected: i64) {
    let mut command = command;
    command.push("$db", "t");
    let reply = client.command(&command);
    let errors = reply.get("writeErrors").and_then(ValueRef::as_array);
    let first = errors.and_then(|errors| errors.get(0)?.as_document()?.get("code")?.as_whole());
    assert_eq!(
        first.unwrap_or_else(|| code(&reply)),
        expected,
        "{command} -> {reply}"
    );
}

fn without_messages(reply: &DocumentBuf) -> DocumentBuf {
    let mut kept = DocumentBuf::new();
    for (name, value) in reply.iter() {
        match value.as_array() {
            Some(errors) if name == "writeErrors" => {
                let errors = errors.iter().filter_map(ValueRef::as_document);
                let errors = errors.map(|error| {
                    let fields = error.iter().filter(|(name, _)| *name != "errmsg");
                    Value::from(fields.collect::<DocumentBuf>())
                });
                kept.push(name, errors.collect::<Vec<Value>>());
            }
            _ => kept.push(name, value),
        }
    }
    kept
}

fn first_batch(documents: Vec<DocumentBuf>) -> DocumentBuf {
    let batch: Vec<Value> = documents.into_iter().map(Value::from).collect();
    doc! { "cursor": { "firstBatch": (batch), "id": 0i64, "ns": "t.c" } }
}

fn filled(documents: Vec<DocumentBuf>) -> (Running, Client) {
    let server = start(Config::default());
    let mut client = server.client();
    let count = documents.len() as i32;
    let documents: Vec<Value> = documents.into_iter().map(Value::from).collect();
    let insert = doc! { "insert": "c", "documents": (documents) };
    check(&mut client, insert, doc! { "n": count });
    (server, client)
}

#[test]
fn inserted_documents_are_found() {
    let (_server, mut client) = filled(vec![
        doc! { "_id": 1, "a": 5 },
        doc! { "a": 3, "_id": 2 },
        doc! { "_id": 3, "a": 4 },
    ]);
    let client = &mut client;
    let sorted = doc! { "find": "c", "sort": { "a": 1 }, "projection": { "a": 1 }, "limit": 2 };
    let expected = vec![doc! { "_id": 2, "a": 3 }, doc! { "_id": 3, "a": 4 }];
    check(client, sorted, first_batch(expected));
    check(
        client,
        doc! { "count": "c", "query": { "a": { "$gt": 3 } } },
        doc! { "n": 2 },
    );
    check(
        client,
        doc! { "distinct": "c", "key": "a" },
        doc! { "values": [3, 4, 5] },
    );
    check(
        client,
        doc! { "find": "c", "filter": { "_id": 2 } },
        first_batch(vec![doc! { "_id": 2, "a": 3 }]),
    );
}

#[test]
fn a_document_without_id_gets_one() {
    let (_server, mut client) = filled(vec![doc! { "a": 1 }]);
    let found = client.command(&doc! { "find": "c", "$db": "t" });
    let batch = found.get("cursor").unwrap().as_document().unwrap();
    let batch = batch.get("firstBatch").unwrap().as_array().unwrap();
    let (name, id) = batch
        .get(0)
        .unwrap()
        .as_document()
        .unwrap()
        .first()
        .unwrap();
    assert_eq!(name, "_id");
    assert!(matches!(id, ValueRef::ObjectId(_)));
}

#[test]
fn duplicate_key_errors_name_the_key() {
    let (_server, mut client) = filled(vec![doc! { "_id": 1 }]);
    let client = &mut client;
    let error = |index: i32, id: i32| {
        doc! { "index": index, "code": 11000, "keyPattern": { "_id": 1 }, "keyValue": { "_id": id } }
    };
    check(
        client,
        doc! { "insert": "c", "documents": [{ "_id": 2 }, { "_id": 1 }, { "_id": 3 }] },
        doc! { "n": 1, "writeErrors": [(error(1, 1))] },
    );
    check(
        client,
        doc! {
            "insert": "c", "ordered": false,
            "documents": [{ "_id": 1 }, { "_id": 4 }, { "_id": [1] }, { "_id": 4 }],
        },
        doc! {
            "n": 1,
            "writeErrors": [(error(0, 1)), { "index": 2, "code": 2 }, (error(3, 4))],
        },
    );
    check(client, doc! { "count": "c" }, doc! { "n": 3 });
}

#[test]
fn invalid_documents_are_refused() {
    let (_server, mut client) = filled(vec![doc! { "_id": 0 }]);
    let client = &mut client;
    let mut insert = |document: DocumentBuf, code: i64| {
        refuse(
            client,
            doc! { "insert": "c", "documents": [(document)] },
            code,
        );
    };
    insert(doc! { "_id": [1] }, 2);
    insert(doc! { "_id": { "$x": 1 } }, 52);
    insert(doc! { "_id": 1, "$id": 1 }, 2);
    insert(doc! { "_id": 1, "s": ("x".repeat(16 << 20)) }, 10334);
    let mut deep = doc! {};
    (0..180).for_each(|_| deep = doc! { "x": (std::mem::take(&mut deep)) });
    insert(doc! { "_id": 1, "o": deep }, 15);
    refuse(
        client,
        doc! { "insert": "system.profile", "documents": [{}] },
        73,
    );
    refuse(
        client,
        doc! { "insert": "a.system.b", "documents": [{}] },
        2,
    );
    refuse(client, doc! { "insert": "$a", "documents": [{}] }, 73);
    refuse(client, doc! { "insert": 1, "documents": [{}] }, 2);
}

#[test]
fn get_more_returns_the_rest() {
    let (_server, mut client) = filled((0..5).map(|n| doc! { "_id": n }).collect());
    let found = client.command(&doc! { "find": "c", "batchSize": 2, "limit": 4, "$db": "t" });
    let cursor = found.get("cursor").unwrap().as_document().unwrap();
    let id = cursor.get("id").unwrap();
    check(
        &mut client,
        doc! { "getMore": (id.to_value()), "collection": "c" },
        doc! { "cursor": { "nextBatch": [{ "_id": 2 }, { "_id": 3 }], "id": 0i64, "ns": "t.c" } },
    );
}

#[test]
fn invalid_arguments_of_find_are_refused() {
    let (_server, mut client) = filled(vec![doc! { "_id": 0 }]);
    let client = &mut client;
    refuse(client, doc! { "find": 1 }, 9);
    refuse(client, doc! { "find": "c", "filter": "x" }, 9);
    refuse(client, doc! { "find": "c", "bogus": 1 }, 9);
    refuse(client, doc! { "find": "c", "limit": (-1) }, 2);
    refuse(client, doc! { "find": "c", "batchSize": (f64::NAN) }, 2);
    refuse(client, doc! { "find": "c", "tailable": true }, 2);
    refuse(client, doc! { "find": "c", "awaitData": true }, 9);
    refuse(client, doc! { "find": "c", "hint": "none" }, 2);
    refuse(
        client,
        doc! { "find": "c", "filter": { "a": { "$bogus": 1 } } },
        2,
    );
    refuse(
        client,
        doc! { "find": "c", "collation": { "locale": "xx" } },
        2,
    );
}

#[test]
fn updates_count_what_they_match_and_change() {
    let documents = vec![
        doc! { "_id": 1, "a": 1 },
        doc! { "_id": 2, "a": 1 },
        doc! { "_id": 3, "a": [1, 2] },
    ];
    let (_server, mut client) = filled(documents);
    let client = &mut client;
    let mut update = |statement: DocumentBuf, expected: DocumentBuf| {
        check(
            client,
            doc! { "update": "c", "updates": [statement] },
            expected,
        );
    };
    let counts = |n: i32, modified: i32| doc! { "n": n, "nModified": modified };
    update(
        doc! { "q": { "a": 1 }, "u": { "$set": { "b": 1 } } },
        counts(1, 1),
    );
    update(
        doc! { "q": { "a": 1 }, "u": { "$set": { "b": 1 } }, "multi": true },
        counts(3, 2),
    );
    update(
        doc! { "q": { "a": 2 }, "u": { "$set": { "a.$": 9 } } },
        counts(1, 1),
    );
    update(doc! { "q": { "_id": 1 }, "u": { "c": 1 } }, counts(1, 1));
    update(
        doc! { "q": { "_id": 7 }, "u": { "$set": { "b": 1 } }, "upsert": true },
        doc! { "n": 1, "upserted": [{ "index": 0, "_id": 7 }], "nModified": 0 },
    );
    check(
        client,
        doc! { "find": "c" },
        first_batch(vec![
            doc! { "_id": 1, "c": 1 },
            doc! { "_id": 2, "a": 1, "b": 1 },
            doc! { "_id": 3, "a": [1, 9], "b": 1 },
            doc! { "_id": 7, "b": 1 },
        ]),
    );
}

#[test]
fn a_failed_update_ends_an_ordered_command() {
    let (_server, mut client) = filled(vec![doc! { "_id": 1, "s": "x" }, doc! { "_id": 2 }]);
    let client = &mut client;
    let updates = |ordered: bool| {
        doc! {
            "update": "c", "ordered": ordered, "updates": [
                { "q": { "_id": 1 }, "u": { "$inc": { "s": 1 } } },
                { "q": { "_id": 2 }, "u": { "$inc": { "n": 1 } } },
            ],
        }
    };
    let errors = doc! { "index": 0, "code": 14 };
    check(
        client,
        updates(true),
        doc! { "n": 0, "nModified": 0, "writeErrors": [(errors.clone())] },
    );
    check(
        client,
        updates(false),
        doc! { "n": 1, "nModified": 1, "writeErrors": [errors] },
    );
}

#[test]
fn deletes_remove_one_or_all() {
    let (_server, mut client) = filled((0..5).map(|n| doc! { "_id": n, "a": (n % 2) }).collect());
    let client = &mut client;
    let delete = |filter: DocumentBuf, limit: i32| {
        doc! { "delete": "c", "deletes": [{ "q": filter, "limit": limit }] }
    };
    check(client, delete(doc! { "a": 0 }, 1), doc! { "n": 1 });
    check(client, delete(doc! { "a": 0 }, 0), doc! { "n": 2 });
    check(client, delete(doc! { "a": 0 }, 0), doc! { "n": 0 });
    refuse(client, delete(doc! {}, 2), 9);
    check(
        client,
        doc! { "distinct": "c", "key": "_id" },
        doc! { "values": [1, 3] },
    );
}

#[test]
fn find_and_modify_returns_the_document() {
    let (_server, mut client) = filled(vec![doc! { "_id": 1, "n": 1 }, doc! { "_id": 2, "n": 2 }]);
    let client = &mut client;
    let increment = doc! { "$inc": { "n": 10 } };
    check(
        client,
        doc! { "findAndModify": "c", "sort": { "n": (-1) }, "update": (increment.clone()) },
        doc! { "lastErrorObject": { "n": 1, "updatedExisting": true }, "value": { "_id": 2, "n": 2 } },
    );
    check(
        client,
        doc! { "findAndModify": "c", "query": { "_id": 3 }, "update": increment, "upsert": true, "new": true },
        doc! {
            "lastErrorObject": { "n": 1, "updatedExisting": false, "upserted": 3 },
            "value": { "_id": 3, "n": 10 },
        },
    );
    check(
        client,
        doc! { "findAndModify": "c", "query": { "_id": 3 }, "remove": true, "fields": { "_id": 0 } },
        doc! { "lastErrorObject": { "n": 1 }, "value": { "n": 10 } },
    );
    check(
        client,
        doc! { "findAndModify": "c", "query": { "_id": 3 }, "remove": true },
        doc! { "lastErrorObject": { "n": 0 }, "value": null },
    );
    refuse(client, doc! { "findAndModify": "c" }, 9);
    refuse(
        client,
        doc! { "findAndModify": "c", "remove": true, "bogus": 1 },
        51177,
    );
}

#[test]
fn explain_shows_the_plan() {
    let (_server, mut client) = filled(vec![doc! { "_id": 1 }, doc! { "_id": 2 }]);
    let stage = |reply: &DocumentBuf| {
        let plan = reply
            .get("queryPlanner")?
            .as_document()?
            .get("winningPlan")?;
        Some(plan.as_document()?.get("stage")?.as_str()?.to_owned())
    };
    let mut check = |command: DocumentBuf, expected: Option<&str>| {
        let reply = client.command(&doc! { "explain": (command.clone()), "$db": "t" });
        assert_eq!(stage(&reply).as_deref(), expected, "{command} -> {reply}");
    };
    check(doc! { "find": "c" }, Some("COLLSCAN"));
    check(doc! { "find": "c", "filter": { "_id": 1 } }, Some("IDHACK"));
    check(
        doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] },
        Some("DELETE"),
    );
    check(doc! { "insert": "c", "documents": [{}] }, None);
    let count = client.command(&doc! { "count": "c", "$db": "t" });
    assert_eq!(count.get("n"), Some(ValueRef::Int32(2)));
}

/// Eight connections empty a queue and increase a counter. No document is taken twice, and no
/// increment is lost.
#[test]
fn many_connections_change_the_same_documents() {
    let (server, _) = filled(
        (0..200)
            .map(|n| doc! { "_id": n, "state": "new" })
            .collect(),
    );
    let server = Arc::new(server);
    let threads = (0..8).map(|_| {
        let server = Arc::clone(&server);
        std::thread::spawn(move || work_off_the_queue(&mut server.client()))
    });
    let threads: Vec<_> = threads.collect();
    let taken: Vec<i32> = threads
        .into_iter()
        .flat_map(|it| it.join().unwrap())
        .collect();
    let different: std::collections::BTreeSet<i32> = taken.iter().copied().collect();
    assert_eq!((taken.len(), different.len()), (200, 200));
    let mut client = server.client();
    let counter = doc! { "find": "counters" , "$db": "t" };
    let batch = client.command(&counter);
    let cursor = batch.get("cursor").unwrap().as_document().unwrap();
    let first = cursor
        .get("firstBatch")
        .unwrap()
        .as_array()
        .unwrap()
        .get(0)
        .unwrap();
    assert_eq!(
        first.as_document().unwrap().get("n"),
        Some(ValueRef::Int32(200))
    );
}

fn work_off_the_queue(client: &mut Client) -> Vec<i32> {
    let mut taken = Vec::new();
    loop {
        let reply = client.command(&doc! {
            "findAndModify": "c", "query": { "state": "new" }, "sort": { "_id": 1 },
            "update": { "$set": { "state": "taken" } }, "$db": "t",
        });
        assert!(is_ok(&reply), "{reply}");
        let Some(document) = reply.get("value").and_then(ValueRef::as_document) else {
            return taken;
        };
        let id = document.get("_id").and_then(ValueRef::as_whole).unwrap();
        taken.push(id as i32);
        let reply = client.command(&doc! {
            "update": "counters", "$db": "t",
            "updates": [{ "q": { "_id": "taken" }, "u": { "$inc": { "n": 1 } }, "upsert": true }],
        });
        assert_eq!(reply.get("writeErrors"), None, "{reply}");
    }
}

/// Returns a filter that needs about 0.1 ms per document.
fn slow() -> DocumentBuf {
    let numbers = doc! { "$map": {
        "input": { "$range": [0, 500] }, "in": { "$mod": ["$$this", 7] },
    } };
    doc! { "$expr": { "$gt": [{ "$sum": numbers }, (-1)] } }
}

#[test]
fn long_work_ends_at_its_time_limit_or_when_killed() {
    let (server, mut client) = filled((0..40_000).map(|n| doc! { "_id": n }).collect());
    for command in [
        doc! { "find": "c", "filter": (slow()), "batchSize": 50_000 },
        doc! { "count": "c", "query": (slow()) },
        doc! { "update": "c", "updates": [{ "q": (slow()), "u": { "$set": { "a": 1 } }, "multi": true }] },
        doc! { "delete": "c", "deletes": [{ "q": (slow()), "limit": 0 }] },
    ] {
        let mut command = command;
        command.push("maxTimeMS", 50);
        refuse(&mut client, command, 50);
    }
    let mut other = server.client();
    let killer = std::thread::spawn(move || kill_first(&mut other));
    refuse(
        &mut client,
        doc! { "find": "c", "filter": (slow()), "batchSize": 50_000, "comment": "kill me" },
        11601,
    );
    killer.join().unwrap();
}

fn kill_first(client: &mut Client) {
    let numbers = |reply: &DocumentBuf| -> Option<i64> {
        let running = reply.get("inprog")?.as_array()?;
        let mut all = running.iter().filter_map(ValueRef::as_document);
        let summary = Some(ValueRef::String("COLLSCAN"));
        let find = all.find(|one| one.get("planSummary") == summary)?;
        find.get("opid")?.as_whole()
    };
    let number = loop {
        let reply = client.command(&doc! { "currentOp": 1, "$db": "admin" });
        if let Some(number) = numbers(&reply) {
            break number;
        }
    };
    assert!(is_ok(&client.command(
        &doc! { "killOp": 1, "op": (number as i32), "$db": "admin" }
    )));
}

#[test]
fn statements_are_counted() {
    let (_server, mut client) = filled((0..5).map(|n| doc! { "_id": n }).collect());
    let update = doc! { "q": {}, "u": { "$set": { "a": 1 } }, "multi": true };
    client.command(&doc! { "update": "c", "updates": [(update.clone()), update], "$db": "t" });
    let delete = doc! { "q": {}, "limit": 0 };
    client.command(&doc! { "delete": "c", "deletes": [delete], "$db": "t" });
    let status = client.command(&doc! { "serverStatus": 1, "$db": "admin" });
    let counters = status.get("opcounters").unwrap().as_document().unwrap();
    let count = |name: &str| counters.get(name).and_then(ValueRef::as_whole);
    let counts = [count("insert"), count("update"), count("delete")];
    assert_eq!(counts, [Some(5), Some(2), Some(1)]);
}

/// A reply has at most 16 MB. Documents that do not fit are in the next batch.
#[test]
fn large_documents_are_split_into_batches() {
    let large = |id: i32| doc! { "_id": id, "s": ("x".repeat(6 << 20)) };
    let (_server, mut client) = filled(vec![large(0)]);
    for id in 1..5 {
        let insert = doc! { "insert": "c", "documents": [(large(id))] };
        check(&mut client, insert, doc! { "n": 1 });
    }
    let mut reply = client.command(&doc! { "find": "c", "$db": "t" });
    let mut counts = Vec::new();
    loop {
        let cursor = reply.get("cursor").unwrap().as_document().unwrap();
        let batch = cursor
            .get("firstBatch")
            .or(cursor.get("nextBatch"))
            .unwrap();
        counts.push(batch.as_array().unwrap().count());
        let id = cursor.get("id").unwrap().to_value();
        if id == Value::Int64(0) {
            break;
        }
        reply = client.command(&doc! { "getMore": id, "collection": "c", "$db": "t" });
    }
    assert_eq!(counts, [2, 2, 1]);
}

/// An upsert of many that finds a duplicate key after some documents must not start again, because
/// it would change those documents twice.
#[test]
fn a_failed_update_of_many_is_not_repeated() {
    let documents = (0..3).map(|n| doc! { "_id": n, "n": 0, "u": n }).collect();
    let (_server, mut client) = filled(documents);
    let client = &mut client;
    let index = doc! { "key": { "u": 1 }, "name": "u_1", "unique": true };
    assert!(is_ok(&client.command(
        &doc! { "createIndexes": "c", "indexes": [index], "$db": "t" }
    )));
    let update = doc! { "$inc": { "n": 1 }, "$set": { "u": 9 } };
    let update = doc! { "q": {}, "u": update, "multi": true, "upsert": true };
    refuse(client, doc! { "update": "c", "updates": [update] }, 11000);
    check(
        client,
        doc! { "find": "c", "sort": { "_id": 1 } },
        first_batch(vec![
            doc! { "_id": 0, "n": 1, "u": 9 },
            doc! { "_id": 1, "n": 0, "u": 1 },
            doc! { "_id": 2, "n": 0, "u": 2 },
        ]),
    );
}

#[test]
fn pipelines_read_the_state_of_the_server() {
    let (_server, mut client) = filled(vec![doc! { "_id": 1 }, doc! { "_id": 2 }]);
    let client = &mut client;
    let aggregate = |stage: DocumentBuf, last: DocumentBuf| {
        doc! { "aggregate": "c", "pipeline": [stage, { "$project": last }], "cursor": {} }
    };
    check(
        client,
        aggregate(
            doc! { "$collStats": { "count": {}, "storageStats": {} } },
            doc! { "count": 1, "size": "$storageStats.size", "ns": 1 },
        ),
        first_batch(vec![doc! { "ns": "t.c", "count": 2, "size": 28 }]),
    );
    refuse(
        client,
        aggregate(doc! { "$collStats": 5 }, doc! { "a": 1 }),
        40166,
    );
    refuse(
        client,
        aggregate(doc! { "$collStats": { "x": 1 } }, doc! { "a": 1 }),
        40415,
    );
    refuse(
        client,
        aggregate(doc! { "$currentOp": {} }, doc! { "a": 1 }),
        73,
    );
    let stages = vec![
        Value::from(doc! { "$currentOp": { "allUsers": true } }),
        Value::from(doc! { "$match": { "op": "command" } }),
        Value::from(doc! { "$count": "n" }),
    ];
    let running = client
        .command(&doc! { "aggregate": 1, "pipeline": (stages), "cursor": {}, "$db": "admin" });
    let expected = doc! {
        "cursor": { "firstBatch": [{ "n": 1 }], "id": 0i64, "ns": "admin.$cmd.aggregate" },
        "ok": 1.0,
    };
    assert_eq!(running, expected);
    refuse(
        client,
        doc! { "aggregate": 1, "pipeline": [], "cursor": {} },
        73,
    );
}
