//! Reads UTF-8 text in pieces, so that a large file is never in memory as a whole.

use std::io::{ErrorKind, Read};

use crate::texts::error as texts;

/// Returns the item that a reader has read. Sets `is_over` at its end and after its first failure.
pub fn next_item<T, E>(read: Result<Option<T>, E>, is_over: &mut bool) -> Option<Result<T, E>> {
    let item = read.transpose();
    *is_over |= !matches!(item, Some(Ok(_)));
    item
}

/// Reads a text in pieces.
#[derive(Debug)]
pub struct TextReader<R> {
    source: R,
    /// The bytes of an incomplete character at the end of the last read: at most three.
    begun: Vec<u8>,
    is_over: bool,
}

/// The maximum number of bytes of a character.
const CHARACTER_BYTES_MAX: usize = 4;

impl<R: Read> TextReader<R> {
    /// Reads from the start of a source.
    pub fn new(source: R) -> TextReader<R> {
        TextReader {
            source,
            begun: Vec::new(),
            is_over: false,
        }
    }

    /// Returns `true` at the end of the text.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Appends about `bytes` bytes to a text, fewer only at the end.
    ///
    /// # Errors
    /// Fails with a message if the source fails or is not UTF-8.
    pub fn read_more(&mut self, text: &mut String, bytes: usize) -> Result<(), String> {
        let mut read = std::mem::take(&mut self.begun);
        let limit = u64::try_from(bytes).unwrap_or(u64::MAX);
        let count = self.source.by_ref().take(limit).read_to_end(&mut read);
        let count = count.map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => texts::INCOMPLETE.to_owned(),
            ErrorKind::TimedOut => texts::SLOW.to_owned(),
            _ => error.to_string(),
        })?;
        self.is_over = count < bytes;
        match std::str::from_utf8(&read) {
            Ok(part) => text.push_str(part),
            Err(error) => {
                let (valid, rest) = read.split_at(error.valid_up_to());
                let is_begun = error.error_len().is_none() && rest.len() < CHARACTER_BYTES_MAX;
                if self.is_over || !is_begun {
                    return Err(texts::NO_TEXT.to_owned());
                }
                text.push_str(std::str::from_utf8(valid).unwrap_or_default());
                self.begun = rest.to_vec();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], piece: usize) -> Result<String, String> {
        let (mut reader, mut text) = (TextReader::new(bytes), String::new());
        while !reader.is_over() {
            reader.read_more(&mut text, piece)?;
        }
        Ok(text)
    }

    #[test]
    fn characters_are_read_across_pieces() {
        let text = "aä€😀\u{feff}z";
        for piece in 1..20 {
            assert_eq!(read(text.as_bytes(), piece).unwrap(), text, "{piece}");
            assert_eq!(read(b"", piece).unwrap(), "");
            for broken in [&b"a\xff"[..], b"\xe2\x82", b"\xc3(", b"\xed\xa0\x80"] {
                assert_eq!(read(broken, piece), Err(texts::NO_TEXT.to_owned()));
            }
        }
    }
}
