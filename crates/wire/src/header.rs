//! The header of a message: its first 16 bytes.
//!
//! ```text
//! 0        4            8             12        16
//! | length | request id | response to | op code |
//! ```
//! The fields are little-endian `int32`s. The length includes the header. See
//! <https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/>.

use crate::error::WireError;
use crate::limits::MESSAGE_BYTES_MAX;

/// The size of a header in bytes.
pub const HEADER_BYTES: usize = 16;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpCode(pub i32);

impl OpCode {
    /// `OP_REPLY`, the reply to `OP_QUERY`.
    pub const REPLY: OpCode = OpCode(1);
    /// `OP_QUERY`, accepted for handshakes only.
    pub const QUERY: OpCode = OpCode(2004);
    /// `OP_COMPRESSED`.
    pub const COMPRESSED: OpCode = OpCode(2012);
    /// `OP_MSG`, the kind of all other requests and replies.
    pub const MSG: OpCode = OpCode(2013);

    /// Returns `true` if MongoDB has or had an operation with this code.
    pub fn is_known(self) -> bool {
        self.name() != UNKNOWN
    }

    /// Returns MongoDB's name of the operation, for error messages.
    pub fn name(self) -> &'static str {
        match self.0 {
            1 => "OP_REPLY",
            2001 => "OP_UPDATE",
            2002 => "OP_INSERT",
            2004 => "OP_QUERY",
            2005 => "OP_GET_MORE",
            2006 => "OP_DELETE",
            2007 => "OP_KILL_CURSORS",
            2012 => "OP_COMPRESSED",
            2013 => "OP_MSG",
            _ => UNKNOWN,
        }
    }
}

/// The name of operations that MongoDB never had.
const UNKNOWN: &str = "an unknown operation";

/// A header whose length is within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The size of the whole message in bytes, including the header.
    pub length: usize,
    /// The sender's number of the message.
    pub request_id: i32,
    /// In a reply, the `request_id` of the request.
    pub response_to: i32,
    /// The kind of the message.
    pub op_code: OpCode,
}

impl Header {
    /// Parses a header. Fails if the length is below 16 or above 48,000,000 bytes.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Header, WireError> {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *bytes;
        let length = i32::from_le_bytes([a, b, c, d]);
        let length_bytes = usize::try_from(length).unwrap_or(0);
        if !(HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length_bytes) {
            return Err(WireError::MessageLength { length });
        }
        Ok(Header {
            length: length_bytes,
            request_id: i32::from_le_bytes([e, f, g, h]),
            response_to: i32::from_le_bytes([i, j, k, l]),
            op_code: OpCode(i32::from_le_bytes([m, n, o, p])),
        })
    }

    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let words = [
            self.length as i32,
            self.request_id,
            self.response_to,
            self.op_code.0,
        ];
        let mut bytes = [0; HEADER_BYTES];
        for (field, word) in bytes.chunks_exact_mut(4).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_preserves_all_fields() {
        let header = Header {
            length: 21,
            request_id: 7,
            response_to: -1,
            op_code: OpCode::MSG,
        };
        assert_eq!(Header::parse(&header.to_bytes()).unwrap(), header);
    }

    #[test]
    fn lengths_outside_the_limits_are_refused() {
        let check = |length: i32, accepted: bool| {
            let mut bytes = [0; HEADER_BYTES];
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            assert_eq!(Header::parse(&bytes).is_ok(), accepted, "{length}");
        };
        for (length, accepted) in [
            (16, true),
            (48_000_000, true),
            (15, false),
            (0, false),
            (-1, false),
            (48_000_001, false),
        ] {
            check(length, accepted);
        }
    }
}
