//! Reads documents from a stream.

use std::io::Read;

use windrow_document::DocumentBuf;

use crate::text_reader::{TextReader, next_item};

use super::parse::DocumentReader;
use super::scan::SyntaxError;

/// Reads the documents of a source as [`DocumentReader`] does. The source can be larger than the
/// memory.
#[derive(Debug)]
pub struct DocumentStream<R> {
    source: TextReader<R>,
    /// The text from the next document on, as far as it was read.
    text: String,
    /// The number of bytes of `text` that belong to documents that were returned.
    offset: usize,
    /// `None` before the first document, then whether the documents are in an array.
    is_array: Option<bool>,
    /// The position of `text` in the source.
    start: TextPosition,
    is_over: bool,
}

/// A position in a text.
#[derive(Clone, Copy, Debug, Default)]
struct TextPosition {
    /// The number of complete lines before the position.
    lines: usize,
    /// The number of characters before the position in its line.
    columns: usize,
}

/// The number of bytes of a read.
const PIECE_BYTES: usize = 256 << 10;
/// The maximum number of bytes of a document's text. BSON documents have at most 16 MiB, but their
/// text can be longer.
const TEXT_BYTES_MAX: usize = 64 << 20;

impl<R: Read> DocumentStream<R> {
    /// Reads from the start of a source.
    pub fn new(source: R) -> DocumentStream<R> {
        DocumentStream {
            source: TextReader::new(source),
            text: String::new(),
            offset: 0,
            is_array: None,
            start: TextPosition::default(),
            is_over: false,
        }
    }

    fn read(&mut self) -> Result<Option<DocumentBuf>, String> {
        loop {
            let text = self.text.get(self.offset..).unwrap_or_default();
            let mut reader = match self.is_array {
                None => DocumentReader::new(text),
                Some(is_array) => DocumentReader::resume(text, is_array),
            };
            let read = reader.next();
            // The document may be incomplete.
            if reader.has_seen_end() && !self.source.is_over() {
                self.read_more()?;
                continue;
            }
            return match read {
                Some(Ok(document)) => {
                    self.is_array = Some(reader.is_array());
                    self.offset += reader.offset();
                    Ok(Some(document))
                }
                Some(Err(error)) => Err(self.in_source(error).to_string()),
                None => Ok(None),
            };
        }
    }

    /// Doubles the text, so that parsing a long document again after each read takes linear time in
    /// total.
    fn read_more(&mut self) -> Result<(), String> {
        let returned = self.text.get(..self.offset).unwrap_or_default();
        self.start = self.position_after(returned);
        self.text.drain(..self.offset);
        self.offset = 0;
        if self.text.len() >= TEXT_BYTES_MAX {
            let (line, mebibytes) = (self.start.lines + 1, TEXT_BYTES_MAX >> 20);
            return Err(format!(
                "the document has more than {mebibytes} MiB of text, at line {line}"
            ));
        }
        let bytes = self.text.len().max(PIECE_BYTES);
        self.source.read_more(&mut self.text, bytes)
    }

    /// Returns the position after a prefix of `text`.
    fn position_after(&self, part: &str) -> TextPosition {
        match part.rfind('\n') {
            None => TextPosition {
                lines: self.start.lines,
                columns: self.start.columns + part.chars().count(),
            },
            Some(at) => {
                let last = part.get(at + 1..).unwrap_or_default();
                TextPosition {
                    lines: self.start.lines + part.matches('\n').count(),
                    columns: last.chars().count(),
                }
            }
        }
    }

    /// Converts the position of an error in `text` to the position in the source.
    fn in_source(&self, error: SyntaxError) -> SyntaxError {
        let returned = self.text.get(..self.offset).unwrap_or_default();
        let TextPosition { lines, columns } = self.position_after(returned);
        let is_first = error.line == 1;
        SyntaxError {
            line: error.line + lines,
            column: error.column + if is_first { columns } else { 0 },
            ..error
        }
    }
}

impl<R: Read> Iterator for DocumentStream<R> {
    type Item = Result<DocumentBuf, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        next_item(self.read(), &mut self.is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::literals::DocumentReader;
    use std::io;

    /// Returns a byte at a time.
    struct Slow<'t>(&'t [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let count = bytes.len().min(1).min(self.0.len());
            let (first, rest) = self.0.split_at(count);
            bytes[..count].copy_from_slice(first);
            self.0 = rest;
            Ok(count)
        }
    }

    /// A stream that reads a byte, parses, reads another one, and so on: every place is an end.
    fn in_bytes(text: &str) -> Result<Vec<DocumentBuf>, String> {
        let mut stream = DocumentStream::new(Slow(text.as_bytes()));
        let mut documents = Vec::new();
        loop {
            let shown = stream
                .text
                .get(stream.offset..)
                .unwrap_or_default()
                .to_owned();
            let mut reader = match stream.is_array {
                None => DocumentReader::new(&shown),
                Some(is_array) => DocumentReader::resume(&shown, is_array),
            };
            let _ = reader.next();
            if reader.has_seen_end() && !stream.source.is_over() {
                stream.source.read_more(&mut stream.text, 1)?;
                continue;
            }
            match stream.next() {
                Some(document) => documents.push(document?),
                None => return Ok(documents),
            }
        }
    }

    #[test]
    fn every_place_can_be_the_end_of_a_piece() {
        let texts = [
            "",
            "{a: 1}",
            "{a: 1}\n{b: 'x\\u{e4}\\ud83d\\ude00'}, {c: /a}[/]b/i} // {\n /* { */ {d: -Infinity}",
            "[{a: [1, 2.5e+3, 0x1f]}, {b: ObjectId('65a1b2c3d4e5f60718293a4b')},\n {c: new Date(0)},]",
            "[]",
            "\u{feff}{\"a\": {\"$numberLong\": \"5\"}, \"ä\": true, b: tru",
            "[{a: 1}",
            "[{a: 1}] x",
            "{a: tru}",
            "{a: 1} {a: nothing}",
            "{a: 'x",
            "{a: 1}\n\n  {b: 1,, c: 2}",
            "{a: 12",
        ];
        for text in texts {
            let expected: Result<Vec<_>, _> = DocumentReader::new(text).collect();
            let expected = expected.map_err(|error| error.to_string());
            assert_eq!(in_bytes(text), expected, "{text}");
            let whole: Result<Vec<_>, _> = DocumentStream::new(text.as_bytes()).collect();
            assert_eq!(whole, expected, "{text}");
        }
    }

    #[test]
    fn long_texts_are_read_in_pieces() {
        let mut text = String::new();
        for number in 0..20_000 {
            text.push_str(&format!(
                "{{ number: {number}, text: \"{}\" }}\n",
                "ä".repeat(20)
            ));
        }
        text.push_str(&format!("{{ long: '{}' }}\n", "x".repeat(3_000_000)));
        let mut stream = DocumentStream::new(text.as_bytes());
        for number in 0..20_000 {
            let document = stream.next().unwrap().unwrap();
            assert_eq!(document.get("number").unwrap().as_whole(), Some(number));
            assert!(stream.text.len() <= 2 * PIECE_BYTES);
        }
        assert!(stream.next().unwrap().is_ok() && stream.next().is_none());
        text.push_str("  {a: }");
        let error = DocumentStream::new(text.as_bytes()).find_map(Result::err);
        assert_eq!(error.unwrap(), "\"}\" is no value, at line 20002, column 7");
    }

    #[test]
    fn a_text_without_an_end_is_not_held() {
        let source = io::repeat(b'x');
        let text = io::Read::chain(&b"{a: 1}\n{a: '"[..], source);
        let mut stream = DocumentStream::new(text);
        assert!(stream.next().unwrap().is_ok());
        let error = stream.next().unwrap().unwrap_err();
        assert_eq!(
            error,
            "the document has more than 64 MiB of text, at line 2"
        );
        assert!(stream.next().is_none());
    }
}
