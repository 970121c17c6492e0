//! The entry points.

use std::fmt;
use std::io::BufRead;

use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location, is_converted};
use crate::format::{Extractor, Format, Input, ReadSeek, StreamExtractor, detect};
use crate::formats::FORMATS;
use crate::limits::Limits;
use crate::output::{ExtractionCounts, Output};
use crate::programs::{FileContext, Programs};

/// Emits every document in `bytes`, in the order of the file, and counts them.
///
/// `name` is the file's name or path, which helps to detect the format. Documents that were emitted
/// before an error are valid.
///
/// ```
/// use windrow_extract::{Limits, Output, extract};
///
/// let mut titles = Vec::new();
/// let counts = extract("a.md", b"# Bread", &Limits::default(), &mut |output| match output {
///     Output::Document(document) => titles.push(document.title),
///     Output::Failure(failure) => eprintln!("{}: {}", failure.inner_path, failure.error),
///     Output::Skipped(skipped) => eprintln!("{}: {}", skipped.inner_path, skipped.format),
/// })?;
/// assert_eq!((counts.documents, titles), (1, vec![Some("Bread".to_string())]));
/// # Ok::<(), windrow_extract::ExtractError>(())
/// ```
///
/// # Errors
/// Fails with [`ExtractError::Unsupported`] if the file's format has no readable text, and with
/// another error if the file as a whole is invalid. Errors of single members of a container are
/// emitted as [`Output::Failure`], and members without text as [`Output::Skipped`].
pub fn extract(
    name: &str,
    bytes: &[u8],
    limits: &Limits,
    emit: &mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ExtractError> {
    extract_with(name, bytes, FileContext::new(limits), emit)
}

/// Like [`extract`], with the programs of `context`.
///
/// # Errors
/// Like [`extract`], and with [`ExtractError::MissingProgram`] or [`ExtractError::ProgramFailed`].
pub fn extract_with<'a>(
    name: &str,
    bytes: &[u8],
    context: FileContext<'a>,
    emit: &'a mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ExtractError> {
    context.limits.check_input(bytes.len())?;
    let mut extraction = Extraction::new(&FORMATS, context, emit);
    extraction.extract_bytes(&Location::from_file_name(name), bytes)?;
    Ok(extraction.counts)
}

/// Extracts from a file by a converter, see [`ReadMode::Convert`]. `head` is the beginning of the
/// file.
///
/// # Errors
/// Like [`extract_with`].
pub fn convert_file<'a>(
    name: &str,
    head: &[u8],
    context: FileContext<'a>,
    emit: &'a mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ExtractError> {
    let mut extraction = Extraction::new(&FORMATS, context, emit);
    extraction.convert_file(&Location::from_file_name(name), head)?;
    Ok(extraction.counts)
}

/// Like [`extract`], for a file of any size. Only one document is in memory at a time.
/// [`Limits::input_bytes_max`] limits a document instead of the file.
///
/// ```
/// use windrow_extract::{FileContext, Limits, ReadMode, detect_read_mode, extract_stream};
///
/// let mbox = b"From a Mon Jan  1 00:00:00 2024\nSubject: one\n\n1\n\n\
///     From b Mon Jan  1 00:00:00 2024\nSubject: two\n\n2\n";
/// let ReadMode::Stream(format) = detect_read_mode("mail", mbox, None) else {
///     panic!("an mbox is read as a stream");
/// };
/// let limits = Limits::default();
/// let context = FileContext::new(&limits);
/// let counts = extract_stream(format, "mail", &mut &mbox[..], context, &mut |_| ())?;
/// assert_eq!(counts.documents, 2);
/// # Ok::<(), windrow_extract::ExtractError>(())
/// ```
///
/// # Errors
/// Fails with [`ExtractError::Deadline`], and with [`ExtractError::Malformed`] if `reader` fails.
pub fn extract_stream<'a>(
    format: StreamFormat,
    name: &str,
    reader: &mut dyn BufRead,
    context: FileContext<'a>,
    emit: &'a mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ExtractError> {
    let mut extraction = Extraction::new(&FORMATS, context, emit);
    let StreamFormat(extract) = format;
    extract(&mut extraction, &Location::from_file_name(name), reader)?;
    Ok(extraction.counts)
}

/// Like [`extract`], for a picture, sound, video or Outlook data file of any size, of which only
/// parts are read. [`Limits::input_bytes_max`] limits each document instead of the file.
///
/// # Errors
/// Fails with [`ExtractError::Deadline`], and like [`extract`] for files with several documents.
pub fn extract_parts<'a>(
    format: PartsFormat,
    name: &str,
    reader: &mut dyn ReadSeek,
    context: FileContext<'a>,
    emit: &'a mut dyn FnMut(Output),
) -> Result<ExtractionCounts, ExtractError> {
    let mut extraction = Extraction::new(&FORMATS, context, emit);
    extraction.extract_parts(format.0, &Location::from_file_name(name), reader)?;
    Ok(extraction.counts)
}

/// How to read a file, depending on its format.
#[derive(Debug, Clone, Copy)]
pub enum ReadMode {
    /// Do not read it. Contains the name of its format, as [`ExtractError::Unsupported`] does.
    Skip(&'static str),
    /// Call [`convert_file`]: a converter must read the file.
    Convert,
    /// Pass a reader of the whole file to [`extract_stream`].
    Stream(StreamFormat),
    /// Pass the file to [`extract_parts`].
    Parts(PartsFormat),
    /// Read it into memory and call [`extract`].
    WholeFile,
    /// Like `WholeFile`, and [parts](Limits::file_part) divide the file. They also divide streams
    /// and Outlook data files. Files in other modes belong to the first part.
    Archive,
}

/// A format that [`extract_stream`] can read.
#[derive(Clone, Copy)]
pub struct StreamFormat(StreamExtractor);

impl fmt::Debug for StreamFormat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("StreamFormat")
    }
}

/// A format that [`extract_parts`] can read.
#[derive(Debug, Clone, Copy)]
pub struct PartsFormat(&'static Format);

/// Returns how to read the file `name`. `head` are its first bytes; 8 KB are enough.
///
/// ```
/// use windrow_extract::{ReadMode, detect_read_mode};
///
/// let program = detect_read_mode("a.out", b"\x7fELF", None);
/// assert!(matches!(program, ReadMode::Skip("ELF program")));
/// ```
pub fn detect_read_mode(name: &str, head: &[u8], programs: Option<&dyn Programs>) -> ReadMode {
    let input = Input { name, bytes: head };
    let detected = detect(&FORMATS, &input);
    let format = detected.as_ref().ok().copied();
    if programs.is_some_and(|programs| is_converted(programs, format, name)) {
        return ReadMode::Convert;
    }
    let found = detected.and_then(|format| Ok((format, format.extractor()?)));
    match found {
        Ok((
            _,
            Extractor::Stream(extract)
            | Extractor::LongDocument {
                stream: extract, ..
            },
        )) => ReadMode::Stream(StreamFormat(extract)),
        Ok((format, Extractor::Parts(_) | Extractor::Database(_))) => {
            ReadMode::Parts(PartsFormat(format))
        }
        Err(ExtractError::Unsupported(format)) => ReadMode::Skip(format),
        Ok((_, Extractor::Archive(_))) => ReadMode::Archive,
        // Any other error is reported by `extract`.
        Ok((_, Extractor::Document(_) | Extractor::Package(_) | Extractor::Container(_)))
        | Err(_) => ReadMode::WholeFile,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{build_pdf, build_tar, build_zip, extract_documents, gzip};
    use crate::limits::FilePart;
    use crate::output::{DocumentKind, ExtractedDocument};
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

    /// The documents of all parts together are those of the whole file, each in one part.
    #[test]
    fn parts_divide_the_members_of_the_outermost_archive() {
        let inner = build_zip(&[("x", b"one"), ("y", b"two"), ("z", b"three")]);
        let members: [(&str, &[u8]); 5] = [
            ("1.txt", b"first"),
            ("2.zip", &inner),
            ("3.txt", b"third"),
            ("4.txt", b"fourth"),
            ("5.txt", b"fifth"),
        ];
        let mbox = b"From a@b Mon Jan  1 00:00:00 2024\nSubject: one\n\n1\n\n\
            From a@b Mon Jan  1 00:00:00 2024\nSubject: two\n\n2\n\n\
            From a@b Mon Jan  1 00:00:00 2024\nSubject: three\n\n3\n";
        let tar = build_tar(&members);
        let files: [(&str, &[u8], usize); 6] = [
            ("a.zip", &build_zip(&members), 2),
            ("a.tar", &tar, 2),
            ("a.tar.gz", &gzip(&tar), 2),
            ("mail", mbox, 2),
            ("a.txt", b"words", 1),
            ("a.pdf", &build_pdf("", &["(words) Tj"]), 1),
        ];
        for (name, bytes, parts) in files {
            let whole = extract_documents(name, bytes);
            let mut found = Vec::new();
            let mut used = 0;
            for index in 0..2 {
                let limits = Limits {
                    file_part: FilePart { index, count: 2 },
                    ..Limits::default()
                };
                let before = found.len();
                extract(name, bytes, &limits, &mut |output| match output {
                    Output::Document(document) => found.push(*document),
                    other => panic!("{name}: {other:?}"),
                })
                .unwrap();
                used += usize::from(found.len() > before);
            }
            assert_eq!(used, parts, "{name}");
            let paths = |documents: &[ExtractedDocument]| {
                let mut paths: Vec<_> = documents
                    .iter()
                    .map(|it| (it.inner_path.clone(), it.text.clone()))
                    .collect();
                paths.sort();
                paths
            };
            assert_eq!(paths(&found), paths(&whole), "{name}");
        }
    }
}
