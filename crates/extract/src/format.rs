//! File formats, and their detection.
//!
//! The table in [`mod@crate::formats`] contains the formats. This module does not depend on it.

pub(crate) mod extraction;

use std::io::{BufRead, Read, Seek};

use crate::encoding;
use crate::error::ExtractError;
use crate::limits::Limits;
use crate::output::ExtractedDocument;
use crate::zip_package::ZipPackage;
use extraction::{Extraction, Location};

/// A file or member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The name, with or without folders. Empty for a message of an mbox.
    pub(crate) name: &'a str,
    /// The content. The first 8 KB suffice to detect the format.
    pub(crate) bytes: &'a [u8],
}

/// A file format: its names, its detection and its extractor.
///
/// ```
/// let markdown = windrow_extract::formats().find(|format| format.name() == "Markdown");
/// let markdown = markdown.expect("Markdown is readable");
/// assert!(markdown.extensions().contains(&"md"));
/// assert_eq!(markdown.mime_types(), ["text/markdown"]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The name in messages, which fits after "damaged": `PDF`, `zip archive`.
    pub(crate) name: &'static str,
    /// Lower-case file extensions without the dot, the most common one first. Each belongs to one
    /// format only.
    pub(crate) extensions: &'static [&'static str],
    /// Media types as registered with IANA, the most common one first.
    pub(crate) mime_types: &'static [&'static str],
    pub(crate) detection: Detection,
    /// `None` if the crate cannot extract text from the format.
    pub(crate) extractor: Option<Extractor>,
}

/// The detection of a format. [`detect`] describes the order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Detection {
    /// A binary format: identified by one of the signatures or by the test. The extension does not
    /// suffice, because any file can have it.
    Binary {
        signatures: &'static [Signature],
        test: Option<ContentTest>,
    },
    /// A text format: identified by its extension or by the test.
    Text { test: Option<ContentTest> },
    /// Plain text: any text that is not of another format. The extension does not identify it,
    /// because a web page can be named `.txt`.
    OtherText,
    /// The file is a zip archive that contains all of these members.
    ZipMembers(&'static [&'static str]),
    /// The file is a compound file that contains this stream.
    CompoundStream(&'static str),
}

/// Bytes at a fixed offset ("magic number").
#[derive(Debug)]
pub(crate) struct Signature {
    pub(crate) offset: usize,
    pub(crate) bytes: &'static [u8],
}

/// Returns `true` if a file has the format.
pub(crate) type ContentTest = fn(&Input<'_>) -> bool;

/// The interface of an extractor.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Extractor {
    /// The file is a single document.
    Document(DocumentExtractor),
    /// The file is a single document whose parts are members of a zip archive.
    Package(PackageExtractor),
    /// The file contains documents or other files, and may be a document itself.
    Container(ContainerExtractor),
    /// The file contains documents or other files, and can be divided into parts, see
    /// [`Extraction::takes_member`].
    Archive(ContainerExtractor),
    /// The file is a single document whose text is in small parts of the file.
    Parts(PartsExtractor),
    /// The file contains documents and is read as a stream, with one document in memory.
    Stream(StreamExtractor),
    /// The file is a single document. `stream` reads a long one in pieces, and passes a short one
    /// to [`Extraction::extract_bytes`], which calls `whole`.
    LongDocument {
        whole: DocumentExtractor,
        stream: StreamExtractor,
    },
    /// The file contains documents and is read by random access. It can be divided into parts.
    Database(DatabaseExtractor),
}

impl Extractor {
    /// Returns the function that reads the format from a stream.
    pub(crate) fn stream(self) -> Option<StreamExtractor> {
        match self {
            Extractor::Stream(extract) => Some(extract),
            Extractor::LongDocument { stream, .. } => Some(stream),
            _ => None,
        }
    }
}

/// Returns the text, title and metadata of a file. The caller sets
/// [`ExtractedDocument::inner_path`]. A panic is converted to an error of the file.
///
/// Checks [`Limits::check_deadline`] regularly and respects [`Limits::text_bytes_max`].
pub(crate) type DocumentExtractor =
    fn(&Input<'_>, &Limits) -> Result<ExtractedDocument, ExtractError>;

/// Like [`DocumentExtractor`], for a document in a zip archive.
pub(crate) type PackageExtractor =
    fn(&mut ZipPackage<'_>) -> Result<ExtractedDocument, ExtractError>;

/// Emits the documents of a file: passes the bytes of each member to
/// [`Extraction::extract_member`]. Errors of a member must not end the file. Calls of parser
/// libraries must be inside [`extraction::catch_panic`].
pub(crate) type ContainerExtractor =
    fn(&mut Extraction<'_>, &Location, &[u8]) -> Result<(), ExtractError>;

/// Like [`DocumentExtractor`], but reads only parts of the file.
pub(crate) type PartsExtractor =
    fn(&mut dyn ReadSeek, &Limits) -> Result<ExtractedDocument, ExtractError>;

/// A file that is read in parts.
pub trait ReadSeek: Read + Seek {}

impl<R: Read + Seek> ReadSeek for R {}

/// Like [`ContainerExtractor`], but reads the file from a stream.
pub(crate) type StreamExtractor =
    fn(&mut Extraction<'_>, &Location, &mut dyn BufRead) -> Result<(), ExtractError>;

/// Like [`ContainerExtractor`], but reads only parts of the file at a time.
pub(crate) type DatabaseExtractor =
    fn(&mut Extraction<'_>, &Location, &mut dyn ReadSeek) -> Result<(), ExtractError>;

impl Format {
    /// Returns the name as used in messages: `PDF`, `zip archive`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the lower-case file extensions without the dot, the most common one first. Empty if
    /// the format is not identified by names, or has its own table (source code).
    pub fn extensions(&self) -> &'static [&'static str] {
        self.extensions
    }

    /// Returns the media types as registered with IANA, the most common one first.
    pub fn mime_types(&self) -> &'static [&'static str] {
        self.mime_types
    }

    /// Returns the extractor.
    ///
    /// # Errors
    /// Fails with [`ExtractError::Unsupported`] if there is none.
    pub(crate) fn extractor(&self) -> Result<Extractor, ExtractError> {
        self.extractor.ok_or(ExtractError::Unsupported(self.name))
    }

    fn has_signature(&self, bytes: &[u8]) -> bool {
        let Detection::Binary { signatures, .. } = self.detection else {
            return false;
        };
        signatures.iter().any(|signature| {
            let rest = bytes.get(signature.offset..);
            rest.is_some_and(|rest| rest.starts_with(signature.bytes))
        })
    }

    fn passes_binary_test(&self, input: &Input<'_>) -> bool {
        matches!(self.detection, Detection::Binary { test: Some(test), .. } if test(input))
    }

    fn passes_text_test(&self, input: &Input<'_>) -> bool {
        matches!(self.detection, Detection::Text { test: Some(test) } if test(input))
    }

    fn has_text_extension(&self, extension: &str) -> bool {
        matches!(self.detection, Detection::Text { .. }) && self.extensions.contains(&extension)
    }
}

/// Detects the format of a file by the first of these steps that succeeds, and within a step by the
/// order of `formats`:
///
/// 1. a signature
/// 2. the test of a binary format
/// 3. if the content is binary: unknown
/// 4. the extension of a text format
/// 5. the test of a text format
/// 6. plain text
///
/// # Errors
/// Fails with [`ExtractError::Unsupported`] if there is no known format.
pub(crate) fn detect(
    formats: &'static [Format],
    input: &Input<'_>,
) -> Result<&'static Format, ExtractError> {
    let find = |test: &dyn Fn(&Format) -> bool| formats.iter().find(|format| test(format));
    let binary_format = find(&|format| format.has_signature(input.bytes))
        .or_else(|| find(&|format| format.passes_binary_test(input)));
    if let Some(format) = binary_format {
        return Ok(format);
    }
    if encoding::is_binary(input.bytes) {
        return Err(ExtractError::Unsupported("binary data"));
    }
    let extension = split_extension(input.name)
        .unwrap_or_default()
        .to_ascii_lowercase();
    find(&|format| format.has_text_extension(&extension))
        .or_else(|| find(&|format| format.passes_text_test(input)))
        .or_else(|| find(&|format| matches!(format.detection, Detection::OtherText)))
        .ok_or(ExtractError::Unsupported("text of an unknown format"))
}

/// Returns the format of a zip archive whose members identify it. `contains` returns `true` if the
/// archive has a member with this name.
pub(crate) fn detect_zip_format(
    formats: &'static [Format],
    contains: &dyn Fn(&str) -> bool,
) -> Option<&'static Format> {
    formats.iter().find(|format| match format.detection {
        Detection::ZipMembers(members) => members.iter().all(|member| contains(member)),
        Detection::Binary { .. }
        | Detection::Text { .. }
        | Detection::OtherText
        | Detection::CompoundStream(_) => false,
    })
}

/// Returns the format of a compound file that is identified by its streams. `contains` returns
/// `true` if the file has a stream with this name.
pub(crate) fn detect_compound_format(
    formats: &'static [Format],
    contains: &dyn Fn(&str) -> bool,
) -> Option<&'static Format> {
    formats.iter().find(|format| match format.detection {
        Detection::CompoundStream(stream) => contains(stream),
        _ => false,
    })
}

/// Returns the part after the last dot of the file name. A leading dot does not begin an extension.
pub(crate) fn split_extension(name: &str) -> Option<&str> {
    let file_name = name.rsplit('/').next()?;
    let (stem, extension) = file_name.rsplit_once('.')?;
    (!stem.is_empty() && !extension.is_empty()).then_some(extension)
}

/// Returns the first bytes, at most `bytes_max`.
pub(crate) fn take_prefix(bytes: &[u8], bytes_max: usize) -> &[u8] {
    bytes.get(..bytes_max).unwrap_or(bytes)
}
