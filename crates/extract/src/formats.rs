//! The table of all formats. A new format needs a row in one of the modules and an extractor in
//! [`crate::extractors`].
//!
//! Sources: <https://en.wikipedia.org/wiki/List_of_file_signatures> for signatures,
//! <https://www.iana.org/assignments/media-types> for MIME types.

mod archives;
mod documents;
mod media;
mod others;
mod packages;
mod rows;
mod texts;

use std::sync::LazyLock;

use crate::format::Format;

/// All formats. If several formats match in the same step of [`crate::format::detect`], the first
/// one is used.
pub(crate) static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| {
    let groups = [
        documents::FORMATS,
        archives::FORMATS,
        texts::FORMATS,
        packages::FORMATS,
        media::FORMATS,
        others::FORMATS,
    ];
    groups.concat()
});

/// Returns the formats from which the crate extracts text.
///
/// ```
/// let names: Vec<&str> = windrow_extract::formats().map(|format| format.name()).collect();
/// assert!(names.contains(&"PDF") && !names.contains(&"ELF program"));
/// ```
pub fn formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().filter(|format| format.extractor.is_some())
}

/// Returns all formats that the crate detects, those without an extractor included.
///
/// ```
/// let names: Vec<&str> = windrow_extract::all_formats().map(|format| format.name()).collect();
/// assert!(names.contains(&"PDF") && names.contains(&"ELF program"));
/// ```
pub fn all_formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter()
}

#[cfg(test)]
mod tests;
