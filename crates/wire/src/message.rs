//! OP_MSG: a command as one body and up to two sequences of documents.
//!
//! ```text
//! 0        16      20                                    length-4
//! | header | flags | section+                            | CRC-32C, where flagged
//!
//! section of kind 0:  0x00 | document                    (the body; exactly one)
//! section of kind 1:  0x01 | size i32 | name 0x00 | document*
//! ```
//! The size counts itself, the name and the documents.

use std::ops::Range;

use windrow_document::validate::BsonError;
use windrow_document::{Document, validate};

use crate::bytes::Fields;
use crate::code::ErrorCode;
use crate::command_error::CommandError;
use crate::error::WireError;
use crate::header::HEADER_BYTES;
use crate::limits::COMMAND_BYTES_MAX;

/// The flags of OP_MSG. Of the lower 16 an unknown one refuses the message; the upper 16 are hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(pub u32);

impl Flags {
    /// A CRC-32C of all before it ends the message.
    pub const CHECKSUM_PRESENT: Flags = Flags(1);
    /// No reply is wanted; in a reply: another one follows without being asked for.
    pub const MORE_TO_COME: Flags = Flags(2);
    /// The client takes replies that it has not asked for.
    pub const EXHAUST_ALLOWED: Flags = Flags(1 << 16);

    pub fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    fn unknown_required(self) -> bool {
        let known = Flags::CHECKSUM_PRESENT.0 | Flags::MORE_TO_COME.0;
        self.0 & 0xFFFF & !known != 0
    }
}

/// Where the parts of a message lie in its bytes.
#[derive(Debug)]
pub(crate) struct Sections {
    pub body: Range<usize>,
    pub sequences: Vec<Sequence>,
}

/// A section of kind 1: its name, and where each of its documents starts.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub name: Range<usize>,
    pub starts: Vec<u32>,
    pub end: usize,
}

/// Why sections were refused: lost framing, or a document that the client must hear about.
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
    /// A document that is not BSON. Wrong lengths say that the sender cannot be trusted with the
    /// connection; text that is not UTF-8 and deep nesting only say something about its data.
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

    fn refused(number: i32, message: String) -> SectionError {
        let error = CommandError::new(ErrorCode(number), message);
        SectionError::Document {
            error,
            close: false,
        }
    }
}

/// MongoDB takes no more than two sequences in a message (`bulkWrite` has two).
const SEQUENCES_MAX: usize = 2;

/// The flags of a message, once its checksum has been found right.
pub(crate) fn read_flags(message: &[u8]) -> Result<Flags, WireError> {
    let mut fields = Fields::new(message, HEADER_BYTES);
    let flags = Flags(fields.int32("the flags")? as u32);
    if flags.unknown_required() {
        return Err(WireError::RequiredFlag { flags: flags.0 });
    }
    if flags.has(Flags::CHECKSUM_PRESENT) {
        verify_checksum(message)?;
    }
    Ok(flags)
}

fn verify_checksum(message: &[u8]) -> Result<(), WireError> {
    let (content, checksum) = message.split_last_chunk().ok_or(WireError::Truncated {
        what: "the checksum",
    })?;
    let (stated, computed) = (u32::from_le_bytes(*checksum), crc32c::crc32c(content));
    if stated == computed {
        Ok(())
    } else {
        Err(WireError::Checksum { stated, computed })
    }
}

/// Finds the sections of a whole message and validates every document in them, once.
pub(crate) fn read_sections(message: &[u8], flags: Flags) -> Result<Sections, SectionError> {
    let trailer = if flags.has(Flags::CHECKSUM_PRESENT) {
        4
    } else {
        0
    };
    let end = message.len().saturating_sub(trailer);
    let mut fields = Fields::new(message.get(..end).unwrap_or_default(), HEADER_BYTES + 4);
    let (mut body, mut sequences) = (None, Vec::new());
    while !fields.is_empty() {
        match fields.byte("the kind of a section")? {
            0 if body.is_some() => return Err(section("a second body")),
            0 => body = Some(read_document(&mut fields)?),
            1 if sequences.len() == SEQUENCES_MAX => {
                return Err(section("more than two document sequences"));
            }
            1 => sequences.push(read_sequence(&mut fields)?),
            kind => return Err(section(&format!("a section of unknown kind {kind}"))),
        }
    }
    let body = body.ok_or_else(|| section("no body"))?;
    let sections = Sections { body, sequences };
    check_names(&sections, message)?;
    Ok(sections)
}

fn section(what: &str) -> SectionError {
    SectionError::Wire(WireError::Section {
        what: what.to_owned(),
    })
}

/// Passes over one document and validates it.
pub(crate) fn read_document(fields: &mut Fields<'_>) -> Result<Range<usize>, SectionError> {
    let length = fields.stated_length(5, "a document")?;
    let start = fields.offset();
    let bytes = fields.take(length, "a document")?;
    if length > COMMAND_BYTES_MAX {
        let message = format!(
            "BSONObj size: {length} (0x{length:X}) is invalid. Size must be between 0 and {COMMAND_BYTES_MAX}(16MB)"
        );
        return Err(SectionError::refused(
            ErrorCode::BSONObjectTooLarge.number(),
            message,
        ));
    }
    validate::document(bytes).map_err(|error| SectionError::from_bson(&error))?;
    Ok(start..start + length)
}

fn read_sequence(fields: &mut Fields<'_>) -> Result<Sequence, SectionError> {
    let size = fields.stated_length(5, "a document sequence")?;
    let start = fields.offset();
    let all = fields.take(size, "a document sequence")?;
    let mut inner = Fields::new(all, 4);
    let name = inner.zero_terminated("the name of a document sequence")?;
    let name_start = start + 4;
    let mut starts = Vec::new();
    while !inner.is_empty() {
        let document = read_document(&mut inner)?;
        // A message is below 48 MB, so that its offsets fit 32 bits.
        starts.push((start + document.start) as u32);
    }
    Ok(Sequence {
        name: name_start..name_start + name.len(),
        starts,
        end: start + size,
    })
}

/// A name may stand once: in the body or for one sequence.
fn check_names(sections: &Sections, message: &[u8]) -> Result<(), SectionError> {
    let body = Document::from_validated(message.get(sections.body.clone()).unwrap_or_default());
    let mut seen = Vec::new();
    for sequence in &sections.sequences {
        let name = text(message, &sequence.name);
        if seen.contains(&name) {
            return Err(SectionError::refused(
                40431,
                format!("Duplicate document sequence: {name}"),
            ));
        }
        if body.contains(name) {
            let message = format!("Duplicate field between body and document sequence {name}");
            return Err(SectionError::refused(40433, message));
        }
        seen.push(name);
    }
    Ok(())
}

/// Text whose place was noted when it was validated.
pub(crate) fn text<'a>(message: &'a [u8], range: &Range<usize>) -> &'a str {
    message
        .get(range.clone())
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .unwrap_or("")
}
