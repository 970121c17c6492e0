//! Bits of record ids in windows.

/// The number of words in a window of bits.
pub(crate) const WINDOW_WORDS: usize = 64;
/// The number of ids for which a window of bits has room.
pub(crate) const WINDOW_IDS: u64 = 64 * WINDOW_WORDS as u64;

/// Sets a bit. Returns `false` if there is no such bit.
#[inline]
pub(crate) fn set_bit(bits: &mut [u64], at: u64) -> bool {
    let word = usize::try_from(at / 64)
        .ok()
        .and_then(|at| bits.get_mut(at));
    match word {
        Some(word) => {
            *word |= 1 << (at % 64);
            true
        }
        None => false,
    }
}

/// Returns the number of the first bit that is set, from `from` on.
#[inline]
pub(crate) fn next_bit(bits: &[u64], from: u64) -> Option<u64> {
    let mut at = usize::try_from(from / 64).ok()?;
    let mut word = *bits.get(at)? & (u64::MAX << (from % 64));
    while word == 0 {
        at += 1;
        word = *bits.get(at)?;
    }
    Some(at as u64 * 64 + u64::from(word.trailing_zeros()))
}
