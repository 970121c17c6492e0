//! Random tokens for sessions and forms.

use std::io;

use subtle::ConstantTimeEq;

/// The number of random bytes of a token.
const BYTES: usize = 32;

/// Returns a new token in hexadecimal digits.
///
/// # Errors
/// Fails if the operating system has no random numbers.
pub fn new_token() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares two tokens in constant time.
pub fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
