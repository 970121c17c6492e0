//! Lengths of encoded values, and reading of integers.

use crate::value::Type;

/// Returns the encoded length of the value at the start of `bytes`.
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

/// Returns the position of the first zero byte. Names are mostly short, so the first words are
/// searched without the setup cost of `memchr`.
#[inline]
pub(crate) fn find_zero(bytes: &[u8]) -> Option<usize> {
    let (words, _) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().take(SEARCHED_WORDS).enumerate() {
        let zero = zero_bytes(u64::from_le_bytes(*word));
        if zero != 0 {
            return Some(number * 8 + zero.trailing_zeros() as usize / 8);
        }
    }
    memchr::memchr(0, bytes)
}

/// Returns `true` if a byte is 0 or 1.
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

/// The number of words that are searched before `memchr`.
const SEARCHED_WORDS: usize = 4;
const HIGH: u64 = u64::from_le_bytes([0x80; 8]);

/// Returns a word whose lowest set bit is the highest bit of the first zero byte, or 0 if no byte
/// is zero. Source: <https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord>.
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
    fn zero_bytes_are_found_in_words() {
        let check = |text: &str| {
            let bytes = [text.as_bytes(), &[0], b"and more than a word"].concat();
            assert_eq!(find_zero(&bytes), Some(text.len()), "{text}");
        };
        for length in 0..40 {
            check(&"n".repeat(length));
            check(&("n".repeat(length) + "é"));
        }
        for bytes in [&b"short\0"[..], "a\0ééé".as_bytes(), b"a\x01\0bcdef"] {
            assert_eq!(find_zero(bytes), bytes.iter().position(|byte| *byte == 0));
        }
        assert_eq!(find_zero(b"no end of a name"), None);
    }
}
