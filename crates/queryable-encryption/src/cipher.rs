//! AES-256 in counter mode: `initialization vector, 16 bytes | ciphertext`. It has no checksum, so
//! every ciphertext can be decrypted; what comes out has to be checked.

use aes::Aes256;
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher};

use crate::error::Error;
use crate::token::Token;

/// The length of the initialization vector in bytes.
pub const IV_BYTES: usize = 16;

/// Encrypts with a random initialization vector.
pub fn encrypt(key: &Token, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
    let mut iv = [0; IV_BYTES];
    getrandom::fill(&mut iv).map_err(|error| Error::NoRandomNumbers(error.to_string()))?;
    Ok(encrypt_with(key, iv, plaintext))
}

fn encrypt_with(key: &Token, iv: [u8; IV_BYTES], plaintext: &[u8]) -> Vec<u8> {
    let mut encrypted = Vec::with_capacity(IV_BYTES + plaintext.len());
    encrypted.extend_from_slice(&iv);
    encrypted.extend_from_slice(&transformed(key, iv, plaintext));
    encrypted
}

/// Decrypts. Returns `None` if the ciphertext is too short.
pub fn decrypt(key: &Token, encrypted: &[u8]) -> Option<Vec<u8>> {
    let (iv, ciphertext) = encrypted.split_first_chunk()?;
    Some(transformed(key, *iv, ciphertext))
}

/// Adds the key stream, which both encrypts and decrypts.
fn transformed(key: &Token, iv: [u8; IV_BYTES], bytes: &[u8]) -> Vec<u8> {
    let mut transformed = bytes.to_vec();
    let key: &[u8; 32] = key.as_bytes();
    Ctr128BE::<Aes256>::new(key.into(), &iv.into()).apply_keystream(&mut transformed);
    transformed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tests::{hex, token};

    /// Vectors of libmongocrypt's `test/data/roundtrip`: `fle2-fixed` and `aes-ctr`.
    #[test]
    fn ciphertexts_are_those_of_the_public_vectors() {
        for (key, iv, plaintext, expected) in [
            (
                "c0b091fd93dfbb2422e53553f971d8127f3731058ba67f32b1549c53fce4120e",
                "918ab83c8966995dfb528a0020d9bb10",
                "7465737431",
                "70cead40b0",
            ),
            (
                "2078bf7187b8792860071c205a9ad88fc285232780f4ac4d77be9146b63c6ec9",
                "185405c26aca39e507a2c71572b209df",
                "d3e88a3f39bf4788a325e4b9ba829e0a768a66e66b03940c50e6fd92f0fd85be",
                "e36455d10b5884911f5a5bdb4519148ca7a754fd4b54b31ecf8afaaea522f1e0",
            ),
        ] {
            let (key, plaintext) = (token(key), hex(plaintext));
            let encrypted = encrypt_with(&key, hex(iv).try_into().unwrap(), &plaintext);
            assert_eq!(encrypted, hex(&format!("{iv}{expected}")));
            assert_eq!(decrypt(&key, &encrypted), Some(plaintext));
        }
        assert_eq!(decrypt(&Token::new([1; 32]), &[0; 15]), None);
    }

    #[test]
    fn equal_values_have_other_ciphertexts() {
        let key = Token::new([1; 32]);
        let [one, other] = [(); 2].map(|()| encrypt(&key, b"value").unwrap());
        assert_ne!(one, other);
        assert_eq!(decrypt(&key, &one), decrypt(&key, &other));
    }
}
