//! What can be wrong with the bytes of a connection.

use std::fmt;
use std::io;

use crate::limits::MESSAGE_BYTES_MAX;

/// Why a message could not be read. After any of these the place in the stream is lost or the
/// sender cannot be trusted to frame messages: the connection closes, and the text of the error is
/// the reason for the log. All but `Io` are the sender's fault.
#[derive(Debug)]
pub enum WireError {
    /// The socket failed or closed in the middle of a message.
    Io(io::Error),
    /// A header states a length that no message may have.
    MessageLength { length: i32 },
    /// A field reaches past the end of its message.
    Truncated { what: &'static str },
    /// A document, section or unpacked message states a length that its place contradicts.
    StatedLength {
        what: &'static str,
        stated: i32,
        left: usize,
    },
    /// Text that is not UTF-8 outside of a document.
    NotUtf8 { what: &'static str },
    /// An operation that MongoDB 6.0 and later no longer accept, or that never was one.
    OpCode { number: i32, name: &'static str },
    /// A flag among the 16 that a server must understand.
    RequiredFlag { flags: u32 },
    /// The CRC-32C at the end of the message is not that of its bytes.
    Checksum { stated: u32, computed: u32 },
    /// A section of a kind that is not defined, a second body, no body, or a sequence too many.
    Section { what: String },
    /// A compressor that was not agreed on, or bytes that it cannot unpack.
    Compression { what: String },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Io(error) => write!(f, "the connection failed: {error}"),
            WireError::MessageLength { length } => write!(
                f,
                "a message states a length of {length} bytes; it must be from 16 to {MESSAGE_BYTES_MAX}"
            ),
            WireError::Truncated { what } => write!(f, "the message ends inside {what}"),
            WireError::StatedLength { what, stated, left } => {
                write!(
                    f,
                    "{what} states a length of {stated} bytes where {left} are left"
                )
            }
            WireError::NotUtf8 { what } => write!(f, "{what} is not UTF-8"),
            WireError::OpCode { number, name } => write!(
                f,
                "{name} (operation {number}) is not supported. The client driver may require an upgrade"
            ),
            WireError::RequiredFlag { flags } => {
                write!(
                    f,
                    "OP_MSG has unknown flags among the required ones: {flags:#010x}"
                )
            }
            WireError::Checksum { stated, computed } => write!(
                f,
                "OP_MSG states the checksum {stated:#010x}, but its bytes have {computed:#010x}"
            ),
            WireError::Section { what } => write!(f, "OP_MSG: {what}"),
            WireError::Compression { what } => write!(f, "OP_COMPRESSED: {what}"),
        }
    }
}

impl std::error::Error for WireError {}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> WireError {
        WireError::Io(error)
    }
}
