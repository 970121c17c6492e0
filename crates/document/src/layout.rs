//! How many bytes a value has, and the whole numbers that stand before and in it.

use crate::value::Type;

/// The length in bytes of the value at the front of `bytes`.
#[inline]
pub(crate) fn value_length(type_of: Type, bytes: &[u8]) -> Option<usize> {
    Some(match type_of {
        Type::Double | Type::DateTime | Type::Timestamp | Type::Int64 => 8,
        Type::Int32 => 4,
        Type::Bool => 1,
        Type::ObjectId => 12,
        Type::Decimal128 => 16,
        Type::Null | Type::Undefined | Type::MinKey | Type::MaxKey => 0,
        Type::String | Type::JavaScript | Type::Symbol => read_length(bytes)?.checked_add(4)?,
        Type::Document | Type::Array | Type::JavaScriptWithScope => read_length(bytes)?,
        Type::Binary => read_length(bytes)?.checked_add(5)?,
        Type::DbPointer => read_length(bytes)?.checked_add(16)?,
        Type::Regex => {
            let pattern = memchr::memchr(0, bytes)?;
            let options = memchr::memchr(0, bytes.get(pattern + 1..)?)?;
            pattern + options + 2
        }
    })
}

/// Where the first zero byte is. Names are mostly short: the first bytes are looked at eight at a time.
#[inline]
pub(crate) fn zero_at(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().take(WORDS).enumerate() {
        let zero = zero_bytes(u64::from_le_bytes(*word));
        if zero != 0 {
            return Some(number * 8 + zero.trailing_zeros() as usize / 8);
        }
    }
    memchr::memchr(0, bytes)
}

/// Whether a byte is 0 or 1.
#[inline]
pub(crate) fn has_zero_or_one(bytes: &[u8]) -> bool {
    const ONE: u64 = u64::from_le_bytes([1; 8]);
    let (words, rest) = bytes.as_chunks::<8>();
    let found = words.iter().fold(0, |found, word| {
        found | zero_bytes(u64::from_le_bytes(*word) & !ONE)
    });
    rest.iter()
        .fold(found != 0, |found, byte| found | (*byte <= 1))
}

/// So many words are looked at one by one.
const WORDS: usize = 4;
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// The lowest bit of these is that of the first zero byte, the highest one in it; 0 where none is zero.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    const ONE: u64 = u64::from_le_bytes([1; 8]);
    word.wrapping_sub(ONE) & !word & HIGH
}

pub(crate) fn read_i32(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().map(|chunk| i32::from_le_bytes(*chunk))
}

pub(crate) fn read_u64(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

pub(crate) fn read_length(bytes: &[u8]) -> Option<usize> {
    usize::try_from(read_i32(bytes)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_told_eight_bytes_at_a_time() {
        let check = |text: &str| {
            let bytes = [text.as_bytes(), &[0], b"and more than a word"].concat();
            assert_eq!(zero_at(&bytes), Some(text.len()), "{text}");
        };
        for length in 0..40 {
            check(&"n".repeat(length));
            check(&("n".repeat(length) + "é"));
        }
        for bytes in [&b"short\0"[..], "a\0ééé".as_bytes(), b"a\x01\0bcdef"] {
            assert_eq!(zero_at(bytes), bytes.iter().position(|byte| *byte == 0));
        }
        assert_eq!(zero_at(b"no end of a name"), None);
    }
}
