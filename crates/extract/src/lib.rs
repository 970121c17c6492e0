//! Text extraction from untrusted files.
//!
//! [`formats()`] lists the readable formats: plain text in any encoding, Markdown, HTML, source
//! code, mail (`.eml`, mbox and Outlook), PDF, Office, OpenDocument and iWork documents, RTF, books
//! (EPUB and FictionBook), tables (CSV), and compressed files, archives (tar, zip, 7z, RAR, ar,
//! cpio), disk images and packages (Debian, RPM) that contain any of them.
//!
//! The crate neither walks folders nor stores documents. It does not handle failures of its parsers
//! that a process cannot catch: endless loops, stack overflows and huge allocations. Call
//! [`extract()`] in a process that can be killed.
//!
//! - [`extract()`] emits an [`ExtractedDocument`] for each document in the bytes. A plain file is a
//!   single document, an mbox or a zip archive contains many. A member that fails is reported, and
//!   the others are still read.
//! - [`Limits`] limit bytes, decompression, nesting, members, pages and time.
//!
//! ```
//! use windrow_extract::{Limits, Output, extract};
//!
//! let page = b"<html><title>Bread</title><p>Flour &amp; water</p></html>";
//! let mut texts = Vec::new();
//! let counts = extract("bread.html", page, &Limits::default(), &mut |output| {
//!     if let Output::Document(document) = output {
//!         texts.push((document.title, document.text));
//!     }
//! })?;
//! assert_eq!(counts.documents, 1);
//! assert_eq!(texts, [(Some("Bread".to_string()), "Flour & water".to_string())]);
//! # Ok::<(), windrow_extract::ExtractError>(())
//! ```
//!
//! Modules in reading order:
//!
//! - `output`, `error`, `limits`: documents, errors and limits
//! - `language`: the language of a text
//! - `programs`: the interface to external programs
//! - `bounded_reader`: decompression within the limits
//! - `encoding`, `text_builder`, `metadata_text`: shared by text formats
//! - `hyphenation`, `terminal_text`: divided words, and terminal escape sequences
//! - `accents`: letters with separate accents
//! - `zip_directory`: the members of zip archives
//! - `xml`, `xmp`, `zip_package`: shared by formats of XML in zip archives
//! - `format`: the definition of a format, its detection, and the interfaces of extractors;
//!   `format/extraction`: the state of one extraction
//! - `guess_kind`: the kind of a file whose content is not read
//! - `extractors`: a module for each format, and how to add one
//! - `formats`: the table of all formats
//! - `extract`: the entry points
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod accents;
mod bounded_reader;
mod encoding;
mod error;
mod extract;
mod extractors;
mod format;
mod formats;
mod guess_kind;
mod hyphenation;
mod language;
mod limits;
mod metadata_text;
mod output;
mod programs;
mod terminal_text;
mod text_builder;
mod text_parts;
mod xml;
mod xmp;
mod zip_directory;
mod zip_package;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod mutation_tests;

pub use encoding::is_charset;
pub use error::{ExtractError, Limit};
pub use extract::{
    PartsFormat, ReadMode, StreamFormat, convert_file, detect_read_mode, extract, extract_parts,
    extract_stream, extract_with,
};
pub use format::{Format, ReadSeek};
pub use formats::{all_formats, formats};
pub use guess_kind::guess_kind;
pub use language::Languages;
pub use limits::{FilePart, Limits};
pub use output::{
    DocumentKind, DocumentMetadata, ExtractedDocument, ExtractionCounts, MailReference,
    MemberFailure, Output,
};
pub use programs::{
    ConvertedDocument, ConverterChoice, FileContext, PictureFormat, ProgramContent, ProgramInput,
    Programs, RecognizedText,
};
