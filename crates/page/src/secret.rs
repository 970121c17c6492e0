//! Random tokens that nobody can guess.

use std::io;

use subtle::ConstantTimeEq;

/// The random bytes of a token.
const BYTES: usize = 32;

/// Returns a new token: hexadecimal digits.
///
/// # Errors
/// Fails if the operating system has no random numbers.
pub fn new_token() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Compares tokens in a time that does not tell where they differ.
pub fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
