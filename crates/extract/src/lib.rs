//! Untrusted file bytes to text.
//!
//! For: plain text in any encoding, Markdown, HTML, source code, mail (`.eml` and mbox), PDF, and
//! gzip or zip around any of them. Not for: reading files, walking folders, storing anything, or
//! surviving its own libraries: a library's endless loop, stack overflow or huge allocation cannot
//! be stopped from inside a process, so callers run [`extract`] in a process that they can kill.
//!
//! [`extract`] hands out one [`Extracted`] for each document that the bytes hold: a plain file
//! holds one, an mbox or a zip many. A member that fails is reported and the others go on.
//! [`Limits`] bound bytes, expansion, depth, members, pages and time.
//!
//! ```
//! use windrow_extract::{Limits, Output, extract};
//!
//! let page = b"<html><title>Bread</title><p>Flour &amp; water</p></html>";
//! let mut texts = Vec::new();
//! let tally = extract("bread.html", page, &Limits::default(), &mut |output| {
//!     if let Output::Document(document) = output {
//!         texts.push((document.title, document.text));
//!     }
//! })?;
//! assert_eq!(tally.documents, 1);
//! assert_eq!(texts, [(Some("Bread".to_string()), "Flour & water".to_string())]);
//! # Ok::<(), windrow_extract::ExtractError>(())
//! ```
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)
)]

// In reading order: what comes out, what bounds it, how a kind is recognised, what is
// known on the way, a reader for each kind, the way through.
mod document;
mod error;
mod limits;

mod detect;
mod magic;
mod syntax;

mod extraction;

mod encoding;
mod flow;
mod html;
mod markdown;

mod mail;
mod mbox;

mod gzip;
mod zip_archive;

mod pdf;
mod pdf_layout;

mod convert;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod mutation_tests;

pub use convert::{FirstLook, extract, extract_mbox, first_look};
pub use document::{Extracted, Fields, Kind, MemberFailure, Output, Tally};
pub use error::ExtractError;
pub use limits::Limits;
