//! Upper bounds of scores.
//!
//! The score of a posting grows with the frequency of the term and falls with the length of the
//! field. An [`Impact`] is a frequency and a length. It bounds a posting if its frequency is not
//! smaller and its length is not greater: the posting then has no greater score than the impact.
//!
//! A group has two impacts, and one of them bounds each posting. With a single impact, a short
//! field with a low frequency and a long field with a high frequency would have the bound of a
//! short field with a high frequency, which is much too high.

/// A frequency and a length, in a byte each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impact {
    /// The frequency. 255 stands for all greater frequencies, too. 0 if the impact bounds no
    /// posting.
    pub frequency: u8,
    /// The code of the length, see [`length_code`].
    pub length: u8,
}

/// The frequency that stands for all greater ones, too.
pub const FREQUENCY_MANY: u8 = u8::MAX;

impl Impact {
    /// Creates the impact of one posting.
    #[inline]
    pub fn new(frequency: u32, length: u32) -> Impact {
        Impact {
            frequency: u8::try_from(frequency).unwrap_or(FREQUENCY_MANY),
            length: length_code(length),
        }
    }

    /// Returns the impact that bounds what either of the two bounds.
    fn join(self, other: Impact) -> Impact {
        Impact {
            frequency: self.frequency.max(other.frequency),
            length: self.length.min(other.length),
        }
    }

    /// Returns `true` if this impact bounds all that the other one bounds.
    fn covers(self, other: Impact) -> bool {
        self.frequency >= other.frequency && self.length <= other.length
    }
}

/// Returns two impacts, of which one bounds each of the given impacts. The second has the frequency
/// 0 if the first bounds all.
pub fn bounds(impacts: impl Iterator<Item = Impact>) -> [Impact; 2] {
    // The impacts that no other one covers.
    let mut frontier: Vec<Impact> = Vec::new();
    for impact in impacts {
        if frontier.iter().any(|one| one.covers(impact)) {
            continue;
        }
        frontier.retain(|one| !impact.covers(*one));
        frontier.push(impact);
    }
    frontier.sort_unstable_by_key(|one| one.frequency);
    let joined = |part: &[Impact]| part.iter().copied().reduce(Impact::join);
    let splits = (1..frontier.len()).filter_map(|at| {
        let (low, high) = frontier.split_at(at);
        Some([joined(high)?, joined(low)?])
    });
    match splits.min_by(|one, other| looseness(one).total_cmp(&looseness(other))) {
        Some(best) => best,
        None => [joined(&frontier).unwrap_or_default(), Impact::default()],
    }
}

/// Estimates how high the bounds are. The formula is that of BM25 with usual parameters.
fn looseness(impacts: &[Impact; 2]) -> f32 {
    let weight = |impact: &Impact| {
        let frequency = f32::from(impact.frequency);
        frequency / (frequency + 1.2 + length_of_code(impact.length) as f32 / 256.0)
    };
    impacts.iter().map(weight).sum()
}

/// Each length below this is its own code.
const EXACT_LENGTHS: u32 = 24;

/// Returns the code of a length: 0 to 39 are exact, longer lengths are rounded down to four
/// significant bits. This is the norm of Lucene's BM25 (`SmallFloat.intToByte4`).
#[inline]
pub fn length_code(length: u32) -> u8 {
    let Some(over) = length.min(LENGTH_MAX).checked_sub(EXACT_LENGTHS) else {
        return length as u8;
    };
    let bits = 32 - over.leading_zeros();
    let code = match bits.checked_sub(4) {
        None | Some(0) => over,
        Some(shift) => (over >> shift) & 7 | (shift + 1) << 3,
    };
    (EXACT_LENGTHS + code) as u8
}

/// The greatest length that has a code.
const LENGTH_MAX: u32 = i32::MAX as u32;

/// Returns the smallest length with this code.
#[inline]
pub fn length_of_code(code: u8) -> u32 {
    let Some(code) = u32::from(code).checked_sub(EXACT_LENGTHS) else {
        return u32::from(code);
    };
    let bits = code & 7;
    let over = match (code >> 3).checked_sub(1) {
        None => bits,
        Some(shift) => (bits | 8) << shift,
    };
    EXACT_LENGTHS.saturating_add(over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_rounded_down_to_four_bits() {
        for length in 0..40 {
            assert_eq!(length_of_code(length_code(length)), length);
        }
        // From Lucene's documentation: 255 codes, increasing, the last one for the greatest length.
        let mut last = None;
        for code in 0..=u8::MAX {
            let length = length_of_code(code);
            assert!(last.is_none_or(|last| last < length), "{code}");
            assert_eq!(length_code(length), code);
            last = Some(length);
        }
        assert_eq!(
            length_code(1_000),
            length_code(length_of_code(length_code(1_000)))
        );
        assert!(length_of_code(length_code(1_000)) <= 1_000);
        assert_eq!(length_code(u32::MAX), u8::MAX);
        assert_eq!(length_of_code(length_code(150)), 144);
    }

    #[test]
    fn bounds_cover_all_and_are_tight() {
        let impact = |frequency, length| Impact { frequency, length };
        assert_eq!(bounds([].into_iter()), [Impact::default(); 2]);
        let one = [impact(1, 9), impact(3, 5), impact(2, 7)];
        assert_eq!(bounds(one.into_iter()), [impact(3, 5), Impact::default()]);
        let two = [impact(1, 5), impact(9, 200), impact(1, 7)];
        assert_eq!(bounds(two.into_iter()), [impact(9, 200), impact(1, 5)]);
        let many = [
            impact(1, 5),
            impact(2, 10),
            impact(30, 150),
            impact(40, 200),
        ];
        let found = bounds(many.into_iter());
        for one in many {
            assert!(found.iter().any(|bound| bound.covers(one)), "{found:?}");
        }
        assert_eq!(Impact::new(1_000, 12).frequency, FREQUENCY_MANY);
    }
}
