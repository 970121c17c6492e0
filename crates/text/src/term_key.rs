//! The bytes by which an index knows a term.

/// The longest term key, in bytes.
pub const TERM_KEY_BYTES_MAX: usize = 256;

/// What is kept of a longer term before its hash: MongoDB's lengths for index version 3.
const PREFIX_BYTES: usize = 224;

/// The key of a term: the term itself up to 256 bytes; of a longer one the first 224 bytes and 32 hex
/// digits of a hash of all of it, so that an index never holds a key of a length that a user chose.
/// MongoDB hashes with MD5 there; nothing outside the index sees which hash it is.
pub fn term_key<'a>(term: &'a str, buffer: &'a mut Vec<u8>) -> &'a [u8] {
    if term.len() <= TERM_KEY_BYTES_MAX {
        return term.as_bytes();
    }
    buffer.clear();
    buffer.extend(term.bytes().take(PREFIX_BYTES));
    buffer.extend(format!("{:032x}", fnv_1a_128(term.as_bytes())).bytes());
    buffer
}

/// FNV-1a with 128 bits (http://www.isthe.com/chongo/tech/comp/fnv/). Written to disk: must not change.
fn fnv_1a_128(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::{TERM_KEY_BYTES_MAX, term_key};

    #[test]
    fn short_terms_are_their_key_and_long_ones_end_in_a_hash() {
        let check = |term: &str, expected: &str| {
            let mut buffer = Vec::new();
            assert_eq!(
                term_key(term, &mut buffer),
                expected.as_bytes(),
                "of {term:?}"
            );
        };
        check("", "");
        check("cake", "cake");
        check(&"x".repeat(256), &"x".repeat(256));
        // Fixed for ever: indexes hold these bytes.
        check(
            &"x".repeat(257),
            &format!("{}b19fe04b2ae6242e7f3823a64a7f3877", "x".repeat(224)),
        );
    }

    #[test]
    fn long_terms_that_differ_have_keys_that_differ() {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let left = term_key(&format!("{}a", "é".repeat(200)), &mut left).to_vec();
        let right = term_key(&format!("{}b", "é".repeat(200)), &mut right).to_vec();
        assert_ne!(left, right);
        assert!(left.len() == TERM_KEY_BYTES_MAX && right.len() == TERM_KEY_BYTES_MAX);
    }
}
