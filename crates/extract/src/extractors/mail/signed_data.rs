//! Extracts the content of a signed message (S/MIME). The encoding is BER, whose lengths can be
//! indefinite. Source: RFC 5652.

/// The kind of an S/MIME message.
#[derive(Debug, PartialEq)]
pub(crate) enum CryptographicMessage {
    /// A signed message. Contains the message.
    Signed(Vec<u8>),
    /// An encrypted message.
    Encrypted,
    /// Certificates, or damaged bytes.
    Other,
}

const SEQUENCE: u8 = 0x30;
const CONTEXT_0: u8 = 0xa0;
const OBJECT_IDENTIFIER: u8 = 0x06;
const OCTET_STRING: u8 = 0x04;
const OCTET_STRING_PARTS: u8 = 0x24;
const END_OF_CONTENTS: u8 = 0x00;
const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
/// The maximum nesting depth of values with indefinite lengths.
const DEPTH_MAX: u32 = 16;

/// Reads `ContentInfo`.
pub(crate) fn read(bytes: &[u8]) -> CryptographicMessage {
    let info = read_value(bytes, SEQUENCE);
    let Some(kind) = info.and_then(|info| read_value(info.content, OBJECT_IDENTIFIER)) else {
        return CryptographicMessage::Other;
    };
    if kind.content != SIGNED_DATA {
        return CryptographicMessage::Encrypted;
    }
    match read_signed_content(kind.rest) {
        Some(bytes) if !bytes.is_empty() => CryptographicMessage::Signed(bytes),
        _ => CryptographicMessage::Other,
    }
}

/// Reads `SignedData`: version, algorithms, and the signed content.
fn read_signed_content(bytes: &[u8]) -> Option<Vec<u8>> {
    let data = read_value(bytes, CONTEXT_0)?;
    let data = read_value(data.content, SEQUENCE)?;
    let version = split_value(data.content, 0)?;
    let algorithms = split_value(version.rest, 0)?;
    let content = read_value(algorithms.rest, SEQUENCE)?;
    let content_kind = read_value(content.content, OBJECT_IDENTIFIER)?;
    let content = read_value(content_kind.rest, CONTEXT_0)?;
    let value = split_value(content.content, 0)?;
    match value.tag {
        OCTET_STRING => Some(value.content.to_vec()),
        OCTET_STRING_PARTS => {
            let mut bytes = Vec::new();
            let mut rest = value.content;
            while let Some(part) = read_value(rest, OCTET_STRING) {
                bytes.extend_from_slice(part.content);
                rest = part.rest;
            }
            Some(bytes)
        }
        _ => None,
    }
}

/// Returns the value at the start, if it has this tag.
fn read_value(bytes: &[u8], tag: u8) -> Option<Value<'_>> {
    split_value(bytes, 0).filter(|value| value.tag == tag)
}

/// A value, and the bytes after it.
struct Value<'b> {
    tag: u8,
    content: &'b [u8],
    rest: &'b [u8],
}

/// Splits the value at the start from the rest. If the message is truncated, its values end there.
fn split_value(bytes: &[u8], depth: u32) -> Option<Value<'_>> {
    let (&tag, after) = bytes.split_first()?;
    let (&first, after) = after.split_first()?;
    if first == 0x80 {
        return split_indefinite(tag, after, depth);
    }
    let (length, after) = if first < 0x80 {
        (usize::from(first), after)
    } else {
        let (digits, after) = after.split_at_checked(usize::from(first & 0x7f))?;
        let fits = digits.len() <= 6;
        let length = digits
            .iter()
            .fold(0usize, |sum, digit| sum << 8 | usize::from(*digit));
        (if fits { length } else { return None }, after)
    };
    let (content, rest) = after.split_at_checked(length).unwrap_or((after, &[]));
    Some(Value { tag, content, rest })
}

/// Splits a value of indefinite length at its end-of-contents marker.
fn split_indefinite(tag: u8, bytes: &[u8], depth: u32) -> Option<Value<'_>> {
    if depth == DEPTH_MAX {
        return None;
    }
    let mut rest = bytes;
    while let Some(value) = split_value(rest, depth + 1) {
        if value.tag == END_OF_CONTENTS {
            break;
        }
        rest = value.rest;
    }
    let content = bytes.get(..bytes.len() - rest.len())?;
    Some(Value {
        tag,
        content,
        rest: rest.get(2..).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u8, content: &[u8]) -> Vec<u8> {
        [
            &[tag, 0x82, (content.len() >> 8) as u8, content.len() as u8],
            content,
        ]
        .concat()
    }

    fn endless(tag: u8, content: &[u8]) -> Vec<u8> {
        [&[tag, 0x80], content, &[0, 0]].concat()
    }

    #[test]
    fn signed_content_is_taken_out() {
        let check = |wrap: fn(u8, &[u8]) -> Vec<u8>, octets: &[u8]| {
            let content = [value(OBJECT_IDENTIFIER, b"x"), wrap(CONTEXT_0, octets)].concat();
            let data = [value(2, &[1]), value(0x31, b""), wrap(SEQUENCE, &content)].concat();
            let data = wrap(CONTEXT_0, &wrap(SEQUENCE, &data));
            let message = wrap(
                SEQUENCE,
                &[value(OBJECT_IDENTIFIER, SIGNED_DATA), data].concat(),
            );
            assert_eq!(
                read(&message),
                CryptographicMessage::Signed(b"Hello".to_vec())
            );
        };
        check(value, &value(OCTET_STRING, b"Hello"));
        let parts = [value(OCTET_STRING, b"Hel"), value(OCTET_STRING, b"lo")].concat();
        check(endless, &endless(OCTET_STRING_PARTS, &parts));
        let encrypted = value(SEQUENCE, &value(OBJECT_IDENTIFIER, &[0x2a, 3]));
        assert_eq!(read(&encrypted), CryptographicMessage::Encrypted);
        assert_eq!(read(b"words"), CryptographicMessage::Other);
    }
}
