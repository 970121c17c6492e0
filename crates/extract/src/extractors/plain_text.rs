//! Plain text in any encoding.

use std::borrow::Cow;

use crate::encoding::{self, truncate};
use crate::error::ExtractError;
use crate::format::Input;
use crate::hyphenation::join_divided_words;
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument};
use crate::terminal_text::remove_terminal_codes;

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
