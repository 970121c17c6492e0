//! OP_MSG: a command as a body and up to two document sequences.
//!
//! ```text
//! 0        16      20                                    length-4
//! | header | flags | section+                            | CRC-32C, if flagged
//!
//! section of kind 0:  0x00 | document                    (the body; exactly one)
//! section of kind 1:  0x01 | size i32 | name 0x00 | document*
//! ```
//!
//! The size includes itself, the name and the documents. See
//! <https://github.com/mongodb/specifications/blob/master/source/message/OP_MSG.md>.

use std::ops::Range;

use windrow_document::validate::BsonError;
use windrow_document::{Document, validate};

use crate::code::ErrorCode;
use crate::command_error::CommandError;
use crate::error::WireError;
use crate::field_reader::FieldReader;
use crate::header::HEADER_BYTES;
use crate::limits::COMMAND_BYTES_MAX;

/// The flags of OP_MSG. A receiver must refuse unknown flags among the lower 16 bits and ignore
/// unknown ones among the upper 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MessageFlags(pub u32);

impl MessageFlags {
    /// The message ends with a CRC-32C of the preceding bytes.
    pub const CHECKSUM_PRESENT: MessageFlags = MessageFlags(1);
    /// In a request: the client does not read a reply. In a reply: another reply follows without a
    /// request.
    pub const MORE_TO_COME: MessageFlags = MessageFlags(2);
    /// The client accepts several replies to this request.
    pub const EXHAUST_ALLOWED: MessageFlags = MessageFlags(1 << 16);

    /// Returns `true` if the flag is set.
    pub fn contains(self, flag: MessageFlags) -> bool {
        self.0 & flag.0 != 0
    }

    fn has_unknown_required(self) -> bool {
        let known = MessageFlags::CHECKSUM_PRESENT.0 | MessageFlags::MORE_TO_COME.0;
        self.0 & 0xFFFF & !known != 0
    }
}

/// The positions of a message's sections.
#[derive(Debug)]
pub(crate) struct Sections {
    pub body: Range<usize>,
    pub sequences: Vec<Sequence>,
}

/// A section of kind 1: its name and the offsets of its documents.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub name: Range<usize>,
    pub starts: Vec<u32>,
    pub end: usize,
}

/// The reason why a message's sections were refused: a violation of the protocol, or an error that
/// the client receives.
#[derive(Debug)]
pub(crate) enum SectionError {
    Wire(WireError),
    Document { error: CommandError, close: bool },
}

impl From<WireError> for SectionError {
    fn from(error: WireError) -> SectionError {
        SectionError::Wire(error)
    }
}

impl SectionError {
    /// Returns the error for an invalid document. A wrong length closes the connection, because the
    /// start of the next message is then not certain. Invalid UTF-8 and deep nesting affect only
    /// this document.
    pub fn from_bson(error: &BsonError) -> SectionError {
        let code = match error {
            BsonError::Depth => ErrorCode::Overflow,
            _ => ErrorCode::InvalidBSON,
        };
        let close = matches!(error, BsonError::Structure { .. });
        SectionError::Document {
            error: CommandError::new(code, error.to_string()),
            close,
        }
    }

    /// Returns an error that the client receives and that leaves the connection open.
    pub fn document_error(code: ErrorCode, message: String) -> SectionError {
        let error = CommandError::new(code, message);
        SectionError::Document {
            error,
            close: false,
        }
    }
}

/// MongoDB's limit. `bulkWrite` uses two.
const SEQUENCES_MAX: usize = 2;

/// Returns the flags of a message. Fails if its checksum does not match.
pub(crate) fn read_flags(message: &[u8]) -> Result<MessageFlags, WireError> {
    let mut fields = FieldReader::new(message, HEADER_BYTES);
    let flags = MessageFlags(fields.int32("the flags")? as u32);
    if flags.has_unknown_required() {
        return Err(WireError::RequiredFlag { flags: flags.0 });
    }
    if flags.contains(MessageFlags::CHECKSUM_PRESENT) {
        verify_checksum(message)?;
    }
    Ok(flags)
}

fn without_checksum(message: &[u8]) -> Result<(&[u8], &[u8; 4]), WireError> {
    message.split_last_chunk().ok_or(WireError::Truncated {
        what: "the checksum",
    })
}

fn verify_checksum(message: &[u8]) -> Result<(), WireError> {
    let (content, checksum) = without_checksum(message)?;
    let (declared, computed) = (u32::from_le_bytes(*checksum), crc32c::crc32c(content));
    if declared == computed {
        Ok(())
    } else {
        Err(WireError::Checksum { declared, computed })
    }
}

/// Locates the sections of a message and validates all of its documents. Later code does not
/// validate them again.
pub(crate) fn read_sections(message: &[u8], flags: MessageFlags) -> Result<Sections, SectionError> {
    let has_checksum = flags.contains(MessageFlags::CHECKSUM_PRESENT);
    let content = if has_checksum {
        without_checksum(message)?.0
    } else {
        message
    };
    let mut fields = FieldReader::new(content, HEADER_BYTES + 4);
    let (mut body, mut sequences) = (None, Vec::new());
    while !fields.is_empty() {
        match fields.byte("the kind of a section")? {
            0 if body.is_some() => return Err(section_error("a second body")),
            0 => body = Some(read_document(&mut fields)?),
            1 if sequences.len() == SEQUENCES_MAX => {
                return Err(section_error("more than two document sequences"));
            }
            1 => sequences.push(read_sequence(&mut fields)?),
            kind => return Err(section_error(&format!("a section of unknown kind {kind}"))),
        }
    }
    let body = body.ok_or_else(|| section_error("no body"))?;
    let sections = Sections { body, sequences };
    check_names(&sections, message)?;
    Ok(sections)
}

fn section_error(what: &str) -> SectionError {
    SectionError::Wire(WireError::Section {
        what: what.to_owned(),
    })
}

/// Advances past a document and validates it.
pub(crate) fn read_document(fields: &mut FieldReader<'_>) -> Result<Range<usize>, SectionError> {
    let length = fields.declared_length(5, "a document")?;
    let start = fields.offset();
    let bytes = fields.take(length, "a document")?;
    if length > COMMAND_BYTES_MAX {
        let message = format!(
            "BSONObj size: {length} (0x{length:X}) is invalid. Size must be between 0 and {COMMAND_BYTES_MAX}(16MB)"
        );
        return Err(SectionError::document_error(
            ErrorCode::BSONObjectTooLarge,
            message,
        ));
    }
    validate::document(bytes).map_err(|error| SectionError::from_bson(&error))?;
    Ok(start..start + length)
}

fn read_sequence(fields: &mut FieldReader<'_>) -> Result<Sequence, SectionError> {
    let size = fields.declared_length(5, "a document sequence")?;
    let start = fields.offset();
    let all = fields.take(size, "a document sequence")?;
    let mut inner = FieldReader::new(all, 4);
    let name = inner.zero_terminated("the name of a document sequence")?;
    let name_start = start + 4;
    let mut starts = Vec::new();
    while !inner.is_empty() {
        let document = read_document(&mut inner)?;
        // The cast cannot truncate: a message is smaller than 48 MB.
        starts.push((start + document.start) as u32);
    }
    Ok(Sequence {
        name: name_start..name_start + name.len(),
        starts,
        end: start + size,
    })
}

/// Fails if a name occurs more than once among the body's fields and the document sequences.
fn check_names(sections: &Sections, message: &[u8]) -> Result<(), SectionError> {
    let body = document_at(message, &sections.body);
    let mut seen = Vec::new();
    for sequence in &sections.sequences {
        let name = text(message, &sequence.name);
        if seen.contains(&name) {
            return Err(SectionError::document_error(
                ErrorCode(40431),
                format!("Duplicate document sequence: {name}"),
            ));
        }
        if body.contains(name) {
            let message = format!("Duplicate field between body and document sequence {name}");
            return Err(SectionError::document_error(ErrorCode(40433), message));
        }
        seen.push(name);
    }
    Ok(())
}

/// Returns text whose UTF-8 was verified when its range was recorded.
pub(crate) fn text<'a>(message: &'a [u8], range: &Range<usize>) -> &'a str {
    let text = message
        .get(range.clone())
        .and_then(|bytes| std::str::from_utf8(bytes).ok());
    debug_assert!(text.is_some(), "no text at {range:?} of a message");
    text.unwrap_or("")
}

/// Returns a document that was validated when its range was recorded.
pub(crate) fn document_at<'a>(message: &'a [u8], range: &Range<usize>) -> Document<'a> {
    let bytes = message.get(range.clone());
    debug_assert!(bytes.is_some(), "no document at {range:?} of a message");
    bytes.map_or(Document::EMPTY, Document::from_validated)
}
