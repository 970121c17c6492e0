//! OP_QUERY and OP_REPLY: the handshake of drivers that do not know yet whether the server supports
//! OP_MSG.
//!
//! ```text
//! OP_QUERY:  header | flags i32 | collection 0x00 | skip i32 | return i32 | document [document]
//! OP_REPLY:  header | flags i32 | cursor id i64 | starting from i32 | returned i32 | document
//! ```
//!
//! MongoDB 5.1 and later accept only the handshake commands in this form. Windrow also accepts what
//! monitors with older drivers send.

use std::ops::Range;

use windrow_document::ValueRef;

use crate::code::ErrorCode;
use crate::field_reader::FieldReader;
use crate::header::HEADER_BYTES;
use crate::op_msg::{SectionError, document_at, read_document};

/// The positions of the parts of OP_QUERY.
#[derive(Debug)]
pub(crate) struct QueryMessage {
    pub database: Range<usize>,
    pub body: Range<usize>,
}

/// The flag of OP_REPLY for a document that is an error.
pub(crate) const QUERY_FAILURE: i32 = 2;

const UPGRADE: &str = "The client driver may require an upgrade. For more details see \
                       https://dochub.mongodb.org/core/legacy-opcode-removal";

/// The commands that can be sent as OP_QUERY. Drivers before 4.0 send `buildInfo` on each new
/// connection. `getnonce`, `ping` and `serverStatus` are those of Debian's
/// prometheus-mongodb-exporter.
const ALLOWED: &[&str] = &[
    "_isSelf",
    "authenticate",
    "buildInfo",
    "buildinfo",
    "getnonce",
    "hello",
    "isMaster",
    "ismaster",
    "ping",
    "saslContinue",
    "saslStart",
    "serverStatus",
];

/// Parses OP_QUERY. Fails if the command is not part of a handshake.
pub(crate) fn read_query(message: &[u8]) -> Result<QueryMessage, SectionError> {
    let mut fields = FieldReader::new(message, HEADER_BYTES);
    fields.int32("the flags of OP_QUERY")?;
    let start = fields.offset();
    let collection = fields.zero_terminated("the collection of OP_QUERY")?;
    fields.int32("numberToSkip")?;
    fields.int32("numberToReturn")?;
    let body = read_document(&mut fields)?;
    let Some(database) = collection.strip_suffix(".$cmd") else {
        return Err(SectionError::document_error(
            ErrorCode(5_739_101),
            format!("OP_QUERY is no longer supported. {UPGRADE}"),
        ));
    };
    let body = unwrap_query(message, body);
    let name = document_at(message, &body)
        .first()
        .map_or("", |(name, _)| name);
    if !ALLOWED.contains(&name) {
        let message = format!("Unsupported OP_QUERY command: {name}. {UPGRADE}");
        return Err(SectionError::document_error(
            ErrorCode::UnsupportedOpQueryCommand,
            message,
        ));
    }
    Ok(QueryMessage {
        database: start..start + database.len(),
        body,
    })
}

/// Returns the command of `{$query: command, $readPreference: …}`, the form that drivers use to add
/// a read preference. Any other document is the command itself.
fn unwrap_query(message: &[u8], outer: Range<usize>) -> Range<usize> {
    match document_at(message, &outer).first() {
        Some((name @ ("$query" | "query"), ValueRef::Document(inner))) => {
            // The first field's value follows the length (4 bytes), the type (1 byte) and the
            // zero-terminated name.
            let start = outer.start + 5 + name.len() + 1;
            start..start + inner.as_bytes().len()
        }
        _ => outer,
    }
}
