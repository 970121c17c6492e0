//! Source code in any encoding. The text is the whole file, including comments and strings. Escape
//! sequences in data files are decoded, so that their words can be found.

mod escapes;
mod syntax;

use crate::encoding;
use crate::error::ExtractError;
use crate::format::Input;
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument};
use escapes::decode_escapes;
use syntax::detect_syntax;

/// Returns `true` if the file name or a `#!` line identifies a programming or markup language.
pub(crate) fn is_source_code(input: &Input<'_>) -> bool {
    detect_syntax(input).is_some()
}

/// Decodes the file and detects its language.
pub(crate) fn extract(
    input: &Input<'_>,
    limits: &Limits,
) -> Result<ExtractedDocument, ExtractError> {
    let decoded = encoding::decode(input.bytes, limits.text_bytes_max);
    let syntax = detect_syntax(input);
    let is_data = matches!(syntax, Some("json" | "yaml" | "toml" | "properties"));
    let text = if is_data {
        decode_escapes(decoded.text)
    } else {
        decoded.text
    };
    let mut document = ExtractedDocument::new(DocumentKind::Source, text);
    document.truncated = decoded.truncated;
    document.metadata.syntax = syntax.map(str::to_string);
    Ok(document)
}
