//! A client of MongoDB's wire protocol: one connection, one command at a time, each until its
//! reply.
//!
//! Not here: how a connection is opened. The caller passes a stream, a socket of any kind or one
//! end of a pair.
//!
//! [`Client`] runs commands and reads cursors, and logs in by SCRAM. [`server_status`] reads the
//! numbers of a server.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod server_status;

use std::fmt;
use std::io::{Read, Write};

use windrow_access::Mechanism;
use windrow_access::scram::ClientConversation;
use windrow_document::{Array, Document, Value, ValueRef, doc};
use windrow_wire::header::HEADER_BYTES;
use windrow_wire::{Header, OpCode, WireError, read_header, read_message};

/// The offset of the body: it follows the flags of OP_MSG and the kind of its first section.
const BODY_OFFSET: usize = HEADER_BYTES + 5;

/// A connection to a server.
pub struct Client {
    /// How errors name the server.
    address: String,
    stream: Box<dyn Stream>,
    reply: Vec<u8>,
    request_id: i32,
}

/// A stream of bytes to a server and back.
pub trait Stream: Read + Write + Send {}

impl<T: Read + Write + Send> Stream for T {}

/// An argument of a command that follows the command's document in a message.
#[derive(Debug, Clone, Copy)]
pub struct DocumentSequence<'a> {
    /// The name of the argument.
    pub name: &'a str,
    /// Its BSON documents, concatenated.
    pub documents: &'a [u8],
}

/// Why a command failed. The text is a sentence.
#[derive(Debug)]
pub enum ClientError {
    /// The server cannot be reached or violates the protocol.
    Connection {
        /// The server.
        address: String,
        /// A phrase.
        reason: String,
    },
    /// The server replied with an error.
    Command {
        /// MongoDB's number of the error.
        code: i32,
        /// Its sentence.
        message: String,
    },
}

impl Client {
    /// Creates a client of a stream. Errors name the server as `address`.
    pub fn new(address: String, stream: Box<dyn Stream>) -> Client {
        Client {
            address,
            stream,
            reply: Vec::new(),
            request_id: 0,
        }
    }

    /// Returns the strongest mechanism that a user has.
    fn mechanism_of(&mut self, user: &str, database: &str) -> Result<Mechanism, ClientError> {
        let hello = doc! {
            "hello": 1, "saslSupportedMechs": (format!("{database}.{user}")), "$db": "admin",
        };
        let reply = self.run(hello.as_document(), None)?;
        let known = reply.get("saslSupportedMechs").and_then(ValueRef::as_array);
        let mut known = known.into_iter().flatten().filter_map(ValueRef::as_str);
        let strongest = Mechanism::ScramSha256;
        // A server that does not name the mechanisms of the user supports the strongest one.
        let is_supported = known.any(|name| name == strongest.name());
        if is_supported || reply.get("saslSupportedMechs").is_none() {
            Ok(strongest)
        } else {
            Ok(Mechanism::ScramSha1)
        }
    }

    /// Logs in by SCRAM, with the strongest mechanism of the user if none is given.
    ///
    /// # Errors
    /// Fails if the server does not accept the password, or cannot prove that it knows it.
    pub fn log_in(
        &mut self,
        user: &str,
        database: &str,
        mechanism: Option<Mechanism>,
        password: &str,
    ) -> Result<(), ClientError> {
        let mechanism = match mechanism {
            Some(mechanism) => mechanism,
            None => self.mechanism_of(user, database)?,
        };
        let invalid = |reason: &dyn fmt::Display, address: &str| {
            ClientError::connection(address, &format!("the login failed: {reason}"))
        };
        let address = self.address.clone();
        let nonce = nonce().map_err(|error| invalid(&error, &address))?;
        let conversation = ClientConversation::start(mechanism, user, &nonce);
        let start = doc! {
            "saslStart": 1, "mechanism": (mechanism.name()),
            "payload": (payload(conversation.first())),
            "options": { "skipEmptyExchange": true }, "$db": database,
        };
        let reply = parse_sasl(self.run(start.as_document(), None)?);
        let (id, reply) = reply.ok_or_else(|| invalid(&"an invalid reply", &address))?;
        let proof = conversation.prove(password, &reply);
        let proof = proof.map_err(|error| invalid(&error, &address))?;
        let proceed = doc! {
            "saslContinue": 1, "conversationId": id, "payload": (payload(proof.message())),
            "$db": database,
        };
        let reply = parse_sasl(self.run(proceed.as_document(), None)?);
        let (_, reply) = reply.ok_or_else(|| invalid(&"an invalid reply", &address))?;
        proof
            .check(&reply)
            .map_err(|error| invalid(&error, &address))
    }

    /// Runs a command. A large argument can follow it as a document sequence.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, or with its error.
    pub fn run(
        &mut self,
        command: Document<'_>,
        sequence: Option<DocumentSequence<'_>>,
    ) -> Result<Document<'_>, ClientError> {
        let reply = self.exchange(command, sequence.as_slice())?;
        let is_ok = reply.get("ok").and_then(ValueRef::as_f64) == Some(1.0);
        if is_ok {
            return Ok(reply);
        }
        let code = reply.get("code").and_then(ValueRef::as_whole);
        let message = reply.get("errmsg").and_then(ValueRef::as_str);
        Err(ClientError::Command {
            code: code.and_then(|code| i32::try_from(code).ok()).unwrap_or(0),
            message: message
                .unwrap_or("the server returned no error message")
                .to_owned(),
        })
    }

    /// Sends a command, and returns the reply to it, whether it succeeded or not.
    ///
    /// # Errors
    /// Fails if the server cannot be reached.
    pub fn exchange(
        &mut self,
        command: Document<'_>,
        sequences: &[DocumentSequence<'_>],
    ) -> Result<Document<'_>, ClientError> {
        self.request_id = self.request_id.wrapping_add(1);
        let message = encode_message(self.request_id, command, sequences);
        let written = self.stream.write_all(&message);
        written.map_err(|error| ClientError::connection(&self.address, &error))?;
        let address = self.address.clone();
        let reply = self.read_reply();
        reply.map_err(|reason| ClientError::connection(&address, &reason))
    }

    fn read_reply(&mut self) -> Result<Document<'_>, String> {
        let to_text = |error: WireError| error.to_string();
        let header = read_header(&mut self.stream).map_err(to_text)?;
        let header = header.ok_or("it closed the connection")?;
        read_message(&mut self.stream, &header, &mut self.reply).map_err(to_text)?;
        if header.op_code != OpCode::MSG {
            return Err(format!("it replied with {}", header.op_code.name()));
        }
        let body = self.reply.get(BODY_OFFSET..).unwrap_or_default();
        Document::from_bytes(body).map_err(|error| error.to_string())
    }

    /// Runs a command with a cursor and calls `sink` with all of its documents, until `sink`
    /// returns `false`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn for_each_document(
        &mut self,
        command: Document<'_>,
        sink: &mut dyn FnMut(Document<'_>) -> bool,
    ) -> Result<(), ClientError> {
        let database = command.get("$db").and_then(ValueRef::as_str);
        let database = database.unwrap_or("admin").to_owned();
        let collection = command.first().and_then(|(_, value)| value.as_str());
        let collection = collection.unwrap_or_default().to_owned();
        let mut next = command.to_buf();
        loop {
            let reply = self.run(next.as_document(), None)?;
            let Some(CursorBatch { documents, id }) = parse_cursor_batch(reply) else {
                let reason = format!("it replied without a batch of documents: {reply}");
                return Err(ClientError::connection(&self.address, &reason));
            };
            for document in documents {
                if document
                    .as_document()
                    .is_some_and(|document| !sink(document))
                {
                    return Ok(());
                }
            }
            if id == 0 {
                return Ok(());
            }
            next = doc! {
                "getMore": id, "collection": (collection.clone()), "$db": (database.clone()),
            };
        }
    }
}

/// The random bytes of a nonce.
const NONCE_BYTES: usize = 24;

fn nonce() -> Result<String, getrandom::Error> {
    let mut bytes = [0; NONCE_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn payload(message: &str) -> Value {
    Value::Binary {
        subtype: 0,
        bytes: message.as_bytes().to_vec(),
    }
}

/// The id and the payload of a reply of a login.
fn parse_sasl(reply: Document<'_>) -> Option<(i64, Vec<u8>)> {
    let id = reply.get("conversationId")?.as_whole()?;
    match reply.get("payload")? {
        ValueRef::Binary { bytes, .. } => Some((id, bytes.to_vec())),
        _ => None,
    }
}

/// A part of a cursor's documents.
struct CursorBatch<'a> {
    documents: Array<'a>,
    /// The id of the cursor. Zero after its last batch.
    id: i64,
}

fn parse_cursor_batch(reply: Document<'_>) -> Option<CursorBatch<'_>> {
    let cursor = reply.get("cursor")?.as_document()?;
    let batch = cursor.get("firstBatch").or(cursor.get("nextBatch"))?;
    Some(CursorBatch {
        documents: batch.as_array()?,
        id: cursor.get("id")?.as_whole()?,
    })
}

/// Encodes an OP_MSG.
fn encode_message(
    request_id: i32,
    command: Document<'_>,
    sequences: &[DocumentSequence<'_>],
) -> Vec<u8> {
    let mut bytes = vec![0; BODY_OFFSET];
    bytes.extend_from_slice(command.as_bytes());
    for DocumentSequence { name, documents } in sequences {
        let length = 4 + name.len() + 1 + documents.len();
        bytes.push(1);
        bytes.extend_from_slice(&(length as i32).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(documents);
    }
    let header = Header {
        length: bytes.len(),
        request_id,
        response_to: 0,
        op_code: OpCode::MSG,
    };
    bytes[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    bytes
}

impl ClientError {
    /// The error of a server that cannot be reached.
    pub fn connection(address: &str, reason: &dyn fmt::Display) -> ClientError {
        ClientError::Connection {
            address: address.to_owned(),
            reason: reason.to_string(),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Connection { address, reason } => {
                write!(formatter, "the server at {address}: {reason}")
            }
            ClientError::Command { code, message } => {
                write!(formatter, "the server replied: {message} (code {code})")
            }
        }
    }
}

impl std::error::Error for ClientError {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use windrow_document::DocumentBuf;
    use windrow_wire::{Batch, CommandError, ErrorCode, Reply, Request, write_reply};

    /// A server for a single connection that sends these replies. Returns the received documents.
    fn serve(replies: Vec<Reply>) -> (String, thread::JoinHandle<Vec<DocumentBuf>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut spare, mut received) = (Vec::new(), Vec::new());
            for reply in replies {
                let header = read_header(&mut stream).unwrap().unwrap();
                let mut buffer = Vec::new();
                read_message(&mut stream, &header, &mut buffer).unwrap();
                let request = Request::parse(&header, buffer, &mut spare).unwrap();
                received.push(request.body().to_buf());
                if let Ok(Some(documents)) = request.documents("documents") {
                    received.extend(documents.iter().map(Document::to_buf));
                }
                write_reply(&mut stream, &request.reply_to(), &reply, 1, &mut spare).unwrap();
            }
            received
        });
        (address, served)
    }

    fn connect(address: &str) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        Client::new(address.to_owned(), Box::new(stream))
    }

    #[test]
    fn commands_and_documents_are_sent() {
        let (address, served) = serve(vec![Reply::ok(doc! { "n": 2 })]);
        let mut client = connect(&address);
        let command = doc! { "insert": "c", "$db": "d" };
        let documents = [doc! { "_id": 1 }, doc! { "_id": 2 }];
        let bytes: Vec<u8> = documents
            .iter()
            .flat_map(|it| it.as_bytes().to_vec())
            .collect();
        let sequence = DocumentSequence {
            name: "documents",
            documents: &bytes,
        };
        let reply = client.run(command.as_document(), Some(sequence)).unwrap();
        assert_eq!(reply.get("n"), Some(ValueRef::Int32(2)));
        let [first, second] = documents;
        assert_eq!(served.join().unwrap(), [command, first, second]);
    }

    #[test]
    fn all_batches_of_a_cursor_are_read() {
        let batch = |numbers: &[i32]| {
            let documents: Vec<_> = numbers
                .iter()
                .map(|number| doc! { "a": (*number) })
                .collect();
            documents
                .iter()
                .map(DocumentBuf::as_document)
                .collect::<Batch>()
        };
        let replies = vec![
            Reply::first_batch("d.c", 7, batch(&[1, 2])),
            Reply::next_batch("d.c", 0, batch(&[3])),
        ];
        let (address, served) = serve(replies);
        let mut client = connect(&address);
        let mut found = Vec::new();
        let command = doc! { "find": "c", "$db": "d" };
        client
            .for_each_document(command.as_document(), &mut |document| {
                found.push(document.get("a").and_then(ValueRef::as_whole).unwrap());
                true
            })
            .unwrap();
        assert_eq!(found, [1, 2, 3]);
        let more = doc! { "getMore": 7i64, "collection": "c", "$db": "d" };
        assert_eq!(served.join().unwrap(), [command, more]);
    }

    /// A reply without a cursor counted as the end of the documents.
    #[test]
    fn a_reply_without_a_batch_is_an_error() {
        let (address, served) = serve(vec![Reply::ok(doc! { "n": 1 })]);
        let mut client = connect(&address);
        let command = doc! { "find": "c", "$db": "d" };
        let read = client.for_each_document(command.as_document(), &mut |_| true);
        let error = read.unwrap_err().to_string();
        assert!(error.contains("without a batch"), "{error}");
        served.join().unwrap();
    }

    #[test]
    fn errors_are_sentences() {
        let error = CommandError::new(ErrorCode(27), "text index required");
        let (address, served) = serve(vec![Reply::from_document(error.to_document())]);
        let mut client = connect(&address);
        let command = doc! { "find": "c", "$db": "d" };
        let error = client.run(command.as_document(), None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the server replied: text index required (code 27)"
        );
        served.join().unwrap();
        let error = client.run(command.as_document(), None).unwrap_err();
        assert!(error.to_string().contains(&address), "{error}");
    }
}
