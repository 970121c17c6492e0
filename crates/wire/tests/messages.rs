//! Valid and invalid messages through the public interface.

use windrow_document::{DocumentBuf, doc};
use windrow_wire::{
    CommandError, Header, OpCode, Reply, Request, RequestError, WireError, write_reply,
};

const HEADER_BYTES: usize = 16;

fn frame(op_code: i32, content: &[u8]) -> Vec<u8> {
    let header = Header {
        length: HEADER_BYTES + content.len(),
        request_id: 42,
        response_to: 0,
        op_code: OpCode(op_code),
    };
    [&header.to_bytes(), content].concat()
}

fn body(document: &DocumentBuf) -> Vec<u8> {
    [&[0], document.as_bytes()].concat()
}

fn sequence(name: &str, documents: &[DocumentBuf]) -> Vec<u8> {
    let documents: Vec<u8> = documents
        .iter()
        .flat_map(|it| it.as_bytes().to_vec())
        .collect();
    let size = (4 + name.len() + 1 + documents.len()) as i32;
    [
        &[1],
        &size.to_le_bytes()[..],
        name.as_bytes(),
        &[0],
        &documents,
    ]
    .concat()
}

fn message<S: AsRef<[u8]>>(flags: u32, sections: &[S]) -> Vec<u8> {
    let sections: Vec<u8> = sections
        .iter()
        .flat_map(|it| it.as_ref().to_vec())
        .collect();
    frame(2013, &[&flags.to_le_bytes()[..], &sections].concat())
}

fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() as i32 + 4;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes);
    [bytes, checksum.to_le_bytes().to_vec()].concat()
}

fn query(collection: &str, document: &DocumentBuf) -> Vec<u8> {
    let suffix = [&[0; 5], &(-1i32).to_le_bytes()[..], document.as_bytes()].concat();
    frame(2004, &[&[0; 4], collection.as_bytes(), &suffix].concat())
}

fn parse(bytes: Vec<u8>) -> Result<Request, RequestError> {
    let header = Header::parse(bytes.first_chunk().unwrap()).map_err(RequestError::Close)?;
    Request::parse(&header, bytes, &mut Vec::new())
}

fn insert_body() -> DocumentBuf {
    doc! { "insert": "c", "ordered": true, "$db": "test" }
}

#[test]
fn requests_have_a_command_and_a_database() {
    let check = |bytes: Vec<u8>, command: &str, database: &str| {
        let request = parse(bytes).unwrap();
        assert_eq!((request.command(), request.database()), (command, database));
    };
    let ping = doc! { "ping": 1, "comment": { "a": "ä" }, "$db": "größe" };
    check(message(0, &[body(&ping)]), "ping", "größe");
    check(with_checksum(message(1, &[body(&ping)])), "ping", "größe");
    check(message(1 << 16, &[body(&ping)]), "ping", "größe");
    check(message(1 << 31, &[body(&ping)]), "ping", "größe");
    check(message(0, &[body(&doc! { "$db": "x" })]), "$db", "x");
    check(
        query("admin.$cmd", &doc! { "isMaster": 1 }),
        "isMaster",
        "admin",
    );
    let wrapped =
        doc! { "$query": { "hello": 1, "a": 2 }, "$readPreference": { "mode": "nearest" } };
    check(query("a.b.$cmd", &wrapped), "hello", "a.b");
}

#[test]
fn documents_are_a_sequence_or_an_array() {
    let documents: Vec<DocumentBuf> = (0..1000)
        .map(|n| doc! { "_id": n, "text": (format!("text {n}")) })
        .collect();
    let list: Vec<windrow_document::Value> = documents.iter().map(|it| it.clone().into()).collect();
    let mut with_array = insert_body();
    with_array.push("documents", list);
    let messages = [
        message(
            0,
            &[body(&insert_body()), sequence("documents", &documents)],
        ),
        message(
            0,
            &[sequence("documents", &documents), body(&insert_body())],
        ),
        with_checksum(message(
            1,
            &[body(&insert_body()), sequence("documents", &documents)],
        )),
        message(0, &[body(&with_array)]),
    ];
    for bytes in messages {
        let request = parse(bytes).unwrap();
        let found = request.documents("documents").unwrap().unwrap();
        assert_eq!(found.count(), 1000);
        assert!(
            found
                .iter()
                .zip(&documents)
                .all(|(found, sent)| found == sent.as_document())
        );
        let ranges: Vec<_> = (0..1000).map(|index| found.range(index).unwrap()).collect();
        assert_eq!(found.extent(), ranges[0].start..ranges[999].end);
        assert_eq!(&found.buffer()[ranges[7].clone()], documents[7].as_bytes());
        assert!(request.documents("updates").unwrap().is_none());
    }
}

#[test]
fn documents_of_another_type_are_refused() {
    let wrong = doc! { "insert": "c", "documents": 5, "$db": "test" };
    let request = parse(message(0, &[body(&wrong)])).unwrap();
    let error = request.documents("documents").unwrap_err();
    assert_eq!(error.code.number(), 14);
    assert!(
        error
            .message
            .contains("'insert.documents' is the wrong type 'int'"),
        "{error}"
    );
}

#[test]
fn invalid_documents_are_reported_to_the_client() {
    let check = |bytes: Vec<u8>, code: i32, closes: bool| match parse(bytes) {
        Err(RequestError::Reply { error, close, .. }) => {
            assert_eq!((error.code.number(), close), (code, closes), "{error}");
        }
        other => panic!("{code}: {other:?}"),
    };
    let insert = body(&insert_body());
    let documents = [doc! { "a": 1 }];
    check(message(0, &[body(&doc! { "ping": 1 })]), 40571, false);
    check(
        message(0, &[body(&doc! { "ping": 1, "$db": 5 })]),
        14,
        false,
    );
    let twice = [
        insert.clone(),
        sequence("documents", &documents),
        sequence("documents", &documents),
    ];
    check(message(0, &twice), 40431, false);
    check(
        message(0, &[insert.clone(), sequence("ordered", &documents)]),
        40433,
        false,
    );

    let mut not_utf8 = message(0, &[body(&doc! { "ping": "abc", "$db": "a" })]);
    let offset = not_utf8
        .windows(3)
        .position(|window| window == b"abc")
        .unwrap();
    not_utf8[offset] = 0xFF;
    check(not_utf8, 22, false);
    let mut deep = doc! {};
    (0..200).for_each(|_| deep = doc! { "a": (deep.clone()) });
    deep.push("$db", "a");
    check(message(0, &[body(&deep)]), 15, false);
    let mut wrong_type = message(0, &[body(&doc! { "ping": 1, "$db": "a" })]);
    wrong_type[25] = 0x55;
    check(wrong_type, 22, true);
    let large = doc! { "a": ("x".repeat(16_793_600)), "$db": "a" };
    check(message(0, &[body(&large)]), 10334, false);

    check(query("a.b", &doc! {}), 5_739_101, false);
    check(query("a.$cmd", &doc! { "find": "c" }), 352, false);
}

#[test]
fn protocol_violations_close_the_connection() {
    let check = |bytes: Vec<u8>, reason: &str| match parse(bytes) {
        Err(RequestError::Close(error)) => {
            assert!(error.to_string().contains(reason), "{reason}: {error}");
        }
        other => panic!("{reason}: {other:?}"),
    };
    let ping = body(&doc! { "ping": 1, "$db": "a" });
    let documents = [doc! { "a": 1 }];
    check(message::<Vec<u8>>(0, &[]), "no body");
    check(message(0, &[ping.clone(), ping.clone()]), "a second body");
    check(message(0, &[ping.clone(), vec![2, 0]]), "unknown kind 2");
    check(message(4, &[&ping]), "unknown flags");
    check(message(1, &[&ping]), "checksum");
    check(frame(2013, &[0, 0]), "ends inside the flags");
    check(
        message(0, &[vec![0, 200, 0, 0, 0]]),
        "states a length of 200",
    );
    check(message(0, &[vec![0, 4, 0, 0, 0]]), "states a length of 4");
    check(
        message(0, &[ping.clone(), vec![1, 9, 0, 0, 0, b'a', b'b']]),
        "states a length of 9",
    );
    check(
        message(0, &[ping.clone(), vec![1, 6, 0, 0, 0, b'a', b'b']]),
        "ends inside the name",
    );
    check(
        message(0, &[ping.clone(), vec![1, 6, 0, 0, 0, 0xFF, 0]]),
        "is not UTF-8",
    );
    let three = ["a", "b", "c"].map(|name| sequence(name, &documents));
    check(
        message(0, &[vec![ping], three.to_vec()].concat().to_vec()),
        "more than two",
    );
    for op_code in [1, 2001, 2002, 2005, 2006, 2007, 2010, 0, -1] {
        check(frame(op_code, &[0; 20]), "is not supported");
    }
    check(
        frame(2004, &[0, 0, 0, 0, b'a']),
        "ends inside the collection",
    );
    check(frame(2012, &[0; 3]), "ends inside the original operation");
}

#[test]
fn truncated_and_corrupted_messages_never_panic() {
    let documents = [doc! { "_id": 1, "a": [1, { "b": "c" }] }, doc! { "_id": 2 }];
    let whole = message(
        0,
        &[body(&insert_body()), sequence("documents", &documents)],
    );
    for length in HEADER_BYTES..whole.len() {
        let mut bytes = whole[..length].to_vec();
        bytes[..4].copy_from_slice(&(length as i32).to_le_bytes());
        let complete = parse(bytes).is_ok_and(|request| request.documents("documents").is_ok());
        let ends_between_sections = length == whole.len() - sequence("documents", &documents).len();
        assert_eq!(complete, ends_between_sections, "{length}");
    }
    for offset in HEADER_BYTES..whole.len() {
        for flip in [0x01, 0x80, 0xFF] {
            let mut bytes = whole.clone();
            bytes[offset] ^= flip;
            if let Ok(request) = parse(bytes) {
                let found = request.documents("documents");
                assert!(
                    found.is_err()
                        || found.is_ok_and(|found| found.is_none_or(|found| found.count() < 3))
                );
            }
        }
    }
}

#[test]
fn replies_have_the_format_of_their_request() {
    let written = |bytes: Vec<u8>, reply: &Reply| {
        let to = parse(bytes).unwrap().reply_to();
        let mut output = Vec::new();
        let count = write_reply(&mut output, &to, reply, 7, &mut Vec::new()).unwrap();
        assert_eq!(count, output.len());
        output
    };
    let ok = Reply::ok(doc! { "n": 1 });
    let ping = body(&doc! { "ping": 1, "$db": "a" });
    let plain = written(message(0, &[&ping]), &ok);
    assert_eq!(plain[16..21], [0, 0, 0, 0, 0]);
    assert_eq!(&plain[21..], ok.to_document().as_bytes());

    let checked = written(with_checksum(message(1, &[&ping])), &ok);
    assert_eq!(checked[16], 1);
    let (content, checksum) = checked.split_last_chunk::<4>().unwrap();
    assert_eq!(u32::from_le_bytes(*checksum), crc32c::crc32c(content));

    let legacy = written(query("admin.$cmd", &doc! { "hello": 1 }), &ok);
    assert_eq!(legacy[12..16], 1i32.to_le_bytes());
    assert_eq!(
        legacy[16..36],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    );
    let failure = Reply::from(&CommandError::new(windrow_wire::ErrorCode::BadValue, "no"));
    let legacy = written(query("admin.$cmd", &doc! { "hello": 1 }), &failure);
    assert_eq!(legacy[16..20], 2i32.to_le_bytes());

    let more = written(message(0, &[ping]), &ok.with_more_to_come());
    assert_eq!(more[16..20], 2i32.to_le_bytes());
}

#[test]
fn compressed_requests_get_compressed_replies() {
    use windrow_wire::compression::{compress_message, decompress_message};
    let documents: Vec<DocumentBuf> = (0..100).map(|n| doc! { "_id": n }).collect();
    let insert = message(
        0,
        &[body(&insert_body()), sequence("documents", &documents)],
    );
    for compressor in windrow_wire::Compressor::ALL {
        let mut compressed = Vec::new();
        compress_message(compressor, &insert, &mut compressed).unwrap();
        let request = parse(compressed).unwrap();
        assert_eq!(
            request.documents("documents").unwrap().unwrap().count(),
            100
        );
        let (large, small) = (
            Reply::ok(doc! { "a": ("x".repeat(500)) }),
            Reply::ok(doc! {}),
        );
        let mut output = Vec::new();
        write_reply(&mut output, &request.reply_to(), &large, 7, &mut Vec::new()).unwrap();
        let header = Header::parse(output.first_chunk().unwrap()).unwrap();
        assert_eq!(header.op_code, OpCode::COMPRESSED);
        let mut decompressed = Vec::new();
        let (_, used) = decompress_message(&header, &output, &mut decompressed).unwrap();
        assert_eq!(
            (used, &decompressed[21..]),
            (compressor, large.to_document().as_bytes())
        );
        output.clear();
        write_reply(&mut output, &request.reply_to(), &small, 7, &mut Vec::new()).unwrap();
        assert_eq!(
            Header::parse(output.first_chunk().unwrap())
                .unwrap()
                .op_code,
            OpCode::MSG
        );
    }
}

#[test]
fn more_to_come_requests_expect_no_reply() {
    let ping = body(&doc! { "ping": 1, "$db": "a" });
    assert!(
        !parse(message(2, &[&ping]))
            .unwrap()
            .reply_to()
            .expects_reply()
    );
    assert!(
        parse(message(0, &[&ping]))
            .unwrap()
            .reply_to()
            .expects_reply()
    );
    assert!(parse(message(1 << 16, &[ping])).unwrap().exhaust_allowed());
}

#[test]
fn errors_are_sentences() {
    let error = Header::parse(&[0xFF; 16]).unwrap_err();
    assert!(matches!(error, WireError::MessageLength { length: -1 }));
    assert_eq!(
        error.to_string(),
        "a message states a length of -1 bytes; it must be from 16 to 48000000"
    );
}
