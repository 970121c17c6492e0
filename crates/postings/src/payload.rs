//! The encoding of one posting: the payload of an entry of a text or search index.
//!
//! ```text
//! head        varint     frequency << 1 | 1 if there is a score
//! length      varint     number of tokens of the field; 0 if it is not known
//! score       f64 LE     only if there is a score
//! positions   varint*    one for each occurrence, or none: the first, then differences
//! ```

use crate::varint;

/// The occurrences of a term in a field of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posting<'a> {
    /// The number of times that the term occurs. At least 1.
    pub frequency: u32,
    /// The number of tokens of the field. 0 if it is not known.
    pub length: u32,
    /// The score, if it does not follow from frequency and length.
    pub score: Option<f64>,
    /// The positions as [`put_position`] writes them. Empty in an index without positions.
    pub positions: &'a [u8],
}

impl<'a> Posting<'a> {
    /// Reads a payload. Returns `None` if it is damaged. Positions are not checked.
    ///
    /// ```
    /// use windrow_postings::{Posting, payload};
    ///
    /// let mut positions = Vec::new();
    /// payload::put_positions(&mut positions, &[3, 9]);
    /// let posting = Posting { frequency: 2, length: 12, score: None, positions: &positions };
    /// let mut bytes = Vec::new();
    /// posting.write(&mut bytes);
    /// assert_eq!(bytes, [4, 12, 3, 6]);
    /// let read = Posting::read(&bytes).unwrap();
    /// assert_eq!(read, posting);
    /// assert_eq!(read.positions().collect::<Vec<_>>(), [3, 9]);
    /// ```
    #[inline]
    pub fn read(mut bytes: &'a [u8]) -> Option<Posting<'a>> {
        let head = varint::take(&mut bytes)?;
        let length = varint::take(&mut bytes)?;
        let mut score = None;
        if head & 1 != 0 {
            let (number, rest) = bytes.split_first_chunk::<8>()?;
            score = Some(f64::from_le_bytes(*number));
            bytes = rest;
        }
        let frequency = head >> 1;
        (frequency > 0).then_some(Posting {
            frequency,
            length,
            score,
            positions: bytes,
        })
    }

    /// Appends the payload.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        debug_assert!(
            (1..=FREQUENCY_MAX).contains(&self.frequency),
            "a frequency of {}",
            self.frequency
        );
        varint::put(bytes, self.frequency << 1 | u32::from(self.score.is_some()));
        varint::put(bytes, self.length);
        if let Some(score) = self.score {
            bytes.extend_from_slice(&score.to_le_bytes());
        }
        bytes.extend_from_slice(self.positions);
    }

    /// Returns the positions in increasing order. Ends early if they are damaged.
    pub fn positions(&self) -> impl Iterator<Item = u32> + use<'a> {
        let mut bytes = self.positions;
        let mut last = 0_u32;
        std::iter::from_fn(move || {
            last = last.wrapping_add(varint::take(&mut bytes)?);
            Some(last)
        })
    }

    /// Returns the encoded numbers: the first position, then the differences. Ends early if they
    /// are damaged.
    pub fn position_steps(&self) -> impl Iterator<Item = u32> + use<'a> {
        let mut bytes = self.positions;
        std::iter::from_fn(move || varint::take(&mut bytes))
    }
}

/// The greatest frequency that can be encoded.
pub const FREQUENCY_MAX: u32 = u32::MAX >> 1;

/// Appends a position to those of a posting. `before` is the previous position, if there is one.
pub fn put_position(positions: &mut Vec<u8>, before: Option<u32>, position: u32) {
    varint::put(positions, position.wrapping_sub(before.unwrap_or(0)));
}

/// Appends the positions of a posting, which are in increasing order.
pub fn put_positions(into: &mut Vec<u8>, positions: &[u32]) {
    let mut last = None;
    for position in positions {
        put_position(into, last, *position);
        last = Some(*position);
    }
}

/// Appends a number that [`Posting::position_steps`] has returned.
pub fn put_position_step(positions: &mut Vec<u8>, step: u32) {
    varint::put(positions, step);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_read_as_written() {
        for score in [None, Some(0.75)] {
            for length in [0, 200, u32::MAX] {
                let posting = Posting {
                    frequency: 3,
                    length,
                    score,
                    positions: &[1, 2, 3],
                };
                let mut bytes = Vec::new();
                posting.write(&mut bytes);
                assert_eq!(Posting::read(&bytes), Some(posting));
                assert_eq!(posting.positions().collect::<Vec<_>>(), [1, 3, 6]);
                let head = bytes.len() - 3;
                for end in 0..head {
                    assert_eq!(Posting::read(&bytes[..end]), None);
                }
            }
        }
        assert_eq!(Posting::read(&[0, 5]), None);
    }
}
