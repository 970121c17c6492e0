//! The score of a term in a document as a posting's payload.
//!
//! ```text
//! 1 byte   n | 0x80 for a value that is the bare term: one occurrence in one value of n tokens, weight 1
//! 2 bytes  occurrences | the same
//! 8 bytes  the score, f64 LE
//! ```
//! The short forms are taken only where they give back the very same bits.

/// Tokens of a value that a short form can say.
const TOKENS_MAX: u32 = 127;
/// Occurrences that are tried for the short form of two bytes.
const OCCURRENCES_MAX: u32 = 8;

/// Makes payloads of scores. Terms that stand in a value equally often have the same one, so it keeps
/// what it made last.
#[derive(Debug)]
pub struct Encoder {
    /// Each at a place that its bits say.
    known: [Known; KNOWN],
}

/// A score and the bytes of its payload.
#[derive(Clone, Copy, Debug)]
struct Known {
    bits: u64,
    bytes: [u8; 8],
    length: usize,
}

const KNOWN: usize = 512;

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder {
            known: [Known::of(f64::NAN); KNOWN],
        }
    }
}

impl Encoder {
    /// Appends the payload of a score.
    #[allow(clippy::indexing_slicing, reason = "a remainder by the length")]
    pub fn encode(&mut self, payload: &mut Vec<u8>, score: f64) {
        let bits = score.to_bits();
        let mixed = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (mixed >> 32) as usize % KNOWN;
        let known = &mut self.known[place];
        if known.bits != bits {
            *known = Known::of(score);
        }
        payload.extend(known.bytes.iter().take(known.length));
    }
}

impl Known {
    fn of(score: f64) -> Known {
        let mut known = Known {
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

/// The score of a payload; None where it is no payload of a score.
pub fn decode(payload: &[u8]) -> Option<f64> {
    match payload {
        [place] => Some(score_of(1, *place)),
        [occurrences, place] => Some(score_of(u32::from(*occurrences), *place)),
        _ => Some(f64::from_le_bytes(*payload.first_chunk()?)),
    }
}

fn score_of(occurrences: u32, place: u8) -> f64 {
    score(occurrences, u32::from(place & 0x7F), place & 0x80 != 0)
}

/// `freq · coeff · adjust` of `windrow_text`'s rule, computed in the same order.
fn score(occurrences: u32, tokens: u32, whole: bool) -> f64 {
    let coefficient = 0.5 * f64::from(occurrences) / f64::from(tokens) + 0.5;
    let adjustment = if whole { 1.1 } else { 1.0 };
    frequency(occurrences) * coefficient * adjustment
}

/// 1 + 1/2 + 1/4 + …, so many summands: each sum is exact, until they are 2 for a double.
fn frequency(occurrences: u32) -> f64 {
    2.0 - 2.0 / (1u64 << occurrences.min(60)) as f64
}

/// The number of tokens with which the formula gives exactly this score.
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
    fn frequencies_are_those_of_adding_up() {
        for occurrences in 0..=255 {
            let sum: f64 = (0..occurrences).map(|one| 0.5f64.powi(one)).sum();
            assert_eq!(frequency(occurrences as u32), sum, "{occurrences}");
        }
    }

    #[test]
    fn scores_come_back_to_the_bit_and_common_ones_are_short() {
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
    fn what_is_no_payload_has_no_score() {
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[1, 2, 3]), None);
    }

    #[test]
    fn scores_are_those_of_the_text_crate() {
        let mut terms = windrow_text::DocumentTerms::new(windrow_text::TextVersion::V3);
        let text = "alpha beta alpha gamma delta alpha epsilon zeta eta theta";
        terms.add(text, 1.0, windrow_text::Language::NONE);
        for (_, score) in terms.iter() {
            check(score, if score > 1.0 { 2 } else { 1 });
        }
    }
}
