//! Decompression of gzip files (RFC 1952). A gzip file contains one document.

use std::io::Read;

use flate2::bufread::MultiGzDecoder;

use crate::error::ExtractError;
use crate::extraction::{Extraction, Place};

/// Returns the location and the decompressed content.
pub(crate) fn unpack(
    extraction: &mut Extraction<'_>,
    place: &Place,
    bytes: &[u8],
) -> Result<(Place, Vec<u8>), ExtractError> {
    let (room, too_large) = extraction
        .spent
        .room(bytes.len() as u64, &extraction.limits);
    let mut unpacked = Vec::with_capacity(expected_bytes(bytes, room));
    MultiGzDecoder::new(bytes)
        .take(room.saturating_add(1))
        .read_to_end(&mut unpacked)
        .map_err(|error| ExtractError::malformed("gzip", error))?;
    if unpacked.len() as u64 > room {
        return Err(too_large);
    }
    extraction
        .spent
        .expanded(unpacked.len(), &extraction.limits)?;
    Ok((place.unpacked(&inner_name(&place.name)), unpacked))
}

/// The trailer contains the decompressed size but cannot be trusted, so at most ten times the
/// compressed size is reserved.
fn expected_bytes(bytes: &[u8], room: u64) -> usize {
    let size = bytes
        .last_chunk::<4>()
        .map_or(0, |size| u32::from_le_bytes(*size) as usize);
    size.min(bytes.len().saturating_mul(10))
        .min(usize::try_from(room).unwrap_or(usize::MAX))
}

/// Returns the name of the content: `a.html` for `a.html.gz`, `a.tar` for `a.tgz`.
fn inner_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    for (packed, inner) in [(".gz", ""), (".tgz", ".tar"), (".svgz", ".svg"), (".z", "")] {
        if lower.ends_with(packed) {
            let stem = name.get(..name.len() - packed.len()).unwrap_or(name);
            return format!("{stem}{inner}");
        }
    }
    name.to_string()
}

#[cfg(test)]
mod tests {
    use crate::document::Kind;
    use crate::error::ExtractError;
    use crate::fixtures::{documents, gzip};
    use crate::limits::Limits;

    #[test]
    fn what_is_inside_is_read_by_its_own_name_and_content() {
        let cases: [(&str, &[u8], Kind, &str); 4] = [
            ("a.md.gz", b"# T", Kind::Markdown, "T"),
            ("a.gz", b"<html>x", Kind::Html, "x"),
            ("a.c.GZ", b"int x;", Kind::Source, "int x;"),
            ("changelog.gz", b"words", Kind::Text, "words"),
        ];
        for (name, bytes, kind, text) in cases {
            let [document] = &documents(name, &gzip(bytes))[..] else {
                panic!("{name}")
            };
            assert_eq!((document.kind, document.text.as_str()), (kind, text));
            assert_eq!(document.inner_path, None);
        }
        let members = [gzip(b"one "), gzip(b"two")].concat();
        assert_eq!(documents("a.gz", &members)[0].text, "one two");
    }

    #[test]
    fn damage_and_bombs_are_errors() {
        let whole = gzip(b"some words that are packed");
        let read = |bytes: &[u8]| crate::extract("a.gz", bytes, &Limits::default(), &mut |_| ());
        assert_eq!(
            read(&whole[..whole.len() - 6]).map_err(|e| e.code()),
            Err("malformed")
        );
        let bomb = gzip(&vec![0; 40 << 20]);
        let expected = ExtractError::Limit {
            what: "the expansion of packed data",
            limit: 200,
            unit: "times",
        };
        assert_eq!(read(&bomb), Err(expected));
    }
}
