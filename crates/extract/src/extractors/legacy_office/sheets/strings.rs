//! Strings of workbooks.
//!
//! ```text
//! string  length in characters (u16, short strings u8), flags (u8), counts of what follows the
//!         characters, if the flags say so: runs (u16), phonetic bytes (u32); then the characters
//! flags   bit 0: UTF-16, otherwise one byte each; bit 2: phonetic; bit 3: runs
//! ```

use crate::extractors::bytes::{decode_latin, decode_utf16, slice_at, u8_at, u16_at};

const FLAG_UTF16: u8 = 1;
const FLAG_PHONETIC: u8 = 4;
const FLAG_RUNS: u8 = 8;

/// Reads a string at the start of a record.
pub(super) fn read_string(content: &[u8]) -> Option<String> {
    let length = usize::from(u16_at(content, 0)?);
    decode_characters(content.get(2..)?, length)
}

/// Reads a string whose length is one byte.
pub(super) fn read_short_string(content: &[u8]) -> Option<String> {
    let length = usize::from(u8_at(content, 0)?);
    decode_characters(content.get(1..)?, length)
}

/// Decodes flags and at most `length` characters.
pub(super) fn decode_characters(content: &[u8], length: usize) -> Option<String> {
    let (flags, characters) = content.split_first()?;
    let is_utf16 = flags & FLAG_UTF16 != 0;
    let bytes = if is_utf16 { 2 * length } else { length };
    let bytes = characters.get(..bytes).unwrap_or(characters);
    Some(if is_utf16 {
        decode_utf16(bytes)
    } else {
        decode_latin(bytes)
    })
}

/// Reads strings from a record and its continuation records. If the characters of a string continue
/// in the next record, their flags are repeated there.
pub(super) struct StringReader<'a> {
    segments: std::vec::IntoIter<&'a [u8]>,
    segment: &'a [u8],
}

impl<'a> StringReader<'a> {
    pub(super) fn new(segments: Vec<&'a [u8]>) -> Self {
        StringReader {
            segments: segments.into_iter(),
            segment: &[],
        }
    }

    /// Returns the next string, or `None` at the end or if it is damaged.
    pub(super) fn read(&mut self) -> Option<String> {
        let length = usize::from(u16::from_le_bytes(self.take()?));
        let [mut flags] = self.take()?;
        let has = |flag| flags & flag != 0;
        let runs = if has(FLAG_RUNS) {
            u16::from_le_bytes(self.take()?)
        } else {
            0
        };
        let phonetic = if has(FLAG_PHONETIC) {
            u32::from_le_bytes(self.take()?)
        } else {
            0
        };
        let (mut text, mut left) = (String::new(), length);
        while left > 0 {
            if self.segment.is_empty() {
                self.segment = self.segments.next()?;
                [flags] = self.take()?;
            }
            let width = if flags & FLAG_UTF16 == 0 { 1 } else { 2 };
            let count = left.min(self.segment.len() / width);
            if count == 0 {
                return None;
            }
            let (characters, rest) = self.segment.split_at_checked(count * width)?;
            text += &if width == 1 {
                decode_latin(characters)
            } else {
                decode_utf16(characters)
            };
            self.segment = rest;
            left -= count;
        }
        self.skip(usize::from(runs) * 4)?;
        self.skip(usize::try_from(phonetic).ok()?)?;
        Some(text)
    }

    /// Takes bytes that are not split between records.
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        if self.segment.is_empty() {
            self.segment = self.segments.next()?;
        }
        let bytes = self.segment.first_chunk::<N>()?;
        self.segment = slice_at(self.segment, N, self.segment.len() - N)?;
        Some(*bytes)
    }

    fn skip(&mut self, mut count: usize) -> Option<()> {
        while count > self.segment.len() {
            count -= self.segment.len();
            self.segment = self.segments.next()?;
        }
        self.segment = self.segment.get(count..)?;
        Some(())
    }
}
