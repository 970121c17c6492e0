//! Variable-length numbers: 7 bits a byte, lowest first. The top bit says that another byte
//! follows.

/// Appends a number.
pub fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Returns the encoded length of a number, in bytes.
#[inline]
pub fn length(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// Writes a number to the front of a slice and returns the rest. Panics if the slice is too short.
#[inline]
pub fn write(bytes: &mut [u8], mut number: u64) -> &mut [u8] {
    let mut at = 0;
    while number >= 0x80 {
        bytes[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    bytes[at] = number as u8;
    &mut bytes[at + 1..]
}

/// Takes a number off the front. Returns `None` if the bytes end before, or if the number has more
/// than 64 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        *bytes = rest;
        return Some(u64::from(first));
    }
    match bytes.first_chunk() {
        Some(word) => take_word(bytes, u64::from_le_bytes(*word)),
        None => take_long(bytes),
    }
}

/// Takes a number whose first eight bytes are `word`. Decodes all bytes at once if the number ends
/// within them.
#[inline]
fn take_word(bytes: &mut &[u8], word: u64) -> Option<u64> {
    let ends = !word & 0x8080_8080_8080_8080;
    if ends == 0 {
        return take_long(bytes);
    }
    // Keeps the bits up to the last byte of the number.
    let groups = word & (ends ^ ends.wrapping_sub(1)) & 0x7F7F_7F7F_7F7F_7F7F;
    let pairs = groups & 0x007F_007F_007F_007F | (groups & 0x7F00_7F00_7F00_7F00) >> 1;
    let fours = pairs & 0x0000_3FFF_0000_3FFF | (pairs & 0x3FFF_0000_3FFF_0000) >> 2;
    let number = fours & 0x0FFF_FFFF | (fours & 0x0FFF_FFFF_0000_0000) >> 4;
    *bytes = bytes.get(ends.trailing_zeros() as usize / 8 + 1..)?;
    Some(number)
}

/// Skips `count` numbers. Returns `None` if the bytes end before.
pub fn skip(bytes: &mut &[u8], mut count: u64) -> Option<()> {
    // A number ends at its first byte without the top bit. Eight bytes end at most eight numbers.
    while count >= 8
        && let Some(word) = bytes.first_chunk()
    {
        let ends = !u64::from_le_bytes(*word) & 0x8080_8080_8080_8080;
        count -= u64::from(ends.count_ones());
        *bytes = bytes.get(8..)?;
    }
    while count > 0 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        count -= u64::from(byte < 0x80);
    }
    Some(())
}

#[cold]
fn take_long(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let group = u64::from(byte & 0x7F);
        let shifted = group.checked_shl(shift)?;
        if shifted >> shift != group {
            return None;
        }
        number |= shifted;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Takes `count` bytes off the front. Returns `None` if there are fewer.
pub fn take_bytes<'a>(bytes: &mut &'a [u8], count: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(count).ok()?)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_skipped() {
        let numbers: Vec<u64> = (0..200).map(|at| 1u64 << (at * 7 % 64)).collect();
        let mut bytes = Vec::new();
        let mut starts = vec![0];
        for number in &numbers {
            put(&mut bytes, *number);
            starts.push(bytes.len());
        }
        for (count, start) in starts.iter().enumerate() {
            let mut rest = bytes.as_slice();
            assert_eq!(skip(&mut rest, count as u64), Some(()));
            assert_eq!(bytes.len() - rest.len(), *start);
        }
        assert_eq!(skip(&mut bytes.as_slice(), 201), None);
    }

    #[test]
    fn numbers_round_trip() {
        for number in [
            0,
            1,
            127,
            128,
            300,
            16_383,
            16_384,
            1 << 27,
            1 << 28,
            (1 << 56) - 1,
            1 << 56,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            assert_eq!(length(number), bytes.len());
            let mut written = vec![0; bytes.len()];
            assert!(write(&mut written, number).is_empty());
            assert_eq!(written, bytes);
            let mut rest = bytes.as_slice();
            assert_eq!((take(&mut rest), rest.len()), (Some(number), 0));
            bytes.extend_from_slice(&[0xFF; 8]);
            let mut rest = bytes.as_slice();
            assert_eq!((take(&mut rest), rest.len()), (Some(number), 8));
            bytes.truncate(bytes.len() - 8);
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(take(&mut [0xFF; 12].as_slice()), None);
        let mut too_large = [0xFF; 10];
        too_large[9] = 0x02;
        assert_eq!(take(&mut too_large.as_slice()), None);
    }
}
