//! The errors of reading and writing messages.

use std::fmt;
use std::io;

use crate::limits::MESSAGE_BYTES_MAX;

/// The error of a message that could not be read or written. After it the connection must be
/// closed, because the start of the next message is not known or the sender does not follow the
/// protocol. `Io` is a failure of the machine or network, all others are the sender's fault.
#[derive(Debug)]
pub enum WireError {
    /// The socket failed, or it was closed within a message.
    Io(io::Error),
    /// A header declares a length outside the limits.
    MessageLength {
        /// The declared length in bytes.
        length: i32,
    },
    /// A field extends past the end of its message.
    Truncated {
        /// The field.
        what: &'static str,
    },
    /// A client that has not logged in sends a large message.
    TooLargeBeforeLogin {
        /// The length in bytes.
        length: usize,
        /// The largest length.
        max: usize,
    },
    /// A document, section or compressed message declares a length that does not fit.
    DeclaredLength {
        /// The document, section or message.
        what: &'static str,
        /// Its declared length in bytes.
        declared: i32,
        /// The bytes that remain in the message.
        remaining: usize,
    },
    /// A string outside of documents is not UTF-8.
    NotUtf8 {
        /// The string.
        what: &'static str,
    },
    /// The operation is unknown, or MongoDB 6.0 and later do not support it.
    OpCode {
        /// The operation's code.
        number: i32,
        /// Its name.
        name: &'static str,
    },
    /// An unknown flag among the 16 that a server must understand.
    RequiredFlag {
        /// All flags of the message.
        flags: u32,
    },
    /// The message's CRC-32C does not match its content.
    Checksum {
        /// The checksum in the message.
        declared: u32,
        /// The checksum of its content.
        computed: u32,
    },
    /// An unknown section kind, a second body, no body, or too many document sequences.
    Section {
        /// What is wrong.
        what: String,
    },
    /// An unknown compressor, or content that it cannot decompress.
    Compression {
        /// What is wrong.
        what: String,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Io(error) => write!(f, "the connection failed: {error}"),
            WireError::TooLargeBeforeLogin { length, max } => write!(
                f,
                "a message of {length} bytes before a login, which allows {max}"
            ),
            WireError::MessageLength { length } => write!(
                f,
                "a message states a length of {length} bytes; it must be from 16 to {MESSAGE_BYTES_MAX}"
            ),
            WireError::Truncated { what } => write!(f, "the message ends inside {what}"),
            WireError::DeclaredLength {
                what,
                declared,
                remaining,
            } => {
                write!(
                    f,
                    "{what} states a length of {declared} bytes where {remaining} are remaining"
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
            WireError::Checksum { declared, computed } => write!(
                f,
                "OP_MSG states the checksum {declared:#010x}, but its bytes have {computed:#010x}"
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
