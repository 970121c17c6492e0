//! Plain text in any encoding.

use std::borrow::Cow;
use std::io::BufRead;

use crate::encoding::{self, truncate};
use crate::error::ExtractError;
use crate::format::Input;
use crate::format::extraction::{Extraction, Location, catch_panic};
use crate::hyphenation::join_divided_words;
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::terminal_text::remove_terminal_codes;
use crate::text_parts::part_length;

const FORMAT: &str = "plain text";

/// Decodes the text.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let decoded = encoding::decode(input.bytes, limits.text_bytes_max);
    let changed = match remove_terminal_codes(&decoded.text) {
        Cow::Owned(changed) => Some(changed),
        Cow::Borrowed(_) => None,
    };
    let mut text = join_divided_words(changed.unwrap_or(decoded.text));
    let is_cut = truncate(&mut text, limits.text_bytes_max);
    Ok(ExtractedDocument {
        truncated: decoded.truncated || is_cut,
        ..ExtractedDocument::new(DocumentKind::Text, text)
    })
}

/// Emits the parts of a long text, see [`Limits::part_bytes_max`], with one part in memory. Each
/// part has its own encoding and language. Texts of less than two parts, and texts in UTF-16 and
/// UTF-32, are read as a whole.
pub(crate) fn extract_stream(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    if extraction.is_of_other_part() {
        return Ok(());
    }
    let mut pieces = Pieces {
        bytes: Vec::new(),
        bytes_read: 0,
        piece_bytes_max: extraction.limits.part_bytes_max,
    };
    pieces.read(extraction, reader, pieces.piece_bytes_max.saturating_mul(2))?;
    if pieces.is_last() {
        return extraction.extract_bytes(location, &pieces.bytes);
    }
    if encoding::is_utf16_or_utf32(&pieces.bytes) {
        pieces.read(extraction, reader, usize::MAX)?;
        return extraction.extract_bytes(location, &pieces.bytes);
    }
    let (mut parts_count, mut limits) = (0, extraction.limits.clone());
    loop {
        extraction.limits.check_deadline()?;
        let (is_last, bytes) = (pieces.is_last(), pieces.next());
        let (length, input) = (bytes.len(), Input { name: "", bytes });
        let mut document = catch_panic(FORMAT, || extract(&input, &limits))?;
        limits.text_bytes_max = limits.text_bytes_max.saturating_sub(document.text.len());
        document.truncated |= limits.text_bytes_max == 0 && !is_last;
        let is_end = is_last || document.truncated;
        extraction.emit_piece(location, document, &mut parts_count);
        if is_end {
            return Ok(());
        }
        pieces.bytes.drain(..length);
        pieces.read(extraction, reader, length)?;
    }
}

/// The bytes of a text that have been read and are not yet extracted. Two pieces, unless the text
/// ends before.
struct Pieces {
    bytes: Vec<u8>,
    /// The number of bytes of the text that have been read so far.
    bytes_read: usize,
    piece_bytes_max: usize,
}

impl Pieces {
    /// Reads at most `bytes_max` bytes more. Fails if the text exceeds [`Limits::input_bytes_max`].
    fn read(
        &mut self,
        extraction: &Extraction<'_>,
        reader: &mut dyn BufRead,
        bytes_max: usize,
    ) -> Result<(), ExtractError> {
        let before = self.bytes.len();
        // One byte more than the limit shows that the text exceeds it.
        let allowed = extraction.limits.input_bytes_max.saturating_add(1);
        let bytes_max = allowed
            .saturating_sub(self.bytes_read as u64)
            .min(bytes_max as u64);
        extraction.read_bytes(FORMAT, reader, bytes_max, &mut self.bytes)?;
        self.bytes_read += self.bytes.len() - before;
        extraction.limits.check_input(self.bytes_read)
    }

    /// Returns `true` if the text ends with the bytes.
    fn is_last(&self) -> bool {
        self.bytes.len() < self.piece_bytes_max.saturating_mul(2)
    }

    /// Returns the next piece.
    fn next(&self) -> &[u8] {
        if self.is_last() {
            return &self.bytes;
        }
        let (piece, _) = self
            .bytes
            .split_at(part_length(&self.bytes, self.piece_bytes_max));
        piece
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Limit;
    use crate::extract::{ReadMode, detect_read_mode, extract_stream};
    use crate::fixtures::gzip;
    use crate::limits::FilePart;
    use crate::output::Output;
    use crate::programs::FileContext;

    type Extracted = (Vec<ExtractedDocument>, Option<ExtractError>);

    fn read(name: &str, bytes: &[u8], limits: &Limits) -> Extracted {
        let ReadMode::Stream(format) = detect_read_mode(name, bytes, None) else {
            panic!("{name} is a stream");
        };
        let mut documents = Vec::new();
        let context = FileContext::new(limits);
        let result =
            extract_stream(
                format,
                name,
                &mut { bytes },
                context,
                &mut |output| match output {
                    Output::Document(document) => documents.push(*document),
                    other => panic!("{name}: {other:?}"),
                },
            );
        let count = result.as_ref().map(|counts| counts.documents);
        assert!(count.is_err() || count == Ok(documents.len() as u64));
        (documents, result.err())
    }

    fn small_parts() -> Limits {
        Limits {
            part_bytes_max: 1000,
            ..Limits::default()
        }
    }

    fn joined(documents: &[ExtractedDocument]) -> String {
        documents.iter().map(|part| part.text.as_str()).collect()
    }

    #[test]
    fn the_parts_together_are_the_text() {
        let line = "Die Größe der Tür ist für alle gleich\n";
        let latin1 = |text: &str| encoding_rs::WINDOWS_1252.encode(text).0.into_owned();
        for lines in [1, 20, 27, 28, 53, 54, 1000] {
            let text = line.repeat(lines);
            for (name, bytes) in [
                ("utf8", text.clone().into_bytes()),
                ("marked", format!("\u{feff}{text}").into_bytes()),
                ("latin1", latin1(&text)),
                (
                    "utf16",
                    text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
                ),
                ("text.gz", gzip(text.as_bytes())),
            ] {
                let (parts, error) = read(name, &bytes, &small_parts());
                assert_eq!(error, None, "{name}");
                assert_eq!(joined(&parts), text, "{name}, {lines} lines");
                let paths: Vec<_> = parts.iter().map(|part| part.inner_path.clone()).collect();
                let numbered = (2..=parts.len()).map(|number| Some(format!("@{number}")));
                assert_eq!(
                    paths,
                    std::iter::once(None).chain(numbered).collect::<Vec<_>>()
                );
                let fits = |part: &ExtractedDocument| part.text.len() <= 1000 && !part.truncated;
                assert!(parts.iter().all(fits), "{name}, {lines} lines");
                let german = |part: &ExtractedDocument| part.language.as_deref() == Some("de");
                assert!(parts.iter().all(german), "{name}, {lines} lines");
            }
        }
    }

    #[test]
    fn characters_are_not_divided() {
        for text in ["€".repeat(5000), "a€".repeat(5000), "x".repeat(5001)] {
            let (parts, error) = read("a", text.as_bytes(), &small_parts());
            assert_eq!((joined(&parts), error), (text, None));
            assert!(parts.len() > 5);
        }
    }

    #[test]
    fn parts_can_have_different_encodings() {
        let utf8 = "größer\n".repeat(1000);
        let mut bytes = utf8.clone().into_bytes();
        bytes.extend(b"gr\xf6\xdfer\n".repeat(1000));
        let (parts, _) = read("a", &bytes, &small_parts());
        assert!(parts[0].text.starts_with("größer"));
        assert!(
            parts
                .last()
                .is_some_and(|part| part.text.ends_with("größer\n"))
        );
    }

    #[test]
    fn limits_apply_to_the_whole_text() {
        let text = "some words\n".repeat(1000);
        let limits = Limits {
            input_bytes_max: 9_999,
            ..small_parts()
        };
        let (parts, error) = read("a", text.as_bytes(), &limits);
        assert_eq!(error, Some(ExtractError::limit(Limit::InputSize, 9_999)));
        assert!(!parts.is_empty() && text.starts_with(&joined(&parts)));
        let exact = Limits {
            input_bytes_max: 11_000,
            ..small_parts()
        };
        assert_eq!(read("a", text.as_bytes(), &exact).1, None);

        for text_bytes_max in [1, 5_000, 5_500, 10_999] {
            let limits = Limits {
                text_bytes_max,
                ..small_parts()
            };
            let (parts, error) = read("a", text.as_bytes(), &limits);
            assert_eq!(
                (joined(&parts).as_str(), error),
                (&text[..text_bytes_max], None)
            );
            let cut: Vec<bool> = parts.iter().map(|part| part.truncated).collect();
            assert_eq!(
                cut.iter().filter(|cut| **cut).count(),
                1,
                "{text_bytes_max}"
            );
            assert_eq!(cut.last(), Some(&true));
        }

        let other = Limits {
            file_part: FilePart { index: 1, count: 2 },
            ..small_parts()
        };
        assert_eq!(read("a", text.as_bytes(), &other), (Vec::new(), None));
    }
}
