//! The entry points: detect the format, call its reader, emit the documents.

use std::io::BufRead;

use crate::detect::{Format, detect};
use crate::error::ExtractError;
use crate::extraction::{Extraction, Location, catch_panic};
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument, ExtractionCounts, Output};
use crate::{encoding, gzip, html, mail, markdown, mbox, pdf, zip_archive};

/// Emits every document in `bytes`, in the order of the file, and counts them.
///
/// `name` is the file's name or path, which helps to detect the format. Documents that were emitted
/// before an error are valid.
///
/// # Errors
/// Fails with [`ExtractError::Unsupported`] if the file's format has no readable text, and with
/// another error if the file as a whole is invalid. Errors of single members of a container are
/// emitted as [`Output::Failure`].
pub fn extract(
    name: &str,
    bytes: &[u8],
    limits: &Limits,
    emit: &mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ExtractError> {
    limits.check_input(bytes.len())?;
    let mut extraction = Extraction::new(limits, extract_bytes, emit);
    extract_bytes(&mut extraction, &Location::from_file_name(name), bytes)?;
    Ok(extraction.counts)
}

/// Like [`extract`], for an mbox of any size. Only one message is in memory at a time.
/// [`Limits::input_bytes_max`] limits a message instead of the file.
///
/// # Errors
/// Fails with [`ExtractError::Deadline`], and with [`ExtractError::Malformed`] if `reader` fails.
pub fn extract_mbox(
    reader: &mut dyn BufRead,
    limits: &Limits,
    emit: &mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ExtractError> {
    let mut extraction = Extraction::new(limits, extract_bytes, emit);
    mbox::read(&mut extraction, &Location::from_file_name(""), reader)?;
    Ok(extraction.counts)
}

/// How to read a file, depending on its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// Do not read it. Contains the name of its format, as [`ExtractError::Unsupported`] does.
    Unsupported(&'static str),
    /// Stream it through [`extract_mbox`].
    MboxStream,
    /// Read it into memory and call [`extract`].
    WholeFile,
}

/// Returns how to read the file `name`. `head` are its first bytes; 8 KB are enough.
pub fn detect_read_mode(name: &str, head: &[u8]) -> ReadMode {
    match detect(name, head) {
        Format::Unsupported(what) => ReadMode::Unsupported(what),
        Format::Mbox => ReadMode::MboxStream,
        _ => ReadMode::WholeFile,
    }
}

/// Detects the format of bytes and extracts from them. Container readers call it for their members.
fn extract_bytes(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    extraction.limits.check_deadline()?;
    extraction.limits.check_depth(location.depth)?;
    let limits = &extraction.limits;
    let document = match detect(&location.name, bytes) {
        Format::Unsupported(what) => return Err(ExtractError::Unsupported(what)),
        Format::Gzip => {
            let (inner, bytes) = gzip::decompress(extraction, location, bytes)?;
            return extract_bytes(extraction, &inner, &bytes);
        }
        Format::Zip => return zip_archive::read(extraction, location, bytes),
        Format::Mbox => return mbox::read(extraction, location, &mut { bytes }),
        Format::Mail => return mail::read(extraction, location, bytes),
        Format::Pdf => catch_panic("PDF", || pdf::read(bytes, limits))?,
        Format::Html => catch_panic("HTML", || html::read(bytes, limits))?,
        Format::Markdown => catch_panic("Markdown", || markdown::read(bytes, limits))?,
        Format::Source(language) => read_source(language, bytes, limits),
        Format::Text => read_text(DocumentKind::Text, bytes, limits),
    };
    extraction.emit_document(location, document);
    Ok(())
}

fn read_text(kind: DocumentKind, bytes: &[u8], limits: &Limits) -> ExtractedDocument {
    let (text, truncated) = encoding::decode(bytes, limits.text_bytes_max);
    ExtractedDocument {
        truncated,
        ..ExtractedDocument::new(kind, text)
    }
}

fn read_source(language: &str, bytes: &[u8], limits: &Limits) -> ExtractedDocument {
    let mut document = read_text(DocumentKind::Source, bytes, limits);
    document.metadata.syntax = Some(language.to_string());
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{build_zip, extract_documents, gzip};
    use std::time::{Duration, Instant};

    #[test]
    fn a_plain_file_is_a_document_without_an_inner_path() {
        let all = extract_documents("a.txt", b"words");
        assert_eq!(
            all,
            [ExtractedDocument::new(DocumentKind::Text, "words".into())]
        );
        let [code] = &extract_documents("a.rs", b"fn main() {}")[..] else {
            panic!("one document")
        };
        assert_eq!(
            (code.kind, code.metadata.syntax.as_deref()),
            (DocumentKind::Source, Some("rust"))
        );
    }

    fn error(name: &str, bytes: &[u8], limits: &Limits) -> ExtractError {
        extract(name, bytes, limits, &mut |_| ()).expect_err(name)
    }

    #[test]
    fn limit_errors_contain_the_limit() {
        let limits = Limits {
            input_bytes_max: 4,
            ..Limits::default()
        };
        let text = error("a.txt", b"12345", &limits).to_string();
        assert_eq!(text, "the size exceeds the limit of 4 bytes");

        let limits = Limits {
            deadline: Some(Instant::now()),
            ..Limits::default()
        };
        assert_eq!(error("a.txt", b"1", &limits), ExtractError::Deadline);
        let later = Some(Instant::now() + Duration::from_secs(60));
        let limits = Limits {
            deadline: later,
            ..Limits::default()
        };
        assert!(extract("a.txt", b"1", &limits, &mut |_| ()).is_ok());
    }

    #[test]
    fn time_spent_by_the_caller_does_not_count() {
        let members = build_zip(&[("a", b"1"), ("b", b"2"), ("c", b"3"), ("d", b"4")]);
        let deadline = Some(Instant::now() + Duration::from_millis(300));
        let limits = Limits {
            deadline,
            ..Limits::default()
        };
        let counts = extract("a.zip", &members, &limits, &mut |_| {
            std::thread::sleep(Duration::from_millis(150));
        });
        assert_eq!(counts.map(|counts| counts.documents), Ok(4));
    }

    #[test]
    fn nesting_is_limited() {
        let mut bytes = b"words".to_vec();
        for _ in 0..6 {
            bytes = gzip(&bytes);
        }
        assert_eq!(error("a.gz.gz", &bytes, &Limits::default()).code(), "limit");
        assert_eq!(
            extract_documents("a", &gzip(&gzip(b"words")))[0].text,
            "words"
        );
    }

    #[test]
    fn the_total_size_of_nested_archives_is_limited() {
        let zeros = vec![b'a'; 3 << 20];
        let layer = build_zip(&[("1", &zeros), ("2", &zeros), ("3", &zeros)]);
        let bomb = build_zip(&[("1.zip", &layer), ("2.zip", &layer), ("3.zip", &layer)]);
        let limits = Limits {
            expanded_bytes_max: 10 << 20,
            ..Limits::default()
        };
        let error = error("bomb.zip", &bomb, &limits);
        assert_eq!(
            error.to_string(),
            "the total decompressed size exceeds the limit of 10485760 bytes"
        );

        let limits = Limits {
            members_max: 3,
            ..Limits::default()
        };
        assert_eq!(
            extract("b.zip", &bomb, &limits, &mut |_| ()).map_err(|e| e.code()),
            Err("limit")
        );
    }

    #[test]
    fn text_is_cut_at_a_character_boundary() {
        let limits = Limits {
            text_bytes_max: 4,
            ..Limits::default()
        };
        let mut all = Vec::new();
        extract("a.txt", "aé€x".as_bytes(), &limits, &mut |output| {
            all.push(output)
        })
        .unwrap();
        let cut = ExtractedDocument {
            truncated: true,
            ..ExtractedDocument::new(DocumentKind::Text, "aé".into())
        };
        assert_eq!(all, [Output::Document(Box::new(cut))]);
    }
}
