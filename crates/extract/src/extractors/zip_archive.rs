//! Extracts from the members of a zip archive, or from a document format that is a zip archive with
//! certain members.

use std::cell::Cell;
use std::io::{self, BufReader, Cursor, Read};
use std::rc::Rc;

use rawzip::CompressionMethod;

use super::compressed;
use crate::bounded_reader::ExpansionReader;
use crate::error::ExtractError;
use crate::format::Input;
use crate::format::extraction::{Extraction, Location, catch_panic, is_metadata_member};
use crate::format::take_prefix;
use crate::zip_directory::{ZipDirectory, ZipMember};

const FORMAT: &str = "zip archive";
/// The number of bytes before the data of an lzma member: the version of the compressor, and the
/// length of the properties.
const LZMA_PREFIX_BYTES: usize = 4;

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
    let directory = catch_panic(FORMAT, || ZipDirectory::open(FORMAT, bytes))?;
    let contains = |name: &str| directory.find(name).is_some();
    if let Some(format) = extraction.detect_zip_format(&contains) {
        return extraction.extract_format(format, location, bytes);
    }
    for member in &directory.members {
        extraction.usage.count_member(&extraction.limits)?;
        if member.name.ends_with('/') || is_metadata_member(&member.name) {
            continue;
        }
        let member_location = extraction.member_location(location, &member.name);
        if !extraction.takes_member(&member_location) {
            continue;
        }
        let result = extract_member(extraction, &member_location, &directory, member);
        extraction.record_result(&member_location, result)?;
    }
    Ok(())
}

fn extract_member(
    extraction: &mut Extraction<'_>,
    location: &Location,
    directory: &ZipDirectory<'_>,
    member: &ZipMember,
) -> Result<(), ExtractError> {
    let counter = extraction.usage.expansion_counter();
    let limits = extraction.limits.clone();
    let content = catch_panic(FORMAT, || {
        let decompressor = open_member(directory, member)?;
        let compressed_bytes = Rc::new(Cell::new(member.compressed_bytes));
        let reader = ExpansionReader::new(decompressor, compressed_bytes, counter, &limits);
        Ok(BufReader::new(reader))
    });
    extraction.extract_reader(FORMAT, location, &mut content?)
}

/// Returns a reader of the content of a member.
fn open_member<'a>(
    directory: &'a ZipDirectory<'_>,
    member: &ZipMember,
) -> Result<Box<dyn Read + 'a>, ExtractError> {
    if member.is_link {
        return Err(ExtractError::Unsupported("link in an archive"));
    }
    let data = directory.entry(member)?.data();
    // These decompressors limit the memory.
    let opened = match member.method {
        CompressionMethod::ZSTD => Ok(compressed::open_zstandard(data)),
        CompressionMethod::XZ => Ok(compressed::open_xz(data)),
        CompressionMethod::LZMA => open_lzma(data, member.content_bytes),
        _ => return directory.open_member(member),
    };
    opened.map_err(|error| ExtractError::malformed(FORMAT, error))
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
    fn members_of_one_name_are_documents_each() {
        let mut archive = build_zip(&[("a.txt", b"first"), ("b.txt", b"second")]);
        while let Some(at) = memchr::memmem::find(&archive, b"b.txt") {
            archive[at] = b'a';
        }
        let found = extract_documents("x.zip", &archive);
        let texts: Vec<&str> = found.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(texts, ["first", "second"]);
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
