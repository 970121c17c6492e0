//! OP_QUERY and OP_REPLY: how drivers say hello before they know what the server speaks.
//!
//! ```text
//! OP_QUERY:  header | flags i32 | collection 0x00 | skip i32 | return i32 | document [document]
//! OP_REPLY:  header | flags i32 | cursor id i64 | starting from i32 | returned i32 | document
//! ```
//! MongoDB 5.1 and later accept on `$cmd` this way what drivers send before they know that they may send
//! anything else, and nothing else: `hello` and `isMaster`, of old ones `buildInfo` and authentication too.

use std::ops::Range;

use windrow_document::{Document, ValueRef};

use crate::bytes::Fields;
use crate::code::ErrorCode;
use crate::command_error::CommandError;
use crate::header::HEADER_BYTES;
use crate::message::{SectionError, read_document};

/// Where the parts of OP_QUERY lie in its bytes.
#[derive(Debug)]
pub(crate) struct Query {
    pub database: Range<usize>,
    pub body: Range<usize>,
}

/// The flag of OP_REPLY that says that its document is an error.
pub(crate) const QUERY_FAILURE: i32 = 2;

const UPGRADE: &str = "The client driver may require an upgrade. For more details see \
                       https://dochub.mongodb.org/core/legacy-opcode-removal";

/// What may be sent this way. Drivers of before 4.0 ask each new connection for its server's version.
const ALLOWED: &[&str] = &[
    "_isSelf",
    "authenticate",
    "buildInfo",
    "buildinfo",
    "hello",
    "isMaster",
    "ismaster",
    "saslContinue",
    "saslStart",
];

/// Reads OP_QUERY; refuses whatever is no part of a handshake.
pub(crate) fn read_query(message: &[u8]) -> Result<Query, SectionError> {
    let mut fields = Fields::new(message, HEADER_BYTES);
    fields.int32("the flags of OP_QUERY")?;
    let start = fields.offset();
    let collection = fields.zero_terminated("the collection of OP_QUERY")?;
    fields.int32("numberToSkip")?;
    fields.int32("numberToReturn")?;
    let body = read_document(&mut fields)?;
    let Some(database) = collection.strip_suffix(".$cmd") else {
        return Err(refused(
            ErrorCode(5_739_101),
            format!("OP_QUERY is no longer supported. {UPGRADE}"),
        ));
    };
    let body = unwrap_query(message, body);
    let bytes = message.get(body.clone()).unwrap_or_default();
    let name = Document::from_validated(bytes)
        .first()
        .map_or("", |(name, _)| name);
    if !ALLOWED.contains(&name) {
        let message = format!("Unsupported OP_QUERY command: {name}. {UPGRADE}");
        return Err(refused(ErrorCode::UnsupportedOpQueryCommand, message));
    }
    Ok(Query {
        database: start..start + database.len(),
        body,
    })
}

fn refused(code: ErrorCode, message: String) -> SectionError {
    SectionError::Document {
        error: CommandError::new(code, message),
        close: false,
    }
}

/// The command inside `{$query: command, $readPreference: …}`, as drivers wrap it that ask for a
/// read preference; else the document itself.
fn unwrap_query(message: &[u8], outer: Range<usize>) -> Range<usize> {
    let bytes = message.get(outer.clone()).unwrap_or_default();
    match Document::from_validated(bytes).first() {
        Some(("$query" | "query", ValueRef::Document(inner))) => {
            // Behind the length (4), the type (1) and the zero-terminated name of the first field.
            let name_end = bytes
                .iter()
                .skip(5)
                .position(|&byte| byte == 0)
                .unwrap_or(0);
            let start = outer.start + 5 + name_end + 1;
            start..start + inner.as_bytes().len()
        }
        _ => outer,
    }
}
