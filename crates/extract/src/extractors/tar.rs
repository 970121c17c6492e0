//! Reads the members of a tar archive from a stream: V7, ustar, GNU and pax. Source: POSIX.1-2017,
//! "pax", and <https://www.gnu.org/software/tar/manual/html_node/Standard.html>.
//!
//! ```text
//! header, 512 bytes   name (100) │ … │ size (124, 12) │ … │ checksum (148, 8) │ type (156) │ …
//!                     │ "ustar" (257) │ … │ prefix of the name (345, 155)
//! content             filled to a multiple of 512 bytes
//! ```

use std::io::{self, BufRead, Read};

use crate::bounded_reader::{MemberReader, convert_read_error, read_up_to};
use crate::encoding;
use crate::error::{ExtractError, Limit};
use crate::format::Input;
use crate::format::extraction::{Extraction, Location, is_metadata_member};

const BLOCK_BYTES: usize = 512;
/// The maximum size of names and pax headers.
const EXTENSION_BYTES_MAX: u64 = 1 << 20;
const FORMAT: &str = "tar archive";

type Block = [u8; BLOCK_BYTES];

/// Returns `true` if the file begins with a header whose checksum is correct. V7 archives have no
/// signature.
pub(crate) fn is_tar(input: &Input<'_>) -> bool {
    let block = input.bytes.first_chunk::<BLOCK_BYTES>();
    block.is_some_and(|block| block.first() != Some(&0) && has_valid_checksum(block))
}

/// Extracts from all members.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    let mut extended = ExtendedHeader::default();
    while let Some(block) = read_header(reader)? {
        extraction.limits.check_deadline()?;
        let size = extended
            .size
            .map_or_else(|| parse_number(field(&block, 124, 12)), Some);
        let Some(size) = size else {
            return Err(ExtractError::malformed(
                FORMAT,
                "the size of a member is not a number",
            ));
        };
        let mut content = MemberReader::new(&mut *reader, size);
        match field(&block, 156, 1) {
            b"L" => extended.name = Some(trim_zeros(&read_extension(&mut content)?).to_vec()),
            b"K" | b"g" => {}
            b"x" | b"X" => extended.read_pax(&read_extension(&mut content)?),
            kind => {
                let name = std::mem::take(&mut extended).name;
                let name = name.unwrap_or_else(|| join_name(&block));
                let name = encoding::decode(&name, name.len().saturating_mul(4)).text;
                extract_member(extraction, location, kind, &name, &mut content)?;
            }
        }
        let padding = size.next_multiple_of(BLOCK_BYTES as u64) - size;
        let rest = content.rest_bytes();
        extraction.skip_bytes(FORMAT, &mut content, rest)?;
        extraction.skip_bytes(FORMAT, reader, padding)?;
    }
    Ok(())
}

/// Properties of the next member from extension headers.
#[derive(Default)]
struct ExtendedHeader {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

impl ExtendedHeader {
    /// Reads records `LENGTH KEY=VALUE`, each of which ends in a line break.
    fn read_pax(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(space) = memchr::memchr(b' ', rest) {
            let length = rest.get(..space).and_then(parse_decimal);
            let length = length.and_then(|length| usize::try_from(length).ok());
            let record = length.and_then(|length| rest.get(space + 1..length));
            let (Some(record), Some(length)) = (record, length) else {
                return;
            };
            rest = rest.get(length..).unwrap_or_default();
            let record = record.strip_suffix(b"\n").unwrap_or(record);
            if let Some(name) = record.strip_prefix(b"path=") {
                self.name = Some(name.to_vec());
            } else if let Some(name) = record.strip_prefix(b"GNU.sparse.name=") {
                self.name = Some(name.to_vec());
            } else if let Some(size) = record.strip_prefix(b"size=") {
                self.size = parse_decimal(size);
            }
        }
    }
}

fn extract_member(
    extraction: &mut Extraction<'_>,
    location: &Location,
    kind: &[u8],
    name: &str,
    content: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    let is_file = matches!(kind, b"0" | b"\0" | b"7" | b"S") && !name.ends_with('/');
    if !is_file || is_metadata_member(name) {
        return Ok(());
    }
    if kind == b"S" {
        let location = extraction.member_location(location, name);
        if !extraction.takes_member(&location) {
            return Ok(());
        }
        return extraction.record_result(&location, Err(ExtractError::Unsupported("sparse file")));
    }
    extraction.extract_archive_member(FORMAT, location, name, content)
}

/// Returns the next header, or `None` at two zero blocks or the end of the stream.
fn read_header(reader: &mut dyn BufRead) -> Result<Option<Block>, ExtractError> {
    let mut zero_blocks = 0;
    while let Some(block) = read_block(reader)? {
        if block.iter().any(|byte| *byte != 0) {
            if !has_valid_checksum(&block) {
                return Err(ExtractError::malformed(
                    FORMAT,
                    "the checksum of a header is wrong",
                ));
            }
            return Ok(Some(block));
        }
        zero_blocks += 1;
        if zero_blocks == 2 {
            break;
        }
    }
    Ok(None)
}

fn read_block(reader: &mut dyn BufRead) -> Result<Option<Block>, ExtractError> {
    let mut block = [0; BLOCK_BYTES];
    let mut bytes = 0;
    while let Some(rest) = block.get_mut(bytes..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) if bytes == 0 => return Ok(None),
            Ok(0) => return Err(ExtractError::malformed(FORMAT, "it is cut off in a header")),
            Ok(read) => bytes += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(convert_read_error(FORMAT, error)),
        }
    }
    Ok(Some(block))
}

fn read_extension(content: &mut dyn Read) -> Result<Vec<u8>, ExtractError> {
    let bytes = read_up_to(FORMAT, content, EXTENSION_BYTES_MAX + 1)?;
    if bytes.len() as u64 > EXTENSION_BYTES_MAX {
        return Err(ExtractError::limit(Limit::InputSize, EXTENSION_BYTES_MAX));
    }
    Ok(bytes)
}

fn field(block: &Block, offset: usize, length: usize) -> &[u8] {
    block.get(offset..offset + length).unwrap_or_default()
}

fn trim_zeros(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    bytes.get(..end).unwrap_or(bytes)
}

/// Returns the name with its prefix. In GNU archives, the prefix field has another meaning.
fn join_name(block: &Block) -> Vec<u8> {
    let name = trim_zeros(field(block, 0, 100));
    let prefix = trim_zeros(field(block, 345, 155));
    if prefix.is_empty() || field(block, 257, 6) != b"ustar\0" {
        return name.to_vec();
    }
    [prefix, b"/", name].concat()
}

/// Returns `true` if the checksum is the sum of all bytes, with spaces in place of the checksum.
/// Some old programs add signed bytes.
fn has_valid_checksum(block: &Block) -> bool {
    let Some(expected) = parse_number(field(block, 148, 8)) else {
        return false;
    };
    let mut unsigned = 0u64;
    let mut signed = 0i64;
    for (offset, byte) in block.iter().enumerate() {
        let byte = if (148..156).contains(&offset) {
            b' '
        } else {
            *byte
        };
        unsigned += u64::from(byte);
        signed += i64::from(byte.cast_signed());
    }
    expected == unsigned || i64::try_from(expected) == Ok(signed)
}

/// Parses octal digits, or a binary number if the highest bit is set (GNU). An empty field is zero.
fn parse_number(field: &[u8]) -> Option<u64> {
    let (first, rest) = field.split_first()?;
    if first & 0x80 != 0 {
        let zeros = rest.len().saturating_sub(8);
        let (high, low) = rest.split_at_checked(zeros)?;
        let fits = *first == 0x80 && high.iter().all(|byte| *byte == 0);
        return fits.then(|| low.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    }
    let digits = trim_zeros(field).trim_ascii();
    digits.iter().try_fold(0u64, |sum, digit| match digit {
        b'0'..=b'7' => sum.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

fn parse_decimal(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::error::ExtractError;
    use crate::fixtures::{build_tar, build_tar_header, extract_documents, extract_outputs, gzip};
    use crate::output::{ExtractionCounts, Output};

    fn paths(archive: &[u8]) -> Vec<String> {
        let documents = extract_documents("a", archive);
        documents
            .into_iter()
            .filter_map(|document| document.inner_path)
            .collect()
    }

    #[test]
    fn members_are_documents_with_their_path() {
        let inner = build_tar(&[("deep.txt", b"deep")]);
        let archive = build_tar(&[
            ("./docs/a.html", b"<title>A</title>x"),
            ("docs/", b""),
            ("docs/b.tgz", &gzip(&inner)),
            ("._a", b"words"),
            ("empty.txt", b""),
            ("mail", b"From a Mon Jan  1 00:00:00 2024\nTo: b\n\nc\n"),
        ]);
        let expected = [
            "!/docs/a.html",
            "!/docs/b.tgz!/deep.txt",
            "!/empty.txt",
            "!/mail#1",
        ];
        assert_eq!(paths(&archive), expected);
        assert_eq!(paths(&gzip(&archive)), expected);
    }

    #[test]
    fn long_names_are_read() {
        let long = format!("{}/b.txt", "a".repeat(150));
        let record = format!("path={long}\n");
        let record = format!("{} {record}", record.len() + 4);
        let pax = [(b'x', record.as_bytes()), (b'L', long.as_bytes())];
        for (kind, name) in pax {
            let mut archive = build_tar_header("x", kind, name.len()).to_vec();
            archive.extend_from_slice(name);
            archive.resize(1024, 0);
            archive.extend_from_slice(&build_tar(&[("short", b"words"), ("next", b"words")]));
            assert_eq!(paths(&archive), [format!("!/{long}"), "!/next".into()]);
        }
    }

    #[test]
    fn a_damaged_member_does_not_affect_the_others() {
        let archive = build_tar(&[
            ("a.pdf", b"%PDF-1.4 x"),
            ("b.txt", b"fine"),
            ("c.ttf", b"\0\x01\0\0\0"),
        ]);
        let (outputs, counts) = extract_outputs("a.tar", &archive);
        let expected = ExtractionCounts {
            documents: 1,
            failures: 1,
            skipped: 1,
        };
        assert_eq!(counts, Ok(expected));
        assert!(matches!(&outputs[1], Output::Document(document) if document.text == "fine"));
    }

    #[test]
    fn damaged_archives_fail() {
        let archive = build_tar(&[("a.txt", b"words"), ("b.txt", b"words")]);
        let read = |archive: &[u8]| extract_outputs("a.tar", archive).1.map_err(|e| e.code());
        assert_eq!(read(&archive[..1100]), Err("malformed"));
        assert_eq!(read(&archive[..1538]), Err("malformed"));
        let mut damaged = archive.clone();
        damaged[1024 + 130] ^= 1;
        assert_eq!(read(&damaged), Err("malformed"));
        let mut endless = build_tar_header("a.txt", b'0', 0);
        endless[124] = 0xff;
        assert!(matches!(
            extract_outputs("a", &endless).1,
            Err(ExtractError::Malformed { .. })
        ));
    }
}
