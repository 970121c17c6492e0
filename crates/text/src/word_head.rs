//! The beginnings of words as numbers, which are hashed and compared faster than their bytes.

use std::ops::Range;

/// The first 16 bytes of a word as a little-endian number. A shorter word is followed by zeros. With
/// the length, it determines a word of at most [`WordHead::BYTES`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordHead(u128);

impl WordHead {
    pub(crate) const BYTES: usize = 16;

    /// Returns the head of the word with this range of a text. The time does not depend on the
    /// length of the word, unless it is at the end of the text: the length of the next word cannot
    /// be predicted, and a wrong prediction costs more than the rest.
    #[inline]
    pub(crate) fn new(text: &[u8], word: &Range<usize>) -> WordHead {
        let behind = text.get(word.start..);
        match behind.and_then(|behind| behind.first_chunk()) {
            Some(bytes) => {
                let mask = MASKS.get(word.len()).copied().unwrap_or(u128::MAX);
                WordHead(u128::from_le_bytes(*bytes) & mask)
            }
            None => {
                let Some(short) = text.get(word.clone()) else {
                    unreachable!("{word:?} is not a word of {} bytes", text.len());
                };
                let mut bytes = [0; WordHead::BYTES];
                bytes
                    .iter_mut()
                    .zip(short)
                    .for_each(|(to, from)| *to = *from);
                WordHead(u128::from_le_bytes(bytes))
            }
        }
    }

    /// Returns the head of a word.
    pub(crate) fn of(word: &str) -> WordHead {
        WordHead::new(word.as_bytes(), &(0..word.len()))
    }

    /// Returns a hash of the head. If the seeds are random, a client cannot choose words with the same
    /// hash.
    #[inline]
    pub(crate) fn hash(self, seeds: [u64; 2]) -> u64 {
        let [low, high] = [self.0 as u64, (self.0 >> 64) as u64];
        let [seed, other_seed] = seeds;
        let product = u128::from(low ^ seed) * u128::from(high ^ other_seed);
        product as u64 ^ (product >> 64) as u64
    }
}

/// By the length of a word of less than 16 bytes: the bits of its bytes.
#[allow(clippy::indexing_slicing, reason = "the length is an index")]
static MASKS: [u128; WordHead::BYTES] = {
    let mut masks = [0; WordHead::BYTES];
    let mut length = 0;
    while length < WordHead::BYTES {
        masks[length] = (1 << (8 * length)) - 1;
        length += 1;
    }
    masks
};

#[cfg(test)]
mod tests {
    use super::WordHead;

    #[test]
    fn heads_do_not_depend_on_the_text_behind_a_word() {
        let text = "a word, and a word of more than sixteen bytes".as_bytes();
        for start in 0..text.len() {
            for end in start..=text.len() {
                let word = std::str::from_utf8(&text[start..end]).unwrap();
                let head = WordHead::new(text, &(start..end));
                assert!(head == WordHead::of(word), "{word:?}");
                let longer = format!("{word}x");
                let is_short = word.len() < WordHead::BYTES;
                assert_eq!(head != WordHead::of(&longer), is_short, "{word:?}");
                let seeds = [1, 2];
                assert_eq!(head.hash(seeds), WordHead::of(word).hash(seeds));
            }
        }
    }
}
