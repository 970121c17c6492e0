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

/// The number of parts of a list of ids whose bits are set in turn.
const PARTS: usize = 4;

/// Sets the bit `id - first` for each id. Ids without such a bit are left out.
///
/// ```
/// let mut bits = [0; 2];
/// windrow_search::set_bits(&mut bits, 100, &[100, 163, 164, 300]);
/// assert_eq!(bits, [1 | 1 << 63, 1]);
/// ```
#[inline]
pub fn set_bits(bits: &mut [u64], first: u64, ids: &[u64]) {
    // Ids that follow each other are often in one word. To change a word again, the processor waits
    // until it was stored. So the ids are taken in turn from the parts of the list.
    let part = ids.len() / PARTS;
    let (parts, rest) = ids.split_at(part * PARTS);
    let (one, two) = parts.split_at(2 * part);
    let ((a, b), (c, d)) = (one.split_at(part), two.split_at(part));
    for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
        for id in [a, b, c, d] {
            set_bit(bits, id.wrapping_sub(first));
        }
    }
    for id in rest {
        set_bit(bits, id.wrapping_sub(first));
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
