//! UTF-16 and UTF-32, with and without a byte order mark.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};

/// Length of the sample from which an encoding without a byte order mark is detected.
const SAMPLE_BYTES: usize = 8192;

/// The order of the bytes of a code unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn read_u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        }
    }

    fn read_u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            ByteOrder::Little => u16::from_le_bytes(bytes),
            ByteOrder::Big => u16::from_be_bytes(bytes),
        }
    }
}

/// Detects UTF-32. Its byte order mark in little-endian order begins with that of UTF-16.
pub(super) fn detect_utf32(bytes: &[u8]) -> Option<ByteOrder> {
    if bytes.starts_with(b"\0\0\xfe\xff") {
        return Some(ByteOrder::Big);
    }
    let is_text = |order: ByteOrder| {
        let (units, _) = sample(bytes).as_chunks::<4>();
        let is_scalar = |unit: &[u8; 4]| {
            let character = char::from_u32(order.read_u32(*unit));
            character.is_some_and(|it| !is_control(it))
        };
        !units.is_empty() && units.iter().all(is_scalar)
    };
    [ByteOrder::Little, ByteOrder::Big]
        .into_iter()
        .find(|order| is_text(*order))
}

/// Decodes UTF-32. Invalid units become U+FFFD.
pub(super) fn decode_utf32(bytes: &[u8], order: ByteOrder) -> String {
    let (units, _) = bytes.as_chunks::<4>();
    let characters = units.iter().map(|unit| {
        let value = order.read_u32(*unit);
        char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)
    });
    let text: String = characters.collect();
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}

/// Detects UTF-16 without a byte order mark. Markup, digits and Latin text have zeros in the high
/// halves of the code units, so nearly all zeros are in the same half of each pair. In other
/// scripts at least spaces and line ends have zeros, and every unit must be a character of text.
pub(super) fn detect_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = sample(bytes);
    memchr::memchr(0, head)?;
    let (pairs, _) = head.as_chunks::<2>();
    let count_zeros = |half: usize| {
        pairs
            .iter()
            .filter(|pair| pair.get(half) == Some(&0))
            .count()
    };
    let (many, few) = (pairs.len() * 2 / 5, pairs.len() / 20);
    let (first, second) = (count_zeros(0), count_zeros(1));
    if second > many && first <= few {
        return Some(UTF_16LE);
    }
    if first > many && second <= few {
        return Some(UTF_16BE);
    }
    let little = count_spaces(pairs, ByteOrder::Little);
    let big = count_spaces(pairs, ByteOrder::Big);
    match little.max(big)? {
        0 => None,
        _ if little >= big => Some(UTF_16LE),
        _ => Some(UTF_16BE),
    }
}

/// Returns the number of spaces, line ends and full stops. Returns `None` if a unit cannot occur in
/// text.
fn count_spaces(pairs: &[[u8; 2]], order: ByteOrder) -> Option<usize> {
    let mut spaces = 0;
    let units = pairs.iter().map(|pair| order.read_u16(*pair));
    for decoded in char::decode_utf16(units) {
        match decoded {
            Ok(' ' | '\n' | '\u{3000}' | '\u{3001}' | '\u{3002}') => spaces += 1,
            Ok(character) if is_control(character) || is_private(character) => return None,
            Ok(_) => {}
            // The sample can end within a pair of surrogates.
            Err(error) if error.unpaired_surrogate() >> 10 == 0x36 => {}
            Err(_) => return None,
        }
    }
    Some(spaces)
}

/// Returns the sample from which the encoding of a file is detected.
fn sample(bytes: &[u8]) -> &[u8] {
    bytes.get(..SAMPLE_BYTES).unwrap_or(bytes)
}

fn is_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\t' | '\n' | '\r' | '\x0c' | '\x1b')
}

fn is_private(character: char) -> bool {
    let unit = u32::from(character) & 0xffff;
    matches!(character, '\u{e000}'..='\u{f8ff}' | '\u{fdd0}'..='\u{fdef}') || unit >= 0xfffe
}
