//! Tokens: keys of 32 bytes, of which each is the HMAC-SHA-256 of a message under another one.
//!
//! ```text
//! client     K1 = F(key, 1)      K2 = F(key, 2)      K3 = F(key, 3)
//!            EDC = F(K1, 1)      ESC = F(K1, 2)      ECOC = F(K1, 4)
//!            EDC_v = F(EDC, v)   ESC_v = F(ESC, v)   L_v = F(K2, v)      v: the value, or an edge
//!                                                                        of its range
//!            EDC_vu = F(EDC_v, u), ESC_vu = F(ESC_v, u)                  u: contention factor
//! server     F(EDC_vu, 1): key of tags             F(ESC_vu, 1): key of the state's ids
//!            F(L_v, 1): key of metadata            F(ESC_vu, 2): key of the state's values
//!            F(L_v, 2): key of zeros
//! ```
//! Numbers are messages of 8 bytes, little-endian. An insertion sends `EDC_vu`, `ESC_vu`, `L_v` and
//! `K3`; a query sends `EDC_v`, `ESC_v` and `L_v`; compaction sends `ECOC`.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The length of tokens, tags and ids in bytes.
pub const TOKEN_BYTES: usize = 32;

/// A token. It is a secret: it has no text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token([u8; TOKEN_BYTES]);

/// The tag by which queries find a document with a value. It is stored in `__safeContent__`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub [u8; TOKEN_BYTES]);

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}

impl Token {
    pub fn new(bytes: [u8; TOKEN_BYTES]) -> Token {
        Token(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; TOKEN_BYTES] {
        &self.0
    }

    /// Returns the token of a number under this one.
    pub fn derive(&self, number: u64) -> Token {
        Token(self.function().compute_number(number))
    }

    /// Returns the HMAC under this token, for many messages.
    pub fn function(&self) -> TokenFunction {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        // HMAC accepts keys of every length.
        TokenFunction(mac.unwrap_or_else(|_| Hmac::new(&Default::default())))
    }
}

/// The HMAC under one token. Cloning its state is cheaper than hashing the key again.
pub struct TokenFunction(Hmac<Sha256>);

impl TokenFunction {
    pub fn compute_number(&self, number: u64) -> [u8; TOKEN_BYTES] {
        self.compute_bytes(&number.to_le_bytes())
    }

    pub fn compute_pair(&self, first: u64, second: u64) -> [u8; TOKEN_BYTES] {
        let mut message = [0; 16];
        let (head, tail) = message.split_at_mut(8);
        head.copy_from_slice(&first.to_le_bytes());
        tail.copy_from_slice(&second.to_le_bytes());
        self.compute_bytes(&message)
    }

    pub fn compute_bytes(&self, message: &[u8]) -> [u8; TOKEN_BYTES] {
        let mut mac = self.0.clone();
        mac.update(message);
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Bytes from hexadecimal digits.
    pub(crate) fn hex(digits: &str) -> Vec<u8> {
        let pairs = (0..digits.len()).step_by(2);
        pairs
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect()
    }

    pub(crate) fn token(digits: &str) -> Token {
        Token::new(hex(digits).try_into().unwrap())
    }

    /// Vectors of libmongocrypt's `test/data/tokens`.
    #[test]
    fn tokens_are_those_of_the_public_vectors() {
        let root = token("6eda88c8496ec990f5d5518dd2ad6f3d9c33b6055904b120f12de82911fbd933");
        let value = hex("c07c0df51257948e1a0fc70dd4568e3af99b23b3434c9858237ca7db62db9766");
        let factor = 1_234_567_890;
        let of_value = |token: Token| Token::new(token.function().compute_bytes(&value));
        let collections = root.derive(1);
        let (edc, esc) = (collections.derive(1), collections.derive(2));
        let server = of_value(root.derive(2));
        let (edc_vu, esc_vu) = (of_value(edc).derive(factor), of_value(esc).derive(factor));
        let padding = Token::new(esc.function().compute_bytes(&[0; 17]));
        for (found, expected) in [
            (
                collections,
                "ff2103ff205a36f39704f643c270c129919f008c391d9589a6d2c86a7429d0d3",
            ),
            (
                root.derive(3),
                "d915ccc1eb81687fb5fc5b799f48c99fbe17e7a011a46a48901b9ae3d790656b",
            ),
            (
                collections.derive(4),
                "e354e3b05e81e08b970ca061cb365163fd33dec2f982ddf9440e742ed288a8f8",
            ),
            (
                edc_vu,
                "70fb9a3f760996f2f1438c5bf2a4d52bcba01b0badc3596276f49ffb2f0b136e",
            ),
            (
                esc_vu,
                "7076c7b05fb4be4fe585eed930b852a6d088a0c55f3c96b50069e8a26ebfb347",
            ),
            (
                edc_vu.derive(1),
                "3643fd370e2719c03234cdeec787dfdc7d8fceecafa8a992e3c1f9d4d53449fe",
            ),
            (
                esc_vu.derive(1),
                "c73bc4ff5e70222c653140b2b4998b4d62db973f20f116f66ff811a9a907a78f",
            ),
            (
                esc_vu.derive(2),
                "34150c6f5ab56dc39ddb935accb7f53e5276322fa937650b76a4dda9723d6fba",
            ),
            (
                server.derive(1),
                "a8c4a477e5518a527f718a5a1530919f2dad13b1f3559833e17b479711cbdbb9",
            ),
            (
                server.derive(2),
                "95fda1e139ef1dc84260d4d3ebaab7627a9676f4af7aeb1b596c7c14a0b3a2ea",
            ),
            (
                padding.derive(1),
                "4665ff3ea2d8268d3e6c5d85ddbe6a79d74c45898012afdd4f5d2afb4472957e",
            ),
            (
                padding.derive(2),
                "38cba0ac9914890d646387c9796edbba771b039ce9615457d7cc169df502f78f",
            ),
        ] {
            assert_eq!(found.as_bytes().to_vec(), hex(expected));
        }
    }

    #[test]
    fn a_token_has_no_text() {
        assert_eq!(format!("{:?}", Token::new([7; 32])), "Token(..)");
    }
}
