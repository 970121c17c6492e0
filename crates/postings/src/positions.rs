//! The encoding of the positions of a piece.
//!
//! ```text
//! positions   count u32 LE | bits u8 for each chunk | packed chunks | varint* for the rest
//! ```
//! A chunk is 128 numbers. The numbers are those of
//! [`Posting::position_steps`](crate::Posting::position_steps), posting by posting.

use crate::bits::{self, COUNT, Numbers, packed_bytes};
use crate::varint;

/// Collects the positions of a piece.
#[derive(Debug, Default)]
pub struct PositionsWriter {
    steps: Vec<u32>,
    packed: Vec<u8>,
}

impl PositionsWriter {
    /// Adds the positions of the next posting.
    pub fn push(&mut self, steps: impl Iterator<Item = u32>) {
        self.steps.extend(steps);
    }

    /// Returns `true` if there are no positions.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Appends the encoded positions. The writer is empty afterwards.
    pub fn finish(&mut self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(self.steps.len() as u32).to_le_bytes());
        let (chunks, rest) = self.steps.as_chunks::<COUNT>();
        self.packed.clear();
        for chunk in chunks {
            bytes.push(bits::pack(chunk, &mut self.packed));
        }
        bytes.extend_from_slice(&self.packed);
        for step in rest {
            varint::put(bytes, *step);
        }
        self.steps.clear();
    }
}

/// The positions of a piece.
#[derive(Clone, Copy, Debug)]
pub struct Positions<'a> {
    count: u32,
    bits: &'a [u8],
    packed: &'a [u8],
}

impl<'a> Positions<'a> {
    /// Reads the positions at the start of these bytes. Returns `None` if they are damaged.
    pub fn read(bytes: &'a [u8]) -> Option<Positions<'a>> {
        let (count, rest) = bytes.split_first_chunk::<4>()?;
        let count = u32::from_le_bytes(*count);
        let (bits, packed) = rest.split_at_checked(count as usize / COUNT)?;
        Some(Positions {
            count,
            bits,
            packed,
        })
    }

    /// Unpacks a chunk, or the rest after the last chunk. Returns the count of its numbers.
    fn unpack(&self, chunk: usize, steps: &mut Numbers) -> Option<usize> {
        let before = self.bits.get(..chunk)?;
        let start: usize = before.iter().map(|bits| packed_bytes(*bits)).sum();
        let mut packed = self.packed.get(start..)?;
        if let Some(bits) = self.bits.get(chunk) {
            bits::unpack(packed, *bits, steps)?;
            return Some(COUNT);
        }
        let rest = self.count as usize % COUNT;
        for step in steps.iter_mut().take(rest) {
            *step = varint::take(&mut packed)?;
        }
        Some(rest)
    }
}

/// Reads positions. Keeps the chunk that was unpacked last.
#[derive(Clone, Debug)]
pub struct PositionsReader {
    chunk: Option<usize>,
    count: usize,
    steps: Numbers,
}

impl Default for PositionsReader {
    fn default() -> PositionsReader {
        PositionsReader {
            chunk: None,
            count: 0,
            steps: [0; COUNT],
        }
    }
}

impl PositionsReader {
    /// Drops the chunk. To be called before positions of another piece are read.
    pub fn clear(&mut self) {
        self.chunk = None;
    }

    /// Appends the `frequency` numbers from index `start` on. Returns `None` if they are damaged.
    pub fn steps(
        &mut self,
        positions: &Positions<'_>,
        start: u32,
        frequency: u32,
        into: &mut Vec<u32>,
    ) -> Option<()> {
        let end = start.checked_add(frequency)?;
        if end > positions.count {
            return None;
        }
        let (mut at, end) = (start as usize, end as usize);
        while at < end {
            let chunk = at / COUNT;
            if self.chunk != Some(chunk) {
                self.chunk = None;
                self.count = positions.unpack(chunk, &mut self.steps)?;
                self.chunk = Some(chunk);
            }
            let first = at % COUNT;
            let last = (first + end - at).min(self.count);
            into.extend_from_slice(self.steps.get(first..last)?);
            if last == first {
                return None;
            }
            at += last - first;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_from_any_posting_on() {
        for count in [1_u32, 127, 128, 129, 1_000] {
            let all: Vec<u32> = (0..count).map(|number| number * 7919 % 4_000).collect();
            let (mut writer, mut bytes) = (PositionsWriter::default(), vec![9, 9]);
            writer.push(all.iter().copied());
            assert!(!writer.is_empty());
            writer.finish(&mut bytes);
            assert!(writer.is_empty());
            let positions = Positions::read(&bytes[2..]).unwrap();
            let mut reader = PositionsReader::default();
            for start in 0..count {
                for frequency in [1, 2, 200] {
                    let mut found = Vec::new();
                    let read = reader.steps(&positions, start, frequency, &mut found);
                    let expected = all.get(start as usize..(start + frequency) as usize);
                    assert_eq!(read.is_some(), expected.is_some());
                    if let Some(expected) = expected {
                        assert_eq!(found, expected);
                    }
                }
            }
        }
    }

    #[test]
    fn damaged_positions_do_no_harm() {
        let (mut writer, mut bytes) = (PositionsWriter::default(), Vec::new());
        writer.push((0..300).map(|number| number * 7));
        writer.finish(&mut bytes);
        let read = |bytes: &[u8]| {
            let positions = Positions::read(bytes)?;
            PositionsReader::default().steps(&positions, 0, 300, &mut Vec::new())
        };
        assert!(read(&bytes).is_some());
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end]).is_none(), "cut at {end}");
            let mut damaged = bytes.clone();
            damaged[end] ^= 0xFF;
            read(&damaged);
        }
    }
}
