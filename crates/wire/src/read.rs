//! Reads whole messages from a stream.

use std::io::{self, Read};

use crate::error::WireError;
use crate::header::{HEADER_BYTES, Header};

/// Reads the next header. Returns `None` if the stream ends before its first byte.
pub fn read_header(stream: &mut impl Read) -> Result<Option<Header>, WireError> {
    let mut bytes = [0; HEADER_BYTES];
    if !fill(stream, &mut bytes)? {
        return Ok(None);
    }
    Header::parse(&bytes).map(Some)
}

/// Reads the rest of a message. `buffer` is overwritten with the whole message, including the
/// header.
///
/// The buffer grows as bytes arrive. Otherwise a header alone could make the server allocate 48 MB.
pub fn read_message(
    stream: &mut impl Read,
    header: &Header,
    buffer: &mut Vec<u8>,
) -> Result<(), WireError> {
    buffer.clear();
    buffer.reserve(header.length.min(RESERVE_BYTES_MAX));
    buffer.extend_from_slice(&header.to_bytes());
    let rest = header.length - HEADER_BYTES;
    let read = stream.take(rest as u64).read_to_end(buffer)?;
    if read < rest {
        return Err(WireError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(())
}

/// Bytes that are reserved before the message arrives.
const RESERVE_BYTES_MAX: usize = 1 << 20;

/// Fills `bytes`. Returns `false` if the stream ends before the first byte.
fn fill(stream: &mut impl Read, bytes: &mut [u8]) -> Result<bool, WireError> {
    let mut filled = 0;
    while let Some(free) = bytes.get_mut(filled..).filter(|free| !free.is_empty()) {
        match stream.read(free) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(WireError::Io(io::ErrorKind::UnexpectedEof.into())),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::OpCode;

    fn message(length: usize) -> Vec<u8> {
        let header = Header {
            length,
            request_id: 1,
            response_to: 0,
            op_code: OpCode::MSG,
        };
        let mut bytes = header.to_bytes().to_vec();
        bytes.resize(length, 7);
        bytes
    }

    #[test]
    fn consecutive_messages_are_separated() {
        let stream = [message(20), message(16), message(3_000_000)].concat();
        let mut stream = stream.as_slice();
        let mut buffer = Vec::new();
        for length in [20, 16, 3_000_000] {
            let header = read_header(&mut stream).unwrap().unwrap();
            read_message(&mut stream, &header, &mut buffer).unwrap();
            assert_eq!(buffer, message(length));
        }
        assert!(read_header(&mut stream).unwrap().is_none());
    }

    #[test]
    fn a_stream_that_ends_within_a_message_is_an_error() {
        for length in [1, 15, 16, 19] {
            let whole = message(20);
            let mut stream = &whole[..length];
            let outcome = read_header(&mut stream)
                .and_then(|header| read_message(&mut stream, &header.unwrap(), &mut Vec::new()));
            assert!(
                matches!(outcome, Err(WireError::Io(_))),
                "{length}: {outcome:?}"
            );
        }
    }
}
