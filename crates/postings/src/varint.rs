//! Variable-length encoding of unsigned 32-bit numbers: groups of 7 bits, the lowest first. The top
//! bit of a byte is set if more bytes follow.

/// Appends a number.
pub fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number from the front. Returns `None` if the bytes end before or the number has more
/// than 32 bits.
#[inline]
pub fn take(bytes: &mut &[u8]) -> Option<u32> {
    let (&first, rest) = bytes.split_first()?;
    *bytes = rest;
    if first < 0x80 {
        return Some(u32::from(first));
    }
    let mut number = u32::from(first & 0x7F);
    for shift in [7, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u32::from(byte & 0x7F);
        if shift == 28 && byte > 0x0F {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, 127, 128, 16_383, 16_384, 1 << 28, u32::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            let mut rest = bytes.as_slice();
            assert_eq!(take(&mut rest), Some(number));
            assert!(rest.is_empty());
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(take(&mut [0xFF; 4].as_slice()), None);
        assert_eq!(take(&mut [0xFF, 0xFF, 0xFF, 0xFF, 0x10].as_slice()), None);
    }
}
