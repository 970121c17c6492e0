//! Text extraction from untrusted files.
//!
//! Reads plain text in any encoding, Markdown, HTML, source code, mail (`.eml` and mbox), PDF, and
//! gzip or zip files that contain any of them.
//!
//! Not for: reading or walking folders, or storage. Nor does the crate survive its own parsers: an
//! endless loop, stack overflow or huge allocation of a library cannot be stopped within a process.
//! Call [`extract`] in a process that can be killed.
//!
//! - [`extract`] emits an [`ExtractedDocument`] for each document in the bytes. A plain file is a
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
//! - `output`, `error`, `limits`: results and limits
//! - `detect`, `magic`, `syntax`: detection of a format
//! - `extraction`: the state of one extraction
//! - `encoding`, `text_builder`, `html`, `markdown`: text formats
//! - `mail`, `mbox`: mail
//! - `gzip`, `zip_archive`: containers
//! - `pdf`, `pdf_layout`: PDF
//! - `extract`: the entry points
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

mod detect;
mod encoding;
mod error;
mod extract;
mod extraction;
mod gzip;
mod html;
mod limits;
mod magic;
mod mail;
mod markdown;
mod mbox;
mod output;
mod pdf;
mod pdf_layout;
mod syntax;
mod text_builder;
mod zip_archive;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod mutation_tests;

pub use error::ExtractError;
pub use extract::{ReadMode, detect_read_mode, extract, extract_mbox};
pub use limits::Limits;
pub use output::{
    DocumentKind, DocumentMetadata, ExtractedDocument, ExtractionCounts, MemberFailure, Output,
};
