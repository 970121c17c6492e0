//! Reads the members of a zip archive. Each is a document or another container.

use std::io::{Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::detect::{Format, detect};
use crate::error::ExtractError;
use crate::extraction::{Extraction, Place, guarded};

/// Bytes of a member that are decompressed to detect its format.
const HEAD_BYTES: u64 = 4096;

type Archive<'b> = ZipArchive<Cursor<&'b [u8]>>;

/// Reads all members in the order of the archive's directory.
pub(crate) fn read(
    extraction: &mut Extraction<'_>,
    place: &Place,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let mut archive = guarded("zip archive", || {
        ZipArchive::new(Cursor::new(bytes)).map_err(zip_error)
    })?;
    if let Some(kind) = office_kind(&archive) {
        return Err(ExtractError::Unsupported(kind));
    }
    let names: Vec<String> = archive
        .file_names_raw()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    for (index, name) in names.iter().enumerate() {
        extraction.spent.member(&extraction.limits)?;
        read_member(extraction, place, &mut archive, (index, name))?;
    }
    Ok(())
}

/// Office files are zip archives whose members are not documents.
fn office_kind(archive: &Archive<'_>) -> Option<&'static str> {
    let has = |name: &str| archive.index_for_name(name).is_some();
    if has("[Content_Types].xml") {
        Some("Office document")
    } else if has("mimetype") && has("content.xml") {
        Some("OpenDocument file")
    } else {
        None
    }
}

fn read_member(
    extraction: &mut Extraction<'_>,
    place: &Place,
    archive: &mut Archive<'_>,
    (index, name): (usize, &str),
) -> Result<(), ExtractError> {
    if name.ends_with('/') || name.starts_with("__MACOSX/") {
        return Ok(());
    }
    let member_place = extraction.member_place(place, name);
    match guarded("zip archive", || unpack(extraction, archive, index, name)) {
        Ok(bytes) => {
            extraction.spent.expanded(bytes.len(), &extraction.limits)?;
            extraction.member(&member_place, &bytes)
        }
        Err(error) => extraction.settle(&member_place, Err(error)),
    }
}

/// Decompresses a member. Fails with `Unsupported` after the first bytes if their format has no
/// text.
fn unpack(
    extraction: &Extraction<'_>,
    archive: &mut Archive<'_>,
    index: usize,
    name: &str,
) -> Result<Vec<u8>, ExtractError> {
    let mut member = archive.by_index(index).map_err(zip_error)?;
    if !member.is_file() {
        return Err(ExtractError::Unsupported("link in an archive"));
    }
    let (room, too_large) = extraction
        .spent
        .room(member.compressed_size(), &extraction.limits);
    let mut bytes = Vec::new();
    let damaged = |error| ExtractError::malformed("zip archive", error);
    (&mut member)
        .take(HEAD_BYTES.min(room))
        .read_to_end(&mut bytes)
        .map_err(damaged)?;
    if let Format::Unsupported(what) = detect(name, &bytes) {
        return Err(ExtractError::Unsupported(what));
    }
    let rest = room.saturating_add(1).saturating_sub(bytes.len() as u64);
    (&mut member)
        .take(rest)
        .read_to_end(&mut bytes)
        .map_err(damaged)?;
    if bytes.len() as u64 > room {
        Err(too_large)
    } else {
        Ok(bytes)
    }
}

fn zip_error(error: ZipError) -> ExtractError {
    match error {
        ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => {
            ExtractError::Encrypted("zip archive")
        }
        error => ExtractError::malformed("zip archive", error),
    }
}

#[cfg(test)]
mod tests {
    use crate::document::{Kind, MemberFailure, Output, Tally};
    use crate::fixtures::{documents, gzip, outputs, zip};

    #[test]
    fn every_member_is_a_document_with_its_path() {
        let inner = zip(&[("deep.txt", b"deep")]);
        let archive = zip(&[
            ("docs/", b""),
            ("docs/a.html", b"<title>A</title>x"),
            ("docs/b.md.gz", &gzip(b"# B")),
            ("in.zip", &inner),
            ("logo.png", b"\x89PNG\r\n\x1a\n...."),
        ]);
        let found: Vec<_> = documents("x.zip", &archive)
            .into_iter()
            .map(|d| (d.inner_path.unwrap(), d.kind))
            .collect();
        let expected = [
            ("!/docs/a.html".to_string(), Kind::Html),
            ("!/docs/b.md.gz".to_string(), Kind::Markdown),
            ("!/in.zip!/deep.txt".to_string(), Kind::Text),
        ];
        assert_eq!(found, expected);
        let (_, tally) = outputs("x.zip", &archive);
        assert_eq!(
            tally,
            Ok(Tally {
                documents: 3,
                failures: 0,
                skipped: 1
            })
        );
    }

    #[test]
    fn a_damaged_member_costs_only_itself() {
        let words = b"many words that are packed, many words that are packed".repeat(20);
        let mut archive = zip(&[("a.txt", &words), ("b.txt", b"fine")]);
        let damaged_at = 30 + "a.txt".len() + 20;
        archive[damaged_at] ^= 0xff;
        archive[damaged_at + 1] ^= 0xff;
        let (outputs, tally) = outputs("x.zip", &archive);
        assert_eq!(
            tally,
            Ok(Tally {
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
    fn a_damaged_archive_is_an_error_and_an_office_file_is_skipped() {
        let archive = zip(&[("a.txt", b"words")]);
        let half = outputs("x.zip", &archive[..archive.len() / 2]).1;
        assert_eq!(half.map_err(|error| error.code()), Err("malformed"));
        let office = zip(&[
            ("[Content_Types].xml", b"<x/>"),
            ("word/document.xml", b"<y/>"),
        ]);
        assert_eq!(
            outputs("x.docx", &office).1.map_err(|error| error.code()),
            Err("unsupported")
        );
    }
}
