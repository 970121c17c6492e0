//! A minimal client: sockets and precomputed messages, so that it uses as little processor time as
//! possible.
//!
//! The layout of OP_MSG:
//!
//! ```text
//! length i32 | request i32 | response to i32 | 2013 i32 | flags u32
//! 0 u8 | the command, a document
//! 1 u8 | length i32 | "documents\0" | the documents
//! ```

use std::io::{Read, Write};

use crate::bson::{self, Document, Value, Writer};
use crate::error::{At, BenchError};

const OP_MSG: u32 = 2013;
/// The flag of a message without a reply.
const MORE_TO_COME: u32 = 1 << 1;
/// The flags and the kind of the first section, before a reply's document.
const REPLY_PREFIX: usize = 5;
const HEADER: usize = 16;

/// A socket, with TLS or without.
pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// A connection to a server.
pub struct Connection {
    stream: Box<dyn Stream>,
    reply: Vec<u8>,
}

/// When an insert is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Concern {
    /// `w: 0`: never. The message has no reply.
    Unacknowledged,
    /// `w: 1`: when it is written.
    Acknowledged,
    /// `j: true`: when it is synced.
    Journaled,
}

/// Encodes a command without a document sequence.
pub fn message(database: &str, fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut out = start();
    command(&mut out, database, fill);
    finish(out)
}

/// Encodes a complete command, adding its database.
pub fn message_of(database: &str, command: &[u8]) -> Vec<u8> {
    message(database, |writer| writer.append_fields(command))
}

/// Encodes an insert of concatenated BSON documents.
pub fn insert_message(
    database: &str,
    collection: &str,
    documents: &[u8],
    concern: Concern,
) -> Vec<u8> {
    let mut out = start();
    if concern == Concern::Unacknowledged {
        out[HEADER..].copy_from_slice(&MORE_TO_COME.to_le_bytes());
    }
    out.reserve(documents.len() + 200);
    command(&mut out, database, |writer| {
        writer.string("insert", collection);
        writer.boolean("ordered", true);
        match concern {
            Concern::Unacknowledged => writer.document("writeConcern", |out| out.int32("w", 0)),
            Concern::Acknowledged => writer.document("writeConcern", |out| out.int32("w", 1)),
            Concern::Journaled => writer.document("writeConcern", |out| {
                out.int32("w", 1);
                out.boolean("j", true);
            }),
        }
    });
    let name = b"documents\0";
    out.push(1);
    out.extend_from_slice(&((4 + name.len() + documents.len()) as u32).to_le_bytes());
    out.extend_from_slice(name);
    out.extend_from_slice(documents);
    finish(out)
}

fn start() -> Vec<u8> {
    let mut out = vec![0; HEADER];
    out[4] = 1;
    out[12..].copy_from_slice(&OP_MSG.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out
}

fn command(out: &mut Vec<u8>, database: &str, fill: impl FnOnce(&mut Writer)) {
    out.push(0);
    bson::document(out, |writer| {
        fill(writer);
        writer.string("$db", database);
    });
}

fn finish(mut out: Vec<u8>) -> Vec<u8> {
    let length = (out.len() as u32).to_le_bytes();
    out[..4].copy_from_slice(&length);
    out
}

impl Connection {
    /// Speaks through a socket, whose handshake is over or happens with the first message.
    pub fn new(stream: Box<dyn Stream>) -> Self {
        let reply = Vec::new();
        Self { stream, reply }
    }

    /// Sends a message without a reply.
    pub fn send(&mut self, message: &[u8]) -> Result<(), BenchError> {
        let sent = self.stream.write_all(message);
        sent.and_then(|()| self.stream.flush())
            .at("sending a message")
    }

    /// Sends a message and returns its reply, whether or not it is an error.
    pub fn exchange(&mut self, message: &[u8]) -> Result<Document<'_>, BenchError> {
        self.send(message)?;
        let mut header = [0; HEADER];
        self.stream
            .read_exact(&mut header)
            .at("waiting for a reply")?;
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let length = word(0) as usize;
        if word(12) != OP_MSG || length < HEADER + REPLY_PREFIX {
            return Err(BenchError::Server(format!(
                "a reply of {length} bytes and kind {}",
                word(12)
            )));
        }
        self.reply.resize(length - HEADER, 0);
        self.stream
            .read_exact(&mut self.reply)
            .at("reading a reply")?;
        Document::from_prefix(&self.reply[REPLY_PREFIX..])
            .ok_or_else(|| BenchError::Server("a reply without a document".into()))
    }

    /// Sends a message. Fails if the reply is an error or contains write errors.
    pub fn succeed(&mut self, message: &[u8]) -> Result<Document<'_>, BenchError> {
        let reply = self.exchange(message)?;
        if reply.number("ok") == Some(1.0) && reply.get("writeErrors").is_none() {
            return Ok(reply);
        }
        Err(BenchError::Server(failure(reply)))
    }

    /// Runs a command. Fails if the reply is an error.
    pub fn run(
        &mut self,
        database: &str,
        fill: impl FnOnce(&mut Writer),
    ) -> Result<Document<'_>, BenchError> {
        self.succeed(&message(database, fill))
    }
}

fn failure(reply: Document) -> String {
    let place = ["errmsg", "writeErrors.0.errmsg"];
    let text = place.iter().find_map(|path| match reply.get(path) {
        Some(Value::String(text)) => Some(text.to_owned()),
        _ => None,
    });
    text.unwrap_or_else(|| "a failure without a message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_a_single_section() {
        let found = message("d", |writer| writer.int32("ping", 1));
        let expected = b"\x2f\0\0\0\x01\0\0\0\0\0\0\0\xdd\x07\0\0\0\0\0\0\0\
            \x1a\0\0\0\x10ping\0\x01\0\0\0\x02$db\0\x02\0\0\0d\0\0";
        assert_eq!(found, expected);
    }

    #[test]
    fn inserts_have_a_document_sequence() {
        let documents = [&b"\x05\0\0\0\0"[..], b"\x05\0\0\0\0"].concat();
        let found = insert_message("d", "c", &documents, Concern::Acknowledged);
        assert_eq!(
            found.len() as u32,
            u32::from_le_bytes(found[..4].try_into().unwrap())
        );
        let body = Document::from_prefix(&found[21..]).unwrap();
        assert_eq!(body.get("insert"), Some(Value::String("c")));
        assert_eq!(body.get("$db"), Some(Value::String("d")));
        let rest = &found[21 + body.bytes().len()..];
        assert_eq!(
            rest,
            [&b"\x01\x18\0\0\0documents\0"[..], &documents].concat()
        );
    }

    #[test]
    fn failures_contain_the_servers_message() {
        let check = |fill: fn(&mut Writer), expected: &str| {
            let bytes = bson::build_document(fill);
            assert_eq!(failure(Document::from_prefix(&bytes).unwrap()), expected);
        };
        check(
            |writer| writer.string("errmsg", "no such command"),
            "no such command",
        );
        check(
            |writer| {
                writer.array("writeErrors", |list| {
                    list.document("0", |error| error.string("errmsg", "duplicate"));
                });
            },
            "duplicate",
        );
        check(
            |writer| writer.int32("ok", 0),
            "a failure without a message",
        );
    }
}
