//! Decompresses gzip files (RFC 1952). A gzip file contains one file, which is extracted in its
//! place.

use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location};

/// Suffixes of gzip files, and the suffixes of their content.
const SUFFIXES: &[(&str, &str)] = &[(".gz", ""), (".tgz", ".tar"), (".svgz", ".svg"), (".z", "")];

/// Extracts from the content.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let content = decompress(extraction, bytes)?;
    let name = derive_content_name(&location.name);
    extraction.extract_bytes(&location.for_content(&name), &content)
}

fn decompress(extraction: &mut Extraction<'_>, bytes: &[u8]) -> Result<Vec<u8>, ExtractError> {
    let budget = extraction
        .usage
        .expansion_budget(bytes.len() as u64, &extraction.limits);
    let mut decompressed = Vec::with_capacity(estimate_size(bytes, budget.bytes_max));
    MultiGzDecoder::new(bytes)
        .take(budget.bytes_max.saturating_add(1))
        .read_to_end(&mut decompressed)
        .map_err(|error| ExtractError::malformed("gzip", error))?;
    if decompressed.len() as u64 > budget.bytes_max {
        return Err(budget.error);
    }
    extraction
        .usage
        .add_expanded(decompressed.len(), &extraction.limits)?;
    Ok(decompressed)
}

/// The trailer contains the decompressed size but cannot be trusted, so at most ten times the
/// compressed size is reserved.
fn estimate_size(bytes: &[u8], bytes_max: u64) -> usize {
    let size = bytes
        .last_chunk::<4>()
        .map_or(0, |size| u32::from_le_bytes(*size) as usize);
    size.min(bytes.len().saturating_mul(10))
        .min(usize::try_from(bytes_max).unwrap_or(usize::MAX))
}

/// Returns the name of the content: `a.html` for `a.html.gz`, `a.tar` for `a.tgz`.
fn derive_content_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let row = SUFFIXES.iter().find(|(suffix, _)| lower.ends_with(suffix));
    let Some((suffix, content_suffix)) = row else {
        return name.to_string();
    };
    let stem = name.get(..name.len() - suffix.len()).unwrap_or(name);
    format!("{stem}{content_suffix}")
}

#[cfg(test)]
mod tests {
    use crate::error::{ExtractError, Limit};
    use crate::fixtures::{extract_documents, gzip};
    use crate::limits::Limits;
    use crate::output::DocumentKind;

    #[test]
    fn the_content_is_detected_by_its_own_name_and_bytes() {
        let cases: [(&str, &[u8], DocumentKind, &str); 4] = [
            ("a.md.gz", b"# T", DocumentKind::Markdown, "T"),
            ("a.gz", b"<html>x", DocumentKind::Html, "x"),
            ("a.c.GZ", b"int x;", DocumentKind::Source, "int x;"),
            ("changelog.gz", b"words", DocumentKind::Text, "words"),
        ];
        for (name, bytes, kind, text) in cases {
            let [document] = &extract_documents(name, &gzip(bytes))[..] else {
                panic!("{name}")
            };
            assert_eq!((document.kind, document.text.as_str()), (kind, text));
            assert_eq!(document.inner_path, None);
        }
        let members = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(extract_documents("a.gz", &members)[0].text, "one two");
    }

    #[test]
    fn damaged_files_and_bombs_are_refused() {
        let whole = gzip(b"some words that are compressed");
        let read = |bytes: &[u8]| crate::extract("a.gz", bytes, &Limits::default(), &mut |_| ());
        assert_eq!(
            read(&whole[..whole.len() - 6]).map_err(|e| e.code()),
            Err("malformed")
        );
        let bomb = gzip(&vec![0; 40 << 20]);
        let error = read(&bomb).expect_err("the ratio exceeds 200");
        assert_eq!(error, ExtractError::limit(Limit::ExpansionRatio, 200));
        assert_eq!(
            error.to_string(),
            "the ratio of decompressed to compressed size exceeds the limit of 200 times"
        );
    }
}
