//! The index key of a term.

/// The maximum length of a term key in bytes.
pub const TERM_KEY_BYTES_MAX: usize = 256;

/// The length in bytes of the prefix of a longer term, which its hash follows. MongoDB uses the
/// same lengths in index version 3.
const PREFIX_BYTES: usize = 224;

/// Returns the index key of a term. This limits the length of keys in an index.
///
/// - The key of a term of up to 256 bytes is the term.
/// - The key of a longer term is its first 224 bytes and 32 hexadecimal digits: a hash of the whole
///   term.
///
/// MongoDB uses MD5 for the hash. The hash is not visible outside of the index, so this function
/// uses FNV-1a. `buffer` holds the key of a long term.
pub fn term_key<'a>(term: &'a str, buffer: &'a mut Vec<u8>) -> &'a [u8] {
    if term.len() <= TERM_KEY_BYTES_MAX {
        return term.as_bytes();
    }
    buffer.clear();
    buffer.extend(term.bytes().take(PREFIX_BYTES));
    buffer.extend(format!("{:032x}", fnv_1a_128(term.as_bytes())).bytes());
    buffer
}

/// FNV-1a with 128 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>). Indexes on disk contain its
/// results, so it must not change.
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
    fn the_key_of_a_long_term_is_a_prefix_and_a_hash() {
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
        // Indexes on disk contain these bytes.
        check(
            &"x".repeat(257),
            &format!("{}b19fe04b2ae6242e7f3823a64a7f3877", "x".repeat(224)),
        );
    }

    #[test]
    fn different_long_terms_have_different_keys() {
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let left = term_key(&format!("{}a", "é".repeat(200)), &mut left).to_vec();
        let right = term_key(&format!("{}b", "é".repeat(200)), &mut right).to_vec();
        assert_ne!(left, right);
        assert!(left.len() == TERM_KEY_BYTES_MAX && right.len() == TERM_KEY_BYTES_MAX);
    }
}
