//! Extracts from the members of a zip archive, or from a document format that is a zip archive with
//! certain members.

use std::cell::Cell;
use std::io::{self, BufReader, Cursor, Read};
use std::rc::Rc;

use zip::{CompressionMethod, ZipArchive};

use super::compressed;
use crate::bounded_reader::ExpansionReader;
use crate::error::ExtractError;
use crate::format::Input;
use crate::format::extraction::{Extraction, Location, catch_panic, is_metadata_member};
use crate::format::take_prefix;
use crate::zip_package::convert_zip_error;

const FORMAT: &str = "zip archive";
/// The number of bytes before the data of an lzma member: the version of the compressor, and the
/// length of the properties.
const LZMA_PREFIX_BYTES: usize = 4;

type Archive<'b> = ZipArchive<Cursor<&'b [u8]>>;

/// Returns `true` for a script with an appended zip archive, for example of Python's `zipapp`.
pub(crate) fn is_script_archive(input: &Input<'_>) -> bool {
    let (line, rest) = match memchr::memchr(b'\n', take_prefix(input.bytes, 1024)) {
        Some(at) => input.bytes.split_at_checked(at + 1).unwrap_or_default(),
        None => return false,
    };
    line.starts_with(b"#!") && rest.starts_with(b"PK\x03\x04")
}

/// Extracts from all members in the order of the central directory.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let mut archive = catch_panic(FORMAT, || {
        ZipArchive::new(Cursor::new(bytes)).map_err(|error| convert_zip_error(FORMAT, error))
    })?;
    let contains = |name: &str| archive.index_for_name(name).is_some();
    if let Some(format) = extraction.detect_zip_format(&contains) {
        return extraction.extract_format(format, location, bytes);
    }
    for index in 0..archive.len() {
        extraction.usage.count_member(&extraction.limits)?;
        let name = catch_panic(FORMAT, || Ok(read_name(&mut archive, index)))?;
        if name.ends_with('/') || is_metadata_member(&name) {
            continue;
        }
        let member_location = extraction.member_location(location, &name);
        if !extraction.takes_member(&member_location) {
            continue;
        }
        let result = extract_member(extraction, &member_location, &mut archive, index);
        extraction.record_result(&member_location, result)?;
    }
    Ok(())
}

/// Returns the name of a member. Valid UTF-8 is decoded as such, because many programs do not set
/// its flag. Other names are in the DOS code page or in an extra field.
fn read_name(archive: &mut Archive<'_>, index: usize) -> String {
    let Ok(member) = archive.by_index_raw(index) else {
        return format!("{index}");
    };
    let name = match std::str::from_utf8(member.name_raw()) {
        Ok(name) => name.to_string(),
        Err(_) => match member.name() {
            Ok(name) => name.into_owned(),
            Err(_) => String::from_utf8_lossy(member.name_raw()).into_owned(),
        },
    };
    // Old Windows programs use backslashes.
    if name.contains('/') {
        name
    } else {
        name.replace('\\', "/")
    }
}

fn extract_member(
    extraction: &mut Extraction<'_>,
    location: &Location,
    archive: &mut Archive<'_>,
    index: usize,
) -> Result<(), ExtractError> {
    let counter = extraction.usage.expansion_counter();
    let limits = extraction.limits.clone();
    let content = catch_panic(FORMAT, || {
        let (decompressor, compressed_bytes) = open_member(archive, index)?;
        let compressed_bytes = Rc::new(Cell::new(compressed_bytes));
        let reader = ExpansionReader::new(decompressor, compressed_bytes, counter, &limits);
        Ok(BufReader::new(reader))
    });
    extraction.extract_reader(FORMAT, location, &mut content?)
}

/// Returns the decompressed content of a member and its compressed size.
fn open_member<'a>(
    archive: &'a mut Archive<'_>,
    index: usize,
) -> Result<(Box<dyn Read + 'a>, u64), ExtractError> {
    let convert = |error| convert_zip_error(FORMAT, error);
    let raw = archive.by_index_raw(index).map_err(convert)?;
    if raw.encrypted() {
        return Err(ExtractError::Encrypted(FORMAT));
    }
    if !raw.is_file() {
        return Err(ExtractError::Unsupported("link in an archive"));
    }
    let (method, compressed_bytes, bytes) = (raw.compression(), raw.compressed_size(), raw.size());
    drop(raw);
    let raw_methods = [
        CompressionMethod::ZSTD,
        CompressionMethod::XZ,
        CompressionMethod::LZMA,
    ];
    if !raw_methods.contains(&method) {
        let member = archive.by_index(index).map_err(convert)?;
        return Ok((Box::new(member), compressed_bytes));
    }
    let raw = BufReader::new(archive.by_index_raw(index).map_err(convert)?);
    let opened = match method {
        CompressionMethod::ZSTD => Ok(compressed::open_zstandard(raw)),
        CompressionMethod::XZ => Ok(compressed::open_xz(raw)),
        _ => open_lzma(raw, bytes),
    };
    let decompressor = opened.map_err(|error| ExtractError::malformed(FORMAT, error))?;
    Ok((decompressor, compressed_bytes))
}

/// Opens an lzma member. Unlike that of a file, its header has no size.
fn open_lzma<'r>(mut raw: impl Read + 'r, bytes: u64) -> io::Result<Box<dyn Read + 'r>> {
    let mut prefix = [0; LZMA_PREFIX_BYTES];
    raw.read_exact(&mut prefix)?;
    let mut header = [0; 13];
    let (properties, size) = header.split_at_mut(5);
    raw.read_exact(properties)?;
    size.copy_from_slice(&bytes.to_le_bytes());
    compressed::open_lzma(Cursor::new(header).chain(raw))
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
            ("letters.ttf", b"\0\x01\0\0\0...."),
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
            Output::Failure(MemberFailure {
                inner_path,
                error,
                attached_to: None,
            }),
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

    #[test]
    fn names_are_utf_8_or_of_dos() {
        let path = |name: &[u8]| {
            let placeholder = "x".repeat(name.len());
            let mut archive = build_zip(&[(placeholder.as_str(), b"words")]);
            // The name is in the header of the member and in the directory.
            while let Some(at) = memchr::memmem::find(&archive, placeholder.as_bytes()) {
                archive[at..at + name.len()].copy_from_slice(name);
            }
            extract_documents("a.zip", &archive)
                .remove(0)
                .inner_path
                .unwrap()
        };
        assert_eq!(path("größe.txt".as_bytes()), "!/größe.txt");
        assert_eq!(path(b"gr\x94\xe1e.txt"), "!/größe.txt");
        assert_eq!(path(b"folder\\a.txt"), "!/folder/a.txt");
    }
}
