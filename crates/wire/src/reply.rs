//! Replies and their encoding.

use std::io::{self, IoSlice, Write};

use windrow_document::{Document, DocumentBuf, DocumentBuilder, Timestamp, ValueRef};

use crate::batch::Batch;
use crate::command_error::CommandError;
use crate::compression::{Compressor, compress_message};
use crate::error::WireError;
use crate::header::{HEADER_BYTES, Header, OpCode};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::op_msg::MessageFlags;
use crate::op_query::QUERY_FAILURE;

/// Smaller replies to compressed requests are sent uncompressed: compression costs more than it
/// saves, and all drivers accept both.
const COMPRESS_BYTES_MIN: usize = 256;

/// The request that a reply belongs to, and how to encode the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTarget {
    request_id: i32,
    format: ReplyFormat,
    expects_reply: bool,
    checksum: bool,
    compressor: Option<Compressor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReplyFormat {
    OpMsg,
    OpReply,
}

impl ReplyTarget {
    pub(crate) fn from_message(
        id: i32,
        flags: MessageFlags,
        compressor: Option<Compressor>,
    ) -> ReplyTarget {
        ReplyTarget {
            request_id: id,
            format: ReplyFormat::OpMsg,
            expects_reply: !flags.contains(MessageFlags::MORE_TO_COME),
            checksum: flags.contains(MessageFlags::CHECKSUM_PRESENT),
            compressor,
        }
    }

    pub(crate) fn from_query(id: i32) -> ReplyTarget {
        ReplyTarget {
            request_id: id,
            format: ReplyFormat::OpReply,
            expects_reply: true,
            checksum: false,
            compressor: None,
        }
    }

    /// Returns `true` if the request was an OP_QUERY.
    pub fn is_query(&self) -> bool {
        self.format == ReplyFormat::OpReply
    }

    /// Returns `false` if the client does not read a reply to this request.
    pub fn expects_reply(&self) -> bool {
        self.expects_reply
    }

    /// Returns the target of the reply that follows an exhaust reply with the given id.
    pub fn after_exhaust_reply(self, reply_id: i32) -> ReplyTarget {
        ReplyTarget {
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
    prefix: Vec<u8>,
    batch: Batch,
    suffix: Vec<u8>,
    is_error: bool,
    more_to_come: bool,
}

/// The offset of the cursor's length in a batch's reply.
const CURSOR_LENGTH_OFFSET: usize = 4 + 8;

impl Reply {
    /// Returns the reply `{…fields, ok: 1}`.
    pub fn ok(mut fields: DocumentBuf) -> Reply {
        fields.push("ok", 1.0);
        Reply::from_document(fields)
    }

    /// Returns a reply that is exactly this document.
    pub fn from_document(document: DocumentBuf) -> Reply {
        let is_error = document.get("ok").is_some_and(|ok| !ok.is_truthy());
        Reply {
            prefix: document.into_bytes(),
            batch: Batch::new(),
            suffix: Vec::new(),
            is_error,
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

    /// Returns a reply with a cursor, in three parts:
    ///
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
        let mut suffix = vec![0];
        suffix.extend_from_slice(elements(&cursor_fields));
        suffix.push(0);
        let cursor_suffix_bytes = suffix.len();
        suffix.extend_from_slice(b"\x01ok\0");
        suffix.extend_from_slice(&1f64.to_le_bytes());
        suffix.push(0);

        let array_bytes = 4 + batch.bytes() + 1;
        let cursor_bytes = 4 + 1 + name.len() + 1 + array_bytes + cursor_suffix_bytes - 1;
        let reply_bytes = 4 + 8 + cursor_bytes + suffix.len() - cursor_suffix_bytes;
        let mut prefix = Vec::with_capacity(32);
        prefix.extend_from_slice(&(reply_bytes as i32).to_le_bytes());
        prefix.extend_from_slice(b"\x03cursor\0");
        prefix.extend_from_slice(&(cursor_bytes as i32).to_le_bytes());
        prefix.push(4);
        prefix.extend_from_slice(name.as_bytes());
        prefix.push(0);
        prefix.extend_from_slice(&(array_bytes as i32).to_le_bytes());
        Reply {
            prefix,
            batch,
            suffix,
            is_error: false,
            more_to_come: false,
        }
    }

    /// Adds `postBatchResumeToken` to the cursor of a change stream's batch.
    pub fn with_resume_token(self, token: Document<'_>) -> Reply {
        let mut element = b"\x03postBatchResumeToken\0".to_vec();
        element.extend_from_slice(token.as_bytes());
        self.insert_into_cursor(element)
    }

    /// Adds `atClusterTime` to the cursor of a batch that was read at a snapshot. Other replies are
    /// returned unchanged.
    pub fn with_cursor_time(self, time: Timestamp) -> Reply {
        if self.suffix.is_empty() {
            return self;
        }
        let mut element = b"\x11atClusterTime\0".to_vec();
        element.extend_from_slice(&time.bits().to_le_bytes());
        self.insert_into_cursor(element)
    }

    fn insert_into_cursor(mut self, element: Vec<u8>) -> Reply {
        for offset in [0, CURSOR_LENGTH_OFFSET] {
            let length = self
                .prefix
                .get_mut(offset..)
                .and_then(<[u8]>::first_chunk_mut);
            debug_assert!(
                length.is_some(),
                "a cursor's reply without a length at {offset}"
            );
            if let Some(length) = length {
                let grown = i32::from_le_bytes(*length) + element.len() as i32;
                *length = grown.to_le_bytes();
            }
        }
        // The first byte ends the array.
        self.suffix.splice(1..1, element);
        self
    }

    /// Appends fields to the document.
    pub fn with_fields(mut self, fields: Document<'_>) -> Reply {
        let elements = elements(fields.as_bytes()).to_vec();
        if let Some(length) = self.prefix.first_chunk_mut() {
            *length = (i32::from_le_bytes(*length) + elements.len() as i32).to_le_bytes();
        }
        let last = if self.suffix.is_empty() {
            &mut self.prefix
        } else {
            &mut self.suffix
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

    /// Returns the code of the error that the reply reports. `None` if the command succeeded.
    pub fn error_code(&self) -> Option<i32> {
        if !self.is_error {
            return None;
        }
        let code = Document::from_validated(&self.prefix).get("code")?;
        i32::try_from(code.as_whole()?).ok()
    }

    /// Returns the size of the document in bytes.
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
        [&self.prefix, self.batch.elements(), &self.suffix]
    }
}

/// Returns the elements of an encoded document: its bytes without the length and the last byte.
fn elements(document: &[u8]) -> &[u8] {
    let elements = document.get(4..document.len().saturating_sub(1));
    debug_assert!(elements.is_some(), "a document of {} bytes", document.len());
    elements.unwrap_or_default()
}

impl From<&CommandError> for Reply {
    fn from(error: &CommandError) -> Reply {
        Reply::from_document(error.to_document())
    }
}

/// Encodes and writes a reply in the form of its request: OP_MSG or OP_REPLY, with a checksum if
/// the request had one, compressed with the request's compressor. `reply_id` becomes the message's
/// `request_id`. `scratch` is a buffer for compression. Returns the number of bytes written. Fails
/// if the message exceeds [`MESSAGE_BYTES_MAX`] or the stream fails.
pub fn write_reply(
    stream: &mut impl Write,
    to: &ReplyTarget,
    reply: &Reply,
    reply_id: i32,
    scratch: &mut Vec<u8>,
) -> Result<usize, WireError> {
    let prologue = prologue(to, reply);
    let trailer_bytes = if to.checksum { 4 } else { 0 };
    let length = HEADER_BYTES + prologue.len() + reply.bytes() + trailer_bytes;
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
    let [prefix, batch, suffix] = reply.pieces();
    let parts = [&header[..], &prologue, prefix, batch, suffix];
    let checksum = to.checksum.then(|| checksum(&parts));
    let trailer = checksum.as_ref().map_or(&[][..], |bytes| bytes);
    let [header, prologue, prefix, batch, suffix] = parts;
    let parts = [header, prologue, prefix, batch, suffix, trailer];
    match to.compressor {
        Some(compressor) if length >= COMPRESS_BYTES_MIN => {
            let mut compressed = Vec::new();
            scratch.clear();
            parts
                .iter()
                .for_each(|part| scratch.extend_from_slice(part));
            compress_message(compressor, scratch, &mut compressed)?;
            stream.write_all(&compressed)?;
            Ok(compressed.len())
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

/// Returns the bytes between the header and the document.
fn prologue(to: &ReplyTarget, reply: &Reply) -> Vec<u8> {
    let mut prologue = Vec::with_capacity(20);
    match to.format {
        ReplyFormat::OpMsg => {
            let mut flags = if to.checksum {
                MessageFlags::CHECKSUM_PRESENT.0
            } else {
                0
            };
            flags |= if reply.more_to_come {
                MessageFlags::MORE_TO_COME.0
            } else {
                0
            };
            prologue.extend_from_slice(&flags.to_le_bytes());
            prologue.push(0);
        }
        ReplyFormat::OpReply => {
            let flags = if reply.is_error { QUERY_FAILURE } else { 0 };
            prologue.extend_from_slice(&flags.to_le_bytes());
            // A zero cursor id and starting point, then the number of documents.
            prologue.extend_from_slice(&[0; 12]);
            prologue.extend_from_slice(&1i32.to_le_bytes());
        }
    }
    prologue
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
    fn added_fields_are_last() {
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
        let document = doc! { "_id": 1 };
        let batch = || std::iter::once(document.as_document()).collect();
        check(Reply::first_batch("a.b", 7, batch()));
        let token = doc! { "_data": "x" };
        check(Reply::next_batch("a.b", 7, batch()).with_resume_token(token.as_document()));
    }

    #[test]
    fn a_cursor_reply_equals_the_encoded_document() {
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
    struct PartialWriter(Vec<u8>);

    impl Write for PartialWriter {
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
    fn partial_writes_are_continued() {
        let reply = Reply::next_batch("a.b", 0, Batch::new());
        let to = ReplyTarget::from_message(9, MessageFlags::default(), None);
        let mut writer = PartialWriter(Vec::new());
        let written = write_reply(&mut writer, &to, &reply, 4, &mut Vec::new()).unwrap();
        assert_eq!(written, writer.0.len());
        let header = Header::parse(writer.0.first_chunk().unwrap()).unwrap();
        let expected = Header {
            length: written,
            request_id: 4,
            response_to: 9,
            op_code: OpCode::MSG,
        };
        assert_eq!(header, expected);
        assert_eq!(&writer.0[21..], reply.to_document().as_bytes());
    }
}
