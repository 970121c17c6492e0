//! The tokens of `{$meta: "searchSequenceToken"}`: the position of a document in the result of a
//! search, for `searchAfter` and `searchBefore`.
//!
//! ```text
//! base64 of: 1 | fingerprint of the query u64 LE | sort key of the document
//! ```
//!
//! A token is not tied to a snapshot. It is valid only for the query that returned it.
//!
//! Source: <https://www.mongodb.com/docs/atlas/atlas-search/paginate-results/>.

use windrow_document::json::BASE64;

use super::options::bad;
use crate::Error;

const VERSION: u8 = 1;

/// The identity of a query: a 64-bit FNV-1a hash of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// Computes the fingerprint of a query from the bytes that determine its result and its order.
    pub fn new(parts: &[&[u8]]) -> Fingerprint {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for part in parts {
            let length = (part.len() as u64).to_le_bytes();
            for byte in length.iter().chain(*part) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        Fingerprint(hash)
    }

    /// Returns the bytes of the token of the document with this sort key.
    pub fn token(self, key: &[u8]) -> Box<[u8]> {
        [&[VERSION], &self.0.to_le_bytes()[..], key].concat().into()
    }

    /// Returns the sort key in a token. Fails if the token is invalid or belongs to another query.
    pub fn key(self, token: &str) -> Result<Vec<u8>, Error> {
        let bytes = from_base64(token.as_bytes());
        let rest = bytes
            .as_deref()
            .and_then(|bytes| bytes.strip_prefix(&[VERSION]));
        let parts = rest.and_then(<[u8]>::split_first_chunk::<8>);
        let Some((fingerprint, key)) = parts else {
            return Err(bad("Invalid format for token value".to_owned()));
        };
        if u64::from_le_bytes(*fingerprint) == self.0 {
            Ok(key.to_vec())
        } else {
            Err(bad(
                "the sequence token belongs to a query with another operator, index or sort"
                    .to_owned(),
            ))
        }
    }
}

fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let (groups, []) = text.as_chunks::<4>() else {
        return None;
    };
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (number, group) in groups.iter().enumerate() {
        let is_last = number + 1 == groups.len();
        let padding = group
            .iter()
            .rev()
            .take_while(|digit| **digit == b'=')
            .count();
        if padding > if is_last { 2 } else { 0 } {
            return None;
        }
        let mut bits = 0_u32;
        for digit in group.iter().take(4 - padding) {
            let value = BASE64.iter().position(|known| known == digit)?;
            bits = bits << 6 | value as u32;
        }
        bits <<= 6 * padding;
        let [_, decoded @ ..] = bits.to_be_bytes();
        bytes.extend(decoded.iter().take(3 - padding));
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use windrow_document::json::to_base64;

    use super::*;

    #[test]
    fn tokens_are_read_as_written() {
        let fingerprint = Fingerprint::new(&[b"default", b"x"]);
        assert_ne!(fingerprint, Fingerprint::new(&[b"defaultx"]));
        for length in 0..40_u8 {
            let key: Vec<u8> = (0..length).map(|byte: u8| byte.wrapping_mul(37)).collect();
            let token = to_base64(&fingerprint.token(&key), BASE64, true);
            assert_eq!(fingerprint.key(&token).ok(), Some(key), "{token}");
            let other = Fingerprint::new(&[b"other"]);
            assert!(other.key(&token).is_err());
        }
        for wrong in ["", "=", "====", "A===", "abcd", "not base64", "AQ==AQ=="] {
            assert!(fingerprint.key(wrong).is_err(), "{wrong}");
        }
    }
}
