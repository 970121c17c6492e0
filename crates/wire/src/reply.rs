//! Replies and their encoding.

use std::io::{self, IoSlice, Write};

use windrow_document::{Document, DocumentBuf, DocumentBuilder, Timestamp, ValueRef};

use crate::batch::Batch;
use crate::command_error::CommandError;
use crate::compression::{Compressor, pack_message};
use crate::error::WireError;
use crate::header::{HEADER_BYTES, Header, OpCode};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::message::Flags;
use crate::query::QUERY_FAILURE;

/// Smaller replies to compressed requests are sent uncompressed: compression costs more than it
/// saves, and all drivers accept both.
const PACK_BYTES_MIN: usize = 256;

/// The request that a reply belongs to, and how to encode the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    request_id: i32,
    form: Form,
    wanted: bool,
    checksum: bool,
    compressor: Option<Compressor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Message,
    Query,
}

impl ReplyTo {
    pub(crate) fn message(id: i32, flags: Flags, compressor: Option<Compressor>) -> ReplyTo {
        ReplyTo {
            request_id: id,
            form: Form::Message,
            wanted: !flags.has(Flags::MORE_TO_COME),
            checksum: flags.has(Flags::CHECKSUM_PRESENT),
            compressor,
        }
    }

    pub(crate) fn query(id: i32) -> ReplyTo {
        let (form, wanted, checksum, compressor) = (Form::Query, true, false, None);
        ReplyTo {
            request_id: id,
            form,
            wanted,
            checksum,
            compressor,
        }
    }

    /// Returns `true` if the request was an OP_QUERY.
    pub fn is_query(&self) -> bool {
        self.form == Form::Query
    }

    /// Returns `false` if the client does not read a reply to this request.
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// The target of the reply that follows an exhaust reply with the given id.
    pub fn following(self, reply_id: i32) -> ReplyTo {
        ReplyTo {
            request_id: reply_id,
            ..self
        }
    }
}

/// The document of a reply. It is stored in up to three parts, so that a batch is not copied.
///
/// ```
/// use windrow_document::doc;
/// use windrow_wire::Reply;
///
/// let reply = Reply::ok(doc! { "n": 3 });
/// assert_eq!(reply.to_document(), doc! { "n": 3, "ok": 1.0 });
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    head: Vec<u8>,
    batch: Batch,
    tail: Vec<u8>,
    failed: bool,
    more_to_come: bool,
}

/// The offset of the cursor's length in a batch's reply.
const CURSOR_LENGTH: usize = 4 + 8;

impl Reply {
    /// Returns the reply `{…fields, ok: 1}`.
    pub fn ok(mut fields: DocumentBuf) -> Reply {
        fields.push("ok", 1.0);
        Reply::document(fields)
    }

    /// How many bytes its document has.
    pub fn document_bytes(&self) -> usize {
        self.head.len() + self.batch.bytes() + self.tail.len()
    }

    /// Returns a reply that is exactly this document.
    pub fn document(document: DocumentBuf) -> Reply {
        let failed = document.get("ok").is_some_and(|ok| !ok.is_truthy());
        let (head, tail, batch) = (document.into_bytes(), Vec::new(), Batch::new());
        Reply {
            head,
            batch,
            tail,
            failed,
            more_to_come: false,
        }
    }

    /// Returns `{cursor: {firstBatch: […], id, ns}, ok: 1}`, the reply of `find` and `aggregate`.
    pub fn first_batch(namespace: &str, cursor_id: i64, batch: Batch) -> Reply {
        Reply::cursor("firstBatch", namespace, cursor_id, batch)
    }

    /// Returns `{cursor: {nextBatch: […], id, ns}, ok: 1}`, the reply of `getMore`.
    pub fn next_batch(namespace: &str, cursor_id: i64, batch: Batch) -> Reply {
        Reply::cursor("nextBatch", namespace, cursor_id, batch)
    }

    /// ```text
    /// prefix: length | 0x03 "cursor" 0x00 length | 0x04 name 0x00 length
    /// batch:  elements
    /// suffix: 0x00 | 0x12 "id" … | 0x02 "ns" … | 0x00 | 0x01 "ok" … | 0x00
    ///         ends the array        ends the cursor      ends the reply
    /// ```
    fn cursor(name: &str, namespace: &str, cursor_id: i64, batch: Batch) -> Reply {
        let mut rest = DocumentBuilder::new();
        rest.append("id", ValueRef::Int64(cursor_id));
        rest.append("ns", ValueRef::String(namespace));
        let cursor_fields = rest.finish().into_bytes();
        let mut tail = vec![0];
        tail.extend_from_slice(cursor_fields.get(4..).unwrap_or_default());
        let cursor_tail = tail.len();
        tail.extend_from_slice(b"\x01ok\0");
        tail.extend_from_slice(&1f64.to_le_bytes());
        tail.push(0);

        let array_bytes = 4 + batch.bytes() + 1;
        let cursor_bytes = 4 + 1 + name.len() + 1 + array_bytes + cursor_tail - 1;
        let reply_bytes = 4 + 8 + cursor_bytes + tail.len() - cursor_tail;
        let mut head = Vec::with_capacity(32);
        head.extend_from_slice(&(reply_bytes as i32).to_le_bytes());
        head.extend_from_slice(b"\x03cursor\0");
        head.extend_from_slice(&(cursor_bytes as i32).to_le_bytes());
        head.push(4);
        head.extend_from_slice(name.as_bytes());
        head.push(0);
        head.extend_from_slice(&(array_bytes as i32).to_le_bytes());
        Reply {
            head,
            batch,
            tail,
            failed: false,
            more_to_come: false,
        }
    }

    /// Adds `postBatchResumeToken` to the cursor of a change stream's batch.
    pub fn with_resume_token(self, token: Document<'_>) -> Reply {
        let mut element = b"\x03postBatchResumeToken\0".to_vec();
        element.extend_from_slice(token.as_bytes());
        self.with_in_cursor(element)
    }

    /// Adds `atClusterTime` to the cursor of a batch that was read at a snapshot. Other replies are
    /// returned unchanged.
    pub fn with_cursor_time(self, time: Timestamp) -> Reply {
        if self.tail.is_empty() {
            return self;
        }
        let mut element = b"\x11atClusterTime\0".to_vec();
        element.extend_from_slice(&time.bits().to_le_bytes());
        self.with_in_cursor(element)
    }

    fn with_in_cursor(mut self, element: Vec<u8>) -> Reply {
        for place in [0, CURSOR_LENGTH] {
            let length = self.head.get_mut(place..).and_then(<[u8]>::first_chunk_mut);
            if let Some(length) = length {
                let grown = i32::from_le_bytes(*length) + element.len() as i32;
                *length = grown.to_le_bytes();
            }
        }
        // The first byte ends the array.
        self.tail.splice(1..1, element);
        self
    }

    /// Appends fields to the document.
    pub fn with_fields(mut self, fields: Document<'_>) -> Reply {
        let bytes = fields.as_bytes();
        let elements = bytes.get(4..bytes.len().saturating_sub(1));
        let elements = elements.unwrap_or_default().to_vec();
        if let Some(length) = self.head.first_chunk_mut() {
            *length = (i32::from_le_bytes(*length) + elements.len() as i32).to_le_bytes();
        }
        let last = match self.tail.is_empty() {
            true => &mut self.head,
            false => &mut self.tail,
        };
        // The last byte ends the document.
        let end = last.len().saturating_sub(1);
        last.splice(end..end, elements);
        self
    }

    /// Marks the reply as followed by another one without a further request.
    pub fn with_more_to_come(mut self) -> Reply {
        self.more_to_come = true;
        self
    }

    /// Returns `true` if another reply follows without a further request.
    pub fn more_to_come(&self) -> bool {
        self.more_to_come
    }

    /// The size of the document in bytes.
    pub fn bytes(&self) -> usize {
        self.pieces().iter().map(|piece| piece.len()).sum()
    }

    /// Returns a copy of the document, for logs and tests.
    pub fn to_document(&self) -> DocumentBuf {
        DocumentBuf::from_validated(self.pieces().concat())
    }

    /// Returns the batch's buffer for reuse.
    pub fn into_buffer(self) -> Vec<u8> {
        self.batch.into_buffer()
    }

    fn pieces(&self) -> [&[u8]; 3] {
        [&self.head, self.batch.elements(), &self.tail]
    }
}

impl From<&CommandError> for Reply {
    fn from(error: &CommandError) -> Reply {
        Reply::document(error.to_document())
    }
}

/// Encodes and writes a reply in the form of its request: OP_MSG or OP_REPLY, with a checksum if
/// the request had one, compressed with the request's compressor. `reply_id` becomes the message's
/// `request_id`. `scratch` is a buffer for compression. Returns the number of bytes written. Fails
/// if the message exceeds [`MESSAGE_BYTES_MAX`] or the stream fails.
pub fn write_reply(
    stream: &mut impl Write,
    to: &ReplyTo,
    reply: &Reply,
    reply_id: i32,
    scratch: &mut Vec<u8>,
) -> Result<usize, WireError> {
    let prefix = prefix(to, reply);
    let trailer_bytes = if to.checksum { 4 } else { 0 };
    let length = HEADER_BYTES + prefix.len() + reply.bytes() + trailer_bytes;
    if length > MESSAGE_BYTES_MAX {
        return Err(WireError::MessageLength {
            length: i32::try_from(length).unwrap_or(i32::MAX),
        });
    }
    let op_code = if to.is_query() {
        OpCode::REPLY
    } else {
        OpCode::MSG
    };
    let header = Header {
        length,
        request_id: reply_id,
        response_to: to.request_id,
        op_code,
    };
    let header = header.to_bytes();
    let [head, batch, tail] = reply.pieces();
    let parts = [&header[..], &prefix, head, batch, tail];
    let checksum = to.checksum.then(|| checksum(&parts));
    let trailer = checksum.as_ref().map_or(&[][..], |bytes| bytes);
    let [header, prefix, head, batch, tail] = parts;
    let parts = [header, prefix, head, batch, tail, trailer];
    match to.compressor {
        Some(compressor) if length >= PACK_BYTES_MIN => {
            let mut packed = Vec::new();
            scratch.clear();
            parts
                .iter()
                .for_each(|part| scratch.extend_from_slice(part));
            pack_message(compressor, scratch, &mut packed)?;
            stream.write_all(&packed)?;
            Ok(packed.len())
        }
        _ => {
            write_all(stream, &mut parts.map(IoSlice::new))?;
            Ok(length)
        }
    }
}

fn checksum(parts: &[&[u8]]) -> [u8; 4] {
    parts
        .iter()
        .fold(0, |sum, part| crc32c::crc32c_append(sum, part))
        .to_le_bytes()
}

/// The bytes between the header and the document.
fn prefix(to: &ReplyTo, reply: &Reply) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(20);
    match to.form {
        Form::Message => {
            let mut flags = if to.checksum {
                Flags::CHECKSUM_PRESENT.0
            } else {
                0
            };
            flags |= if reply.more_to_come {
                Flags::MORE_TO_COME.0
            } else {
                0
            };
            prefix.extend_from_slice(&flags.to_le_bytes());
            prefix.push(0);
        }
        Form::Query => {
            let flags = if reply.failed { QUERY_FAILURE } else { 0 };
            prefix.extend_from_slice(&flags.to_le_bytes());
            // A zero cursor id and starting point, then the number of documents.
            prefix.extend_from_slice(&[0; 12]);
            prefix.extend_from_slice(&1i32.to_le_bytes());
        }
    }
    prefix
}

/// Writes all parts with as few system calls as the stream allows.
fn write_all(stream: &mut impl Write, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match stream.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut parts, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_document::{Document, Value, doc};

    #[test]
    fn fields_come_behind_all_others() {
        let check = |reply: Reply| {
            let mut expected = reply.to_document();
            expected.push("a", 1);
            expected.push("b", doc! { "c": "x" });
            let added = doc! { "a": 1, "b": { "c": "x" } };
            let found = reply.with_fields(added.as_document()).to_document();
            assert_eq!(found, expected);
            assert!(Document::from_bytes(found.as_bytes()).is_ok());
        };
        check(Reply::ok(doc! { "n": 1 }));
        let one = doc! { "_id": 1 };
        let batch = || std::iter::once(one.as_document()).collect();
        check(Reply::first_batch("a.b", 7, batch()));
        let token = doc! { "_data": "x" };
        check(Reply::next_batch("a.b", 7, batch()).with_resume_token(token.as_document()));
    }

    #[test]
    fn a_cursor_reply_is_the_document_that_it_says() {
        for count in [0, 1, 11, 1200] {
            let documents: Vec<DocumentBuf> = (0..count).map(|n| doc! { "_id": n }).collect();
            let batch = documents.iter().map(DocumentBuf::as_document).collect();
            let reply = Reply::first_batch("a.b", 7, batch);
            let list: Vec<Value> = documents
                .iter()
                .map(|document| document.clone().into())
                .collect();
            let expected = doc! { "cursor": { "firstBatch": (list.clone()), "id": 7i64, "ns": "a.b" }, "ok": 1.0 };
            assert_eq!(reply.to_document(), expected);
            assert_eq!(reply.bytes(), expected.as_bytes().len());
            Document::from_bytes(reply.to_document().as_bytes()).unwrap();
            let token = doc! { "_data": "82" };
            let reply = reply.with_resume_token(token.as_document()).to_document();
            let cursor = Document::from_bytes(reply.as_bytes())
                .unwrap()
                .get("cursor");
            let cursor = cursor.and_then(ValueRef::as_document).unwrap();
            let names: Vec<&str> = cursor.iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["firstBatch", "postBatchResumeToken", "id", "ns"]);
            assert_eq!(
                cursor.get("postBatchResumeToken"),
                Some(ValueRef::Document(token.as_document()))
            );
            let time = Timestamp::from_bits(5 << 32 | 7);
            let batch = documents.iter().map(DocumentBuf::as_document).collect();
            let reply = Reply::first_batch("a.b", 7, batch).with_cursor_time(time);
            let cursor = doc! {
                "firstBatch": (list), "atClusterTime": (Value::Timestamp(time)), "id": 7i64,
                "ns": "a.b",
            };
            assert_eq!(reply.to_document(), doc! { "cursor": cursor, "ok": 1.0 });
        }
    }

    /// A stream that accepts a few bytes at a time.
    struct Narrow(Vec<u8>);

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(7);
            self.0.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn parts_survive_a_stream_that_takes_few_bytes() {
        let reply = Reply::next_batch("a.b", 0, Batch::new());
        let to = ReplyTo::message(9, Flags::default(), None);
        let mut narrow = Narrow(Vec::new());
        let written = write_reply(&mut narrow, &to, &reply, 4, &mut Vec::new()).unwrap();
        assert_eq!(written, narrow.0.len());
        let header = Header::parse(narrow.0.first_chunk().unwrap()).unwrap();
        let expected = Header {
            length: written,
            request_id: 4,
            response_to: 9,
            op_code: OpCode::MSG,
        };
        assert_eq!(header, expected);
        assert_eq!(&narrow.0[21..], reply.to_document().as_bytes());
    }
}
