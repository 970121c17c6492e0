//! Requests: parsed and validated messages.

use std::ops::Range;

use windrow_document::{Document, DocumentBuf, ValueRef};

use crate::code::ErrorCode;
use crate::command_error::CommandError;
use crate::compression::{Compressor, decompress_message};
use crate::error::WireError;
use crate::header::{Header, OpCode};
use crate::op_msg::{
    MessageFlags, SectionError, Sections, Sequence, document_at, read_flags, read_sections, text,
};
use crate::op_query::{QueryMessage, read_query};
use crate::reply::ReplyTarget;
use crate::request_documents::RequestDocuments;

/// A command with its arguments. It owns the bytes of its message;
/// [`into_buffer`](Self::into_buffer) returns them for reuse by the next message of the connection.
#[derive(Debug)]
pub struct Request {
    buffer: Vec<u8>,
    reply_to: ReplyTarget,
    exhaust_allowed: bool,
    database: Range<usize>,
    command: Range<usize>,
    body: Range<usize>,
    sequences: Vec<Sequence>,
}

/// The error of a message that is not a request.
#[derive(Debug)]
pub enum RequestError {
    /// The connection must be closed without a reply. The error is for the log.
    Close(WireError),
    /// The client receives the error. If `close` is set, the connection is closed after that.
    Reply {
        /// The target of the error reply.
        to: ReplyTarget,
        /// The error.
        error: CommandError,
        /// `true` if the connection must be closed after the reply.
        close: bool,
    },
}

impl From<WireError> for RequestError {
    fn from(error: WireError) -> RequestError {
        RequestError::Close(error)
    }
}

impl Request {
    /// Parses a whole message, header first: OP_MSG, OP_COMPRESSED with an OP_MSG, or an OP_QUERY
    /// of a handshake.
    ///
    /// Validates framing, flags and checksum, and structure, UTF-8 and depth of every document.
    /// `spare` is a buffer for decompression; it is swapped with `buffer`.
    pub fn parse(
        header: &Header,
        mut buffer: Vec<u8>,
        spare: &mut Vec<u8>,
    ) -> Result<Request, RequestError> {
        let (mut header, mut compressor) = (*header, None);
        if header.op_code == OpCode::COMPRESSED {
            let (original, compressed) = decompress_message(&header, &buffer, spare)?;
            std::mem::swap(&mut buffer, spare);
            (header, compressor) = (original, Some(compressed));
        }
        match header.op_code {
            OpCode::MSG => Request::from_message(&header, buffer, compressor),
            OpCode::QUERY => Request::from_query(&header, buffer),
            OpCode(number) => Err(WireError::OpCode {
                number,
                name: header.op_code.name(),
            }
            .into()),
        }
    }

    fn from_message(
        header: &Header,
        buffer: Vec<u8>,
        compressor: Option<Compressor>,
    ) -> Result<Request, RequestError> {
        let flags = read_flags(&buffer)?;
        let to = ReplyTarget::from_message(header.request_id, flags, compressor);
        let sections = read_sections(&buffer, flags).map_err(|error| request_error(error, to))?;
        let Sections { body, sequences } = sections;
        let refuse = |error| RequestError::Reply {
            to,
            error,
            close: false,
        };
        let database = find_database(&buffer, &body).map_err(refuse)?;
        let exhaust_allowed = flags.contains(MessageFlags::EXHAUST_ALLOWED);
        let command = find_command(&buffer, &body);
        Ok(Request {
            buffer,
            reply_to: to,
            exhaust_allowed,
            database,
            command,
            body,
            sequences,
        })
    }

    fn from_query(header: &Header, buffer: Vec<u8>) -> Result<Request, RequestError> {
        let to = ReplyTarget::from_query(header.request_id);
        let QueryMessage { database, body } =
            read_query(&buffer).map_err(|error| request_error(error, to))?;
        let command = find_command(&buffer, &body);
        let (exhaust_allowed, sequences) = (false, Vec::new());
        Ok(Request {
            buffer,
            reply_to: to,
            exhaust_allowed,
            database,
            command,
            body,
            sequences,
        })
    }

    /// Returns the command's name in the client's spelling: the name of the body's first field. It
    /// is empty if the body is empty.
    pub fn command(&self) -> &str {
        text(&self.buffer, &self.command)
    }

    /// Returns the database that the command runs on (`$db`).
    pub fn database(&self) -> &str {
        text(&self.buffer, &self.database)
    }

    /// Returns the command's arguments, without the document sequences.
    pub fn body(&self) -> Document<'_> {
        document_at(&self.buffer, &self.body)
    }

    /// Returns an argument of the body.
    pub fn get(&self, name: &str) -> Option<ValueRef<'_>> {
        self.body().get(name)
    }

    /// Returns the documents of an argument, whether it was sent as a document sequence or as an
    /// array in the body. Returns `None` if it is absent. Fails with `TypeMismatch` if it is not an
    /// array of documents.
    pub fn documents(&self, name: &str) -> Result<Option<RequestDocuments<'_>>, CommandError> {
        if let Some(sequence) = self
            .sequences
            .iter()
            .find(|it| text(&self.buffer, &it.name) == name)
        {
            return Ok(Some(RequestDocuments::new(
                &self.buffer,
                &sequence.starts,
                sequence.end,
            )));
        }
        let field = format!("{}.{name}", self.command());
        match self.get(name) {
            None => Ok(None),
            Some(ValueRef::Array(array)) => RequestDocuments::from_array(array, &field).map(Some),
            Some(other) => Err(CommandError::new(
                ErrorCode::TypeMismatch,
                format!(
                    "BSON field '{field}' is the wrong type '{}', expected type 'array'",
                    other.type_of().name()
                ),
            )),
        }
    }

    /// Returns the names of the document sequences.
    pub fn sequence_names(&self) -> impl Iterator<Item = &str> {
        self.sequences
            .iter()
            .map(|sequence| text(&self.buffer, &sequence.name))
    }

    /// Returns the documents of each document sequence, concatenated, with the name of the
    /// sequence.
    pub fn sequences(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.sequences.iter().map(|sequence| {
            let start = sequence
                .starts
                .first()
                .map_or(sequence.end, |it| *it as usize);
            let documents = self.buffer.get(start..sequence.end).unwrap_or_default();
            (text(&self.buffer, &sequence.name), documents)
        })
    }

    /// Removes the last argument of the body, and returns it. Does nothing if it has another name,
    /// or if it is not a document.
    pub fn take_last(&mut self, name: &str) -> Option<DocumentBuf> {
        let mut start = self.body.start + 4;
        let (mut last_start, mut last) = (start, None);
        let mut elements = document_at(&self.buffer, &self.body).elements();
        while let Some(element) = elements.next_raw() {
            last_start = start;
            start += 1 + element.name.len() + 1 + element.bytes.len();
            last = (element.name == name.as_bytes()).then(|| element.value());
        }
        let Some(Some(ValueRef::Document(taken))) = last else {
            return None;
        };
        let taken = taken.to_buf();
        let end = last_start + 1;
        let length = i32::try_from(end - self.body.start).ok()?;
        let header = self.buffer.get_mut(self.body.start..)?.first_chunk_mut()?;
        *header = length.to_le_bytes();
        *self.buffer.get_mut(last_start)? = 0;
        self.body.end = end;
        Some(taken)
    }

    /// Returns a request of the same client with another body, and without document sequences.
    /// Fails if the body has no `$db`.
    pub fn with_body(&self, body: DocumentBuf) -> Result<Request, CommandError> {
        let buffer = body.into_bytes();
        let range = 0..buffer.len();
        Ok(Request {
            reply_to: self.reply_to,
            exhaust_allowed: self.exhaust_allowed,
            database: find_database(&buffer, &range)?,
            command: find_command(&buffer, &range),
            body: range,
            sequences: Vec::new(),
            buffer,
        })
    }

    /// Returns the target of the reply.
    pub fn reply_to(&self) -> ReplyTarget {
        self.reply_to
    }

    /// Returns `true` if the client accepts more than one reply.
    pub fn exhaust_allowed(&self) -> bool {
        self.exhaust_allowed
    }

    /// Returns the size of the message in bytes, after decompression.
    pub fn message_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the message's buffer for reuse.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }
}

fn request_error(error: SectionError, to: ReplyTarget) -> RequestError {
    match error {
        SectionError::Wire(error) => RequestError::Close(error),
        SectionError::Document { error, close } => RequestError::Reply { to, error, close },
    }
}

/// Returns the range of the first field's name, which follows the document's length and the field's
/// type.
fn find_command(buffer: &[u8], body: &Range<usize>) -> Range<usize> {
    let name = document_at(buffer, body)
        .first()
        .map_or("", |(name, _)| name);
    let start = body.start + 5;
    start..start + name.len()
}

/// Returns the range of the text of `$db`, which is mandatory in OP_MSG.
fn find_database(buffer: &[u8], body: &Range<usize>) -> Result<Range<usize>, CommandError> {
    let mut offset = body.start + 4;
    let mut elements = document_at(buffer, body).elements();
    while let Some(element) = elements.next_raw() {
        let value = offset + 1 + element.name.len() + 1;
        if element.name == b"$db" {
            return match element.value() {
                Some(ValueRef::String(name)) => Ok(value + 4..value + 4 + name.len()),
                _ => Err(wrong_database(element.type_of.name())),
            };
        }
        offset = value + element.bytes.len();
    }
    Err(CommandError::new(
        ErrorCode(40571),
        "OP_MSG requests require a $db argument",
    ))
}

fn wrong_database(found: &str) -> CommandError {
    let message = format!("BSON field '$db' is the wrong type '{found}', expected type 'string'");
    CommandError::new(ErrorCode::TypeMismatch, message)
}

#[cfg(test)]
mod tests {
    use windrow_document::doc;

    use super::*;
    use crate::header::HEADER_BYTES;

    fn request(body: &DocumentBuf, sequence: Option<(&str, &DocumentBuf)>) -> Request {
        let mut message = vec![0; HEADER_BYTES + 5];
        message.extend_from_slice(body.as_bytes());
        if let Some((name, document)) = sequence {
            let length = 4 + name.len() + 1 + document.as_bytes().len();
            message.push(1);
            message.extend_from_slice(&(length as i32).to_le_bytes());
            message.extend_from_slice(name.as_bytes());
            message.push(0);
            message.extend_from_slice(document.as_bytes());
        }
        let header = Header {
            length: message.len(),
            request_id: 1,
            response_to: 0,
            op_code: OpCode::MSG,
        };
        message[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        Request::parse(&header, message, &mut Vec::new()).unwrap()
    }

    #[test]
    fn the_last_argument_is_taken() {
        let document = doc! { "_id": 1 };
        let last = doc! { "set": "x" };
        let body = doc! { "insert": "c", "$db": "d", "last": (last.clone()) };
        let mut request = request(&body, Some(("documents", &document)));
        assert_eq!(request.take_last("other"), None);
        assert_eq!(request.take_last("last"), Some(last));
        assert_eq!(request.body().to_buf(), doc! { "insert": "c", "$db": "d" });
        assert_eq!((request.command(), request.database()), ("insert", "d"));
        assert_eq!(request.take_last("last"), None);
        let sequences: Vec<(&str, &[u8])> = request.sequences().collect();
        assert_eq!(sequences, [("documents", document.as_bytes())]);
        let documents = request.documents("documents").unwrap().unwrap();
        assert_eq!(documents.count(), 1);
    }

    #[test]
    fn only_a_document_at_the_end_is_taken() {
        let mut before = request(&doc! { "find": "c", "last": {}, "$db": "d" }, None);
        assert_eq!(before.take_last("last"), None);
        let mut number = request(&doc! { "find": "c", "$db": "d", "last": 1 }, None);
        assert_eq!(number.take_last("last"), None);
        assert_eq!(number.body().to_buf().get("last"), Some(ValueRef::Int32(1)));
    }
}
