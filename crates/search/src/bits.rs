//! Windows of record ids as bitmaps.

/// The number of 64-bit words of a window.
pub(crate) const WINDOW_WORDS: usize = 64;
/// The number of ids of a window.
pub(crate) const WINDOW_IDS: u64 = 64 * WINDOW_WORDS as u64;

/// The number of steps that are counted for reading one list in a window.
///
/// Steps are counted between records, so the interrupt is not checked while an operator moves to
/// its next record. The lists of postings check it too, and end early if they are interrupted: see
/// [`Postings`](crate::Postings).
pub(crate) const STEPS_PER_LIST: u32 = 64;

/// Sets the bit `at`. Returns `false` if it is beyond the end.
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

/// The number of parts into which [`set_bits`] splits a list of ids.
const PARTS: usize = 4;

/// Sets the bit `id - first` for each id. Ignores ids whose bit is beyond the end.
///
/// ```
/// let mut bits = [0; 2];
/// windrow_search::set_bits(&mut bits, 100, &[100, 163, 164, 300]);
/// assert_eq!(bits, [1 | 1 << 63, 1]);
/// ```
#[inline]
pub fn set_bits(bits: &mut [u64], first: u64, ids: &[u64]) {
    // Neighbouring ids are often in one word. The processor has to wait for the store of a word
    // before it can change the word again. Taking the ids from the parts of the list in turn avoids
    // such waits.
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

/// Returns the number of the first bit at or after `from` that is set.
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
