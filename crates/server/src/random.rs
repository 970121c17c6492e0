//! Random numbers that clients cannot guess.

/// Returns 64 random bits of the operating system. If that fails, they are derived from the clock
/// and an address.
pub(crate) fn bits() -> u64 {
    getrandom::u64().unwrap_or_else(|_| {
        let now = std::time::SystemTime::now();
        let nanos = now
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default()
            .as_nanos();
        (nanos as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (&raw const nanos as usize as u64)
    })
}

/// Returns a random UUID, version 4.
pub(crate) fn uuid() -> [u8; 16] {
    let bits = u128::from(bits()) << 64 | u128::from(bits());
    let versioned = bits & !(0xF << 76) & !(0b11 << 62) | 0x4 << 76 | 0b10 << 62;
    versioned.to_be_bytes()
}

/// Returns random bytes of the operating system for keys. Fails if it has none: a key must not be
/// guessed.
pub(crate) fn secret(length: usize) -> Result<Vec<u8>, windrow_wire::CommandError> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("the operating system returns no random numbers: {error}");
        windrow_wire::CommandError::new(windrow_wire::ErrorCode::UnknownError, message)
    })?;
    Ok(bytes)
}
