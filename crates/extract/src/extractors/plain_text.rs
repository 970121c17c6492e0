//! Plain text in any encoding.

use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument};

/// Decodes the text.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let decoded = encoding::decode(input.bytes, limits.text_bytes_max);
    Ok(ExtractedDocument {
        truncated: decoded.truncated,
        ..ExtractedDocument::new(DocumentKind::Text, decoded.text)
    })
}
