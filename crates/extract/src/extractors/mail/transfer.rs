//! Transfer encodings of bodies: Base64 and quoted-printable (RFC 2045).

use super::lines::split_line;

/// Decodes Base64. Other characters are skipped. Padding can be missing or in the middle.
pub(crate) fn decode_base64(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for &byte in bytes {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => {
                (bits, count) = (0, 0);
                continue;
            }
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            decoded.push((bits >> count) as u8);
        }
    }
    decoded
}

/// Decodes the Base64 of a body. Stops at a line of other characters after the padding, such as the
/// footer of a mailing list. A body that begins with such a line is not encoded.
pub(crate) fn decode_base64_body(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes;
    let mut is_padded = false;
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        let content = line.trim_ascii();
        let valid = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
        let is_encoded = content.iter().all(valid);
        let is_first = rest.len() == bytes.trim_ascii_start().len();
        if !is_encoded && is_first && content.contains(&b' ') {
            return bytes.to_vec();
        }
        if !is_encoded && is_padded {
            break;
        }
        is_padded |= content.ends_with(b"=");
        rest = after;
    }
    let encoded = bytes.get(..bytes.len() - rest.len()).unwrap_or(bytes);
    decode_base64(encoded)
}

/// Decodes quoted-printable. Invalid escapes remain unchanged.
pub(crate) fn decode_quoted_printable(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'=', rest) {
        let (before, escape) = rest.split_at_checked(at).unwrap_or((rest, &[]));
        decoded.extend_from_slice(before);
        let after = escape.get(1..).unwrap_or_default();
        rest = match decode_hex_byte(after) {
            Some((byte, after)) => {
                decoded.push(byte);
                after
            }
            None => skip_soft_break(after).unwrap_or_else(|| {
                decoded.push(b'=');
                after
            }),
        };
    }
    decoded.extend_from_slice(rest);
    decoded
}

fn decode_hex_byte(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, after) = bytes.split_at_checked(2)?;
    let digits = std::str::from_utf8(digits).ok()?;
    let valid = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = valid
        .then(|| u8::from_str_radix(digits, 16).ok())
        .flatten()?;
    Some((byte, after))
}

/// Returns the bytes after a soft line break whose `=` was read. Some servers insert white space
/// before the line break.
fn skip_soft_break(bytes: &[u8]) -> Option<&[u8]> {
    let spaces = bytes
        .iter()
        .take_while(|b| matches!(b, b' ' | b'\t' | b'\r'))
        .count();
    match bytes.get(spaces..) {
        Some([b'\n', after @ ..]) => Some(after),
        Some([]) => Some(&[]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_base64_is_decoded() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                decode_base64_body(text.as_bytes()),
                expected.as_bytes(),
                "{text}"
            );
        };
        check("aGVsbG8=", "hello");
        check("aGVs\r\n bG8\n", "hello");
        check("aGU=bGxv", "hello");
        check("aGVsbG8=\n_____\nA list for all\n", "hello");
        check("not encoded\nat all", "not encoded\nat all");
        check("a", "");
    }

    #[test]
    fn damaged_quoted_printable_is_decoded() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                decode_quoted_printable(text.as_bytes()),
                expected.as_bytes(),
                "{text}"
            );
        };
        check("a=3Db=\r\nc=\nd= \t\ne", "a=bcde");
        check("a=zz =4 =", "a=zz =4 ");
        check("=c3=A4=+1", "ä=+1");
    }
}
