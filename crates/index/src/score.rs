//! The payload of a posting: the score of a term in a document.
//!
//! ```text
//! 1 byte   tokens, with bit 0x80 set if the value equals the term
//! 2 bytes  occurrences | tokens, as above
//! 8 bytes  the score, f64 LE
//! ```
//! The short forms stand for the score of a term in a single value with weight 1: the number of its
//! occurrences (1 in the form of one byte) and the number of tokens of the value. They are used
//! only if they restore the score bit by bit. The formula is in `windrow_text`, module `score`.

/// The maximum number of tokens in a short form.
const TOKENS_MAX: u32 = 127;
/// The maximum number of occurrences that are tried for the form of two bytes.
const OCCURRENCES_MAX: u32 = 8;

/// Encodes scores as payloads.
///
/// Terms with the same number of occurrences in a value have the same score. So the encoder caches
/// its recent results.
///
/// ```
/// use windrow_index::score::{Encoder, decode};
///
/// let mut payload = Vec::new();
/// Encoder::default().encode(&mut payload, 0.75);
/// assert_eq!(payload.len(), 1);
/// assert_eq!(decode(&payload), Some(0.75));
/// ```
#[derive(Debug)]
pub struct Encoder {
    /// A direct-mapped cache: the bits of a score select its slot.
    cache: [CachedPayload; CACHE_SLOTS],
}

/// A score and its payload.
#[derive(Clone, Copy, Debug)]
struct CachedPayload {
    bits: u64,
    bytes: [u8; 8],
    length: usize,
}

/// The number of slots of the cache.
const CACHE_SLOTS: usize = 512;

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder {
            cache: [CachedPayload::of(f64::NAN); CACHE_SLOTS],
        }
    }
}

impl Encoder {
    /// Appends the payload of a score.
    #[allow(
        clippy::indexing_slicing,
        reason = "the slot is a remainder by the number of slots"
    )]
    pub fn encode(&mut self, payload: &mut Vec<u8>, score: f64) {
        let bits = score.to_bits();
        let mixed = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = (mixed >> 32) as usize % CACHE_SLOTS;
        let known = &mut self.cache[slot];
        if known.bits != bits {
            *known = CachedPayload::of(score);
        }
        payload.extend(known.bytes.iter().take(known.length));
    }
}

impl CachedPayload {
    /// Computes the payload of a score.
    fn of(score: f64) -> CachedPayload {
        let mut known = CachedPayload {
            bits: score.to_bits(),
            bytes: score.to_le_bytes(),
            length: 8,
        };
        for occurrences in 1..=OCCURRENCES_MAX {
            for whole in [false, true] {
                let Some(tokens) = tokens_of(score, occurrences, whole) else {
                    continue;
                };
                let place = tokens as u8 | if whole { 0x80 } else { 0 };
                if occurrences == 1 {
                    (known.bytes[0], known.length) = (place, 1);
                } else {
                    known.bytes[..2].copy_from_slice(&[occurrences as u8, place]);
                    known.length = 2;
                }
                return known;
            }
        }
        known
    }
}

/// Returns the score of a payload. Returns `None` if the payload is empty or has three to seven
/// bytes.
pub fn decode(payload: &[u8]) -> Option<f64> {
    match payload {
        [place] => Some(score_of(1, *place)),
        [occurrences, place] => Some(score_of(u32::from(*occurrences), *place)),
        _ => Some(f64::from_le_bytes(*payload.first_chunk()?)),
    }
}

/// Decodes the byte that contains the number of tokens and the bit 0x80.
fn score_of(occurrences: u32, place: u8) -> f64 {
    score(occurrences, u32::from(place & 0x7F), place & 0x80 != 0)
}

/// Returns `freq · coeff · adjust` of the formula, with the operations in the same order as in
/// `windrow_text`. Another order would change the last bits.
fn score(occurrences: u32, tokens: u32, whole: bool) -> f64 {
    let coefficient = 0.5 * f64::from(occurrences) / f64::from(tokens) + 0.5;
    let adjustment = if whole { 1.1 } else { 1.0 };
    frequency(occurrences) * coefficient * adjustment
}

/// Returns the sum of the first `occurrences` summands of 1 + 1/2 + 1/4 + … Each sum is exact in an
/// `f64` until rounding makes it 2.
fn frequency(occurrences: u32) -> f64 {
    2.0 - 2.0 / (1u64 << occurrences.min(60)) as f64
}

/// Returns the number of tokens for which the formula gives exactly this score. Returns `None` if
/// there is none up to [`TOKENS_MAX`].
fn tokens_of(score_wanted: f64, occurrences: u32, whole: bool) -> Option<u32> {
    let adjustment = if whole { 1.1 } else { 1.0 };
    let excess = score_wanted / (frequency(occurrences) * adjustment) - 0.5;
    let tokens = (0.5 * f64::from(occurrences) / excess).round();
    if !(1.0..=f64::from(TOKENS_MAX)).contains(&tokens) {
        return None;
    }
    let tokens = tokens as u32;
    let exact = tokens >= occurrences && score(occurrences, tokens, whole) == score_wanted;
    exact.then_some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(score: f64, length: usize) {
        let mut payload = Vec::new();
        let mut encoder = Encoder::default();
        encoder.encode(&mut payload, score);
        assert_eq!(decode(&payload).map(f64::to_bits), Some(score.to_bits()));
        assert_eq!(payload.len(), length, "{score}");
        encoder.encode(&mut payload, score);
        assert_eq!(payload[..length], payload[length..], "{score} again");
    }

    #[test]
    fn frequencies_equal_the_sums_of_their_summands() {
        for occurrences in 0..=255 {
            let sum: f64 = (0..occurrences).map(|one| 0.5f64.powi(one)).sum();
            assert_eq!(frequency(occurrences as u32), sum, "{occurrences}");
        }
    }

    #[test]
    fn scores_are_restored_exactly_and_common_ones_are_short() {
        for tokens in 1..=127 {
            check(score(1, tokens, false), 1);
        }
        check(0.75, 1);
        check(1.1, 1);
        check(score(3, 10, false), 2);
        check(score(8, 20, false), 2);
        check(7.25, 8);
        check(0.1, 8);
        check(score(1, 128, false), 8);
    }

    #[test]
    fn a_malformed_payload_has_no_score() {
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[1, 2, 3]), None);
    }

    #[test]
    fn scores_of_the_text_crate_are_short() {
        let mut terms = windrow_text::DocumentTerms::new(windrow_text::TextVersion::V3);
        let text = "alpha beta alpha gamma delta alpha epsilon zeta eta theta";
        terms.add(text, 1.0, windrow_text::Language::NONE);
        for (_, score) in terms.iter() {
            check(score, if score > 1.0 { 2 } else { 1 });
        }
    }
}
