//! Reads the members of a cpio archive: the portable formats "newc" and "odc". Source: cpio(5) of
//! FreeBSD.
//!
//! ```text
//! newc  "070701" or "070702" │ 13 fields of 8 hexadecimal digits │ name, 0, filled │ content, filled
//!       fields: … mode (1) … size (6) … length of the name (11), checksum; filled to 4 bytes
//! odc   "070707" │ octal digits: … mode (6, at 18) … length of the name (6, at 59) │ size (11)
//!       │ name, 0 │ content
//! ```

use std::io::BufRead;

use crate::bounded_reader::{MemberReader, read_up_to};
use crate::error::{ExtractError, Limit};
use crate::format::extraction::{Extraction, Location, is_metadata_member};

const FORMAT: &str = "cpio archive";
const MAGIC_BYTES: u64 = 6;
const NAME_BYTES_MAX: u64 = 64 << 10;
const LAST_NAME: &str = "TRAILER!!!";
const FILE_TYPE_MASK: u64 = 0o170_000;
const REGULAR_FILE: u64 = 0o100_000;

/// The header of a member.
struct Header {
    mode: u64,
    name_bytes: u64,
    content_bytes: u64,
    /// The number of padding bytes after the name and after the content.
    name_padding: u64,
    content_padding: u64,
}

/// Extracts from all members.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    while let Some(header) = read_header(reader)? {
        extraction.limits.check_deadline()?;
        if header.name_bytes > NAME_BYTES_MAX {
            return Err(ExtractError::limit(Limit::InputSize, NAME_BYTES_MAX));
        }
        let name = read_up_to(FORMAT, reader, header.name_bytes)?;
        let name = name.strip_suffix(&[0]).unwrap_or(&name);
        let name = String::from_utf8_lossy(name).into_owned();
        if name == LAST_NAME {
            break;
        }
        extraction.skip_bytes(FORMAT, reader, header.name_padding)?;
        let mut content = MemberReader::new(&mut *reader, header.content_bytes);
        if header.mode & FILE_TYPE_MASK == REGULAR_FILE && !is_metadata_member(&name) {
            extraction.extract_archive_member(FORMAT, location, &name, &mut content)?;
        }
        let rest = content.rest_bytes();
        extraction.skip_bytes(FORMAT, &mut content, rest)?;
        extraction.skip_bytes(FORMAT, reader, header.content_padding)?;
    }
    Ok(())
}

/// Returns the next header, or `None` at the end of the stream.
fn read_header(reader: &mut dyn BufRead) -> Result<Option<Header>, ExtractError> {
    let magic = read_up_to(FORMAT, reader, MAGIC_BYTES)?;
    let header = match magic.as_slice() {
        b"070701" | b"070702" => parse_new_header(&read_up_to(FORMAT, reader, 13 * 8)?),
        b"070707" => parse_old_header(&read_up_to(FORMAT, reader, 70)?),
        _ if magic.iter().all(|byte| *byte == 0) => return Ok(None),
        _ => None,
    };
    let damaged = || ExtractError::malformed(FORMAT, "the header of a member is not valid");
    header.map(Some).ok_or_else(damaged)
}

fn parse_new_header(digits: &[u8]) -> Option<Header> {
    let number = |index: usize| parse_number(digits.get(index * 8..index * 8 + 8)?, 16);
    let name_bytes = number(11)?;
    let content_bytes = number(6)?;
    let fill = |bytes: u64| bytes.next_multiple_of(4) - bytes;
    Some(Header {
        mode: number(1)?,
        name_bytes,
        content_bytes,
        name_padding: fill(MAGIC_BYTES + 13 * 8 + name_bytes),
        content_padding: fill(content_bytes),
    })
}

fn parse_old_header(digits: &[u8]) -> Option<Header> {
    let number =
        |offset: usize, length: usize| parse_number(digits.get(offset..offset + length)?, 8);
    Some(Header {
        mode: number(12, 6)?,
        name_bytes: number(53, 6)?,
        content_bytes: number(59, 11)?,
        name_padding: 0,
        content_padding: 0,
    })
}

fn parse_number(digits: &[u8], radix: u32) -> Option<u64> {
    let valid = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| valid)?;
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use crate::fixtures::extract_outputs;

    #[test]
    fn damaged_archives_fail() {
        for archive in ["070701zz", "070707777", "070701", "07070100000000000081a4"] {
            let counts = extract_outputs("a.cpio", archive.as_bytes()).1;
            assert_eq!(
                counts.map_err(|error| error.code()),
                Err("malformed"),
                "{archive}"
            );
        }
    }
}
