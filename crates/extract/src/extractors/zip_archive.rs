//! Extracts from the members of a zip archive, or from a format that is a zip archive with certain
//! members.

use std::io::{Cursor, Read};

use zip::ZipArchive;

use crate::error::ExtractError;
use crate::format::Input;
use crate::format::extraction::{Extraction, Location, catch_panic};
use crate::zip_package::convert_zip_error;

/// Bytes of a member that are decompressed to detect its format.
const HEAD_BYTES: u64 = 4096;

type Archive<'b> = ZipArchive<Cursor<&'b [u8]>>;

/// Extracts from all members in the order of the archive's directory.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let mut archive = catch_panic("zip archive", || {
        ZipArchive::new(Cursor::new(bytes)).map_err(|error| convert_zip_error("zip archive", error))
    })?;
    let contains = |name: &str| archive.index_for_name(name).is_some();
    if let Some(format) = extraction.detect_zip_format(&contains) {
        return extraction.extract_format(format, location, bytes);
    }
    let names: Vec<String> = archive
        .file_names_raw()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    for (index, name) in names.iter().enumerate() {
        extraction.usage.count_member(&extraction.limits)?;
        extract_member(extraction, location, &mut archive, index, name)?;
    }
    Ok(())
}

fn extract_member(
    extraction: &mut Extraction<'_>,
    location: &Location,
    archive: &mut Archive<'_>,
    index: usize,
    name: &str,
) -> Result<(), ExtractError> {
    if name.ends_with('/') || name.starts_with("__MACOSX/") {
        return Ok(());
    }
    let member_location = extraction.member_location(location, name);
    match catch_panic("zip archive", || {
        decompress(extraction, archive, index, name)
    }) {
        Ok(bytes) => {
            extraction
                .usage
                .add_expanded(bytes.len(), &extraction.limits)?;
            extraction.extract_member(&member_location, &bytes)
        }
        Err(error) => extraction.record_result(&member_location, Err(error)),
    }
}

/// Decompresses a member. Fails with `Unsupported` after the first bytes if their format has no
/// text.
fn decompress(
    extraction: &Extraction<'_>,
    archive: &mut Archive<'_>,
    index: usize,
    name: &str,
) -> Result<Vec<u8>, ExtractError> {
    let mut member = archive
        .by_index(index)
        .map_err(|error| convert_zip_error("zip archive", error))?;
    if !member.is_file() {
        return Err(ExtractError::Unsupported("link in an archive"));
    }
    let budget = extraction
        .usage
        .expansion_budget(member.compressed_size(), &extraction.limits);
    let mut bytes = Vec::new();
    let damaged = |error| ExtractError::malformed("zip archive", error);
    (&mut member)
        .take(HEAD_BYTES.min(budget.bytes_max))
        .read_to_end(&mut bytes)
        .map_err(damaged)?;
    let input = Input {
        name,
        bytes: &bytes,
    };
    extraction.detect(&input)?.extractor()?;
    let rest = budget
        .bytes_max
        .saturating_add(1)
        .saturating_sub(bytes.len() as u64);
    (&mut member)
        .take(rest)
        .read_to_end(&mut bytes)
        .map_err(damaged)?;
    if bytes.len() as u64 > budget.bytes_max {
        Err(budget.error)
    } else {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{build_zip, extract_documents, extract_outputs, gzip};
    use crate::output::{DocumentKind, ExtractionCounts, MemberFailure, Output};

    #[test]
    fn members_are_documents_with_their_path() {
        let inner = build_zip(&[("deep.txt", b"deep")]);
        let archive = build_zip(&[
            ("docs/", b""),
            ("docs/a.html", b"<title>A</title>x"),
            ("docs/b.md.gz", &gzip(b"# B")),
            ("in.zip", &inner),
            ("logo.png", b"\x89PNG\r\n\x1a\n...."),
        ]);
        let found: Vec<_> = extract_documents("x.zip", &archive)
            .into_iter()
            .map(|d| (d.inner_path.unwrap(), d.kind))
            .collect();
        let expected = [
            ("!/docs/a.html".to_string(), DocumentKind::Html),
            ("!/docs/b.md.gz".to_string(), DocumentKind::Markdown),
            ("!/in.zip!/deep.txt".to_string(), DocumentKind::Text),
        ];
        assert_eq!(found, expected);
        let (_, counts) = extract_outputs("x.zip", &archive);
        assert_eq!(
            counts,
            Ok(ExtractionCounts {
                documents: 3,
                failures: 0,
                skipped: 1
            })
        );
    }

    #[test]
    fn a_damaged_member_does_not_affect_the_others() {
        let words = b"many words that are packed, many words that are packed".repeat(20);
        let mut archive = build_zip(&[("a.txt", &words), ("b.txt", b"fine")]);
        let damaged_at = 30 + "a.txt".len() + 20;
        archive[damaged_at] ^= 0xff;
        archive[damaged_at + 1] ^= 0xff;
        let (outputs, counts) = extract_outputs("x.zip", &archive);
        assert_eq!(
            counts,
            Ok(ExtractionCounts {
                documents: 1,
                failures: 1,
                skipped: 0
            })
        );
        let [
            Output::Failure(MemberFailure { inner_path, error }),
            Output::Document(fine),
        ] = &outputs[..]
        else {
            panic!("{outputs:?}")
        };
        assert_eq!(
            (inner_path.as_str(), error.code()),
            ("!/a.txt", "malformed")
        );
        assert_eq!(fine.text, "fine");
    }

    #[test]
    fn damaged_archives_fail() {
        let archive = build_zip(&[("a.txt", b"words")]);
        let half = extract_outputs("x.zip", &archive[..archive.len() / 2]).1;
        assert_eq!(half.map_err(|error| error.code()), Err("malformed"));
    }
}
