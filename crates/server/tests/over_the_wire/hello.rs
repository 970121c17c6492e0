//! The handshake, monitoring and disconnect of drivers.

use std::time::{Duration, Instant};

use crate::client::{code, is_ok, start};
use windrow_document::{DocumentBuf, ValueRef, doc};
use windrow_server::Config;

const MORE_TO_COME: u32 = 2;
const EXHAUST_ALLOWED: u32 = 1 << 16;

fn names(reply: &DocumentBuf) -> Vec<&str> {
    reply.iter().map(|(name, _)| name).collect()
}

#[test]
fn hello_and_is_master_present_a_standalone_mongodb_8() {
    let server = start(Config::default());
    let mut client = server.client();
    let reply = client.command(&doc! {
        "hello": 1, "helloOk": true, "compression": ["zstd", "lzma", "snappy"], "$db": "admin",
        "client": { "driver": { "name": "x", "version": "1" }, "os": { "type": "Linux" } },
    });
    let expected = [
        "isWritablePrimary",
        "topologyVersion",
        "maxBsonObjectSize",
        "maxMessageSizeBytes",
        "maxWriteBatchSize",
        "localTime",
        "logicalSessionTimeoutMinutes",
        "connectionId",
        "minWireVersion",
        "maxWireVersion",
        "readOnly",
        "helloOk",
        "compression",
        "windrow",
        "ok",
    ];
    assert_eq!(names(&reply), expected);
    assert_eq!(reply.get("maxWireVersion"), Some(ValueRef::Int32(25)));
    let agreed: Vec<_> = reply
        .get("compression")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .collect();
    assert_eq!(
        agreed,
        [ValueRef::String("zstd"), ValueRef::String("snappy")]
    );
    let again = client.command(&doc! { "isMaster": 1, "$db": "admin" });
    assert_eq!(again.get("ismaster"), Some(ValueRef::Bool(true)));
    let metadata = doc! { "driver": { "name": "x", "version": "1" }, "os": { "type": "Linux" } };
    let twice = client.command(&doc! { "hello": 1, "client": metadata, "$db": "admin" });
    assert_eq!(code(&twice), 186);
}

#[test]
fn the_first_hello_can_be_an_op_query() {
    let server = start(Config::default());
    let mut client = server.client();
    let query = |document: DocumentBuf| {
        [
            &[0; 4],
            &b"admin.$cmd\0"[..],
            &[0; 4],
            &(-1i32).to_le_bytes(),
            document.as_bytes(),
        ]
        .concat()
    };
    client.send(2004, &query(doc! { "isMaster": 1 }));
    let reply = client.receive().unwrap();
    assert_eq!((reply.op_code, reply.response_to), (1, 77));
    assert!(is_ok(&reply.document));
    client.send(2004, &query(doc! { "find": "c" }));
    assert_eq!(code(&client.receive().unwrap().document), 352);
    assert!(is_ok(&client.command(&doc! { "ping": 1, "$db": "admin" })));
}

#[test]
fn an_exhaust_hello_repeats_until_the_stop() {
    let server = start(Config::default());
    let mut client = server.client();
    let first = client.command(&doc! { "hello": 1, "$db": "admin" });
    let known = first.get("topologyVersion").unwrap();
    let watch = doc! { "hello": 1, "topologyVersion": known, "maxAwaitTimeMS": 50, "$db": "admin" };
    client.send_message(EXHAUST_ALLOWED, &watch);
    let started = Instant::now();
    let mut previous = 77;
    for _ in 0..3 {
        let reply = client.receive().unwrap();
        assert_eq!(
            (reply.flags & MORE_TO_COME, reply.response_to),
            (MORE_TO_COME, previous)
        );
        previous = reply.request_id;
    }
    assert!(started.elapsed() >= Duration::from_millis(150));

    let mut waiting = server.client();
    let mut other = server.client();
    let patient =
        doc! { "hello": 1, "topologyVersion": known, "maxAwaitTimeMS": 60_000, "$db": "admin" };
    waiting.send_message(0, &patient);
    while server.state.operation_count() < 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let started = Instant::now();
    assert!(is_ok(
        &other.command(&doc! { "shutdown": 1, "$db": "admin" })
    ));
    assert_eq!(code(&waiting.receive().unwrap().document), 91);
    assert!(waiting.receive().is_none() && other.receive().is_none());
    server.wait();
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn requests_without_a_reply_get_none() {
    let server = start(Config::default());
    let mut client = server.client();
    client.send_message(MORE_TO_COME, &doc! { "ping": 1, "$db": "admin" });
    client.send_message(0, &doc! { "whatsmyuri": 1, "$db": "admin" });
    assert!(client.receive().unwrap().document.get("you").is_some());
}

#[test]
fn operations_are_listed_and_interrupted() {
    let server = start(Config::default());
    let mut client = server.client();
    let reply = client.command(&doc! { "currentOp": 1, "op": "command", "$db": "admin" });
    let shown = reply.get("inprog").unwrap().as_array().unwrap();
    let op = shown.get(0).unwrap().as_document().unwrap();
    assert_eq!(op.get("ns").unwrap().as_str(), Some("admin.$cmd"));
    assert_eq!(
        op.get("command")
            .unwrap()
            .as_document()
            .unwrap()
            .first()
            .unwrap()
            .0,
        "currentOp"
    );
    let none = client.command(&doc! { "currentOp": 1, "op": "insert", "$db": "admin" });
    assert!(none.get("inprog").unwrap().as_array().unwrap().is_empty());
    let killed = client.command(&doc! { "killOp": 1, "op": i32::MAX, "$db": "admin" });
    assert!(is_ok(&killed));
    assert_eq!(
        code(&client.command(&doc! { "killOp": 1, "op": "x", "$db": "admin" })),
        14
    );
}
