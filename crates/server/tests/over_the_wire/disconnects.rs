//! Invalid messages and disconnects of one client do not affect other clients.

use crate::client::{Client, code, is_ok, start};
use windrow_document::doc;
use windrow_server::Config;

fn ping() -> windrow_document::DocumentBuf {
    doc! { "ping": 1, "$db": "admin" }
}

#[test]
fn malformed_bytes_close_their_connection_with_a_logged_reason() {
    let server = start(Config::default());
    let mut bystander = server.client();
    assert!(is_ok(&bystander.command(&ping())));
    let check = |bytes: &[u8], reason: &str| {
        use std::io::Write;
        let mut client = server.client();
        client.0.write_all(bytes).unwrap();
        assert!(client.receive().is_none(), "{reason}");
        // The reason is logged before the thread ends, and the connection is closed after that.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !server.has_logged(reason) && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(server.has_logged(reason), "{reason}");
    };
    check(
        b"GET / HTTP/1.1\r\n\r\n",
        "a message states a length of 542393671 bytes",
    );
    check(&[0xFF; 64], "a message states a length of -1 bytes");
    check(
        &[&[20, 0, 0, 0][..], &[0; 8], &2002i32.to_le_bytes(), &[0; 4]].concat(),
        "OP_INSERT",
    );
    check(
        &[
            &[21, 0, 0, 0][..],
            &[0; 8],
            &2013i32.to_le_bytes(),
            &[0, 0, 0, 0, 9],
        ]
        .concat(),
        "unknown kind 9",
    );
    assert!(is_ok(&bystander.command(&ping())));
}

#[test]
fn invalid_bson_is_refused_with_a_reply() {
    let server = start(Config::default());
    let mut client = server.client();
    let mut body = doc! { "ping": "abc", "$db": "admin" }.into_bytes();
    let place = body.windows(3).position(|three| three == b"abc").unwrap();
    body[place] = 0xFF;
    client.send(2013, &[&[0; 5][..], &body].concat());
    assert_eq!(code(&client.receive().unwrap().document), 22);
    assert!(
        is_ok(&client.command(&ping())),
        "bad text does not cost the connection"
    );

    body[4] = 0x77;
    client.send(2013, &[&[0; 5][..], &body].concat());
    assert_eq!(code(&client.receive().unwrap().document), 22);
    assert!(client.receive().is_none(), "a broken structure does");
}

#[test]
fn a_disconnect_within_a_message_is_not_logged() {
    let server = start(Config::default());
    for length in [1, 15, 16, 40] {
        use std::io::Write;
        let mut client = server.client();
        let message = [
            &[200, 0, 0, 0][..],
            &[0; 8],
            &2013i32.to_le_bytes(),
            &[0; 184],
        ]
        .concat();
        client.0.write_all(&message[..length]).unwrap();
    }
    assert!(is_ok(&server.client().command(&ping())));
    assert!(!server.has_logged("malformed"));
}

#[test]
fn excess_connections_are_refused_with_an_error() {
    let server = start(Config {
        connections_max: 2,
        ..Config::default()
    });
    let mut kept: Vec<Client> = (0..2).map(|_| server.client()).collect();
    kept.iter_mut()
        .for_each(|client| assert!(is_ok(&client.command(&ping()))));
    let mut refused = server.client();
    refused.send_message(0, &doc! { "hello": 1, "$db": "admin" });
    let reply = refused.receive().unwrap().document;
    assert_eq!(
        reply.get("codeName").unwrap().as_str(),
        Some("ResourceExhausted")
    );
    assert!(refused.receive().is_none());
    assert!(server.has_logged("too many open connections"));

    drop(kept.pop());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while server.state.connection_count() > 1 && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(
        is_ok(&server.client().command(&ping())),
        "room again once one has gone"
    );
}
