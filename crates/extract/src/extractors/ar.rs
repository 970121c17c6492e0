//! Reads the members of an ar archive: a Debian package, or a library, whose members are programs.
//! Source: <https://manpages.debian.org/bookworm/binutils-dev/ar.5.en.html> and deb(5).
//!
//! ```text
//! "!<arch>\n" │ name (16) │ … │ size (10, at 48) │ "`\n" (58) │ content, filled to an even length │ …
//! ```
//!
//! A name ends in `/` (GNU), stands in the table `//` (`/OFFSET`), or at the start of the content
//! (`#1/LENGTH`, BSD).

use std::io::{BufRead, Read};

use crate::bounded_reader::{MemberReader, read_up_to};
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location, is_metadata_member};

const FORMAT: &str = "ar archive";
const SIGNATURE_BYTES: u64 = 8;
const HEADER_BYTES: usize = 60;
/// The maximum size of the name table, and of names in the content of a member.
const NAMES_BYTES_MAX: u64 = 1 << 20;

/// Extracts from all members.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extraction.skip_bytes(FORMAT, reader, SIGNATURE_BYTES)?;
    let mut names = Vec::new();
    loop {
        extraction.limits.check_deadline()?;
        let header = read_up_to(FORMAT, reader, HEADER_BYTES as u64)?;
        if header.is_empty() {
            return Ok(());
        }
        let size = header.get(48..58).and_then(parse_number);
        let Some(size) = size.filter(|_| header.ends_with(b"`\n")) else {
            return Err(ExtractError::malformed(
                FORMAT,
                "the header of a member is not valid",
            ));
        };
        let mut content = MemberReader::new(&mut *reader, size);
        let name = header.get(..16).unwrap_or_default().trim_ascii_end();
        match name {
            b"//" => names = read_up_to(FORMAT, &mut content, size.min(NAMES_BYTES_MAX))?,
            // Symbol tables.
            b"/" | b"/SYM64/" | b"__.SYMDEF" | b"__.SYMDEF SORTED" => {}
            _ => {
                let name = read_name(name, &names, &mut content)?;
                let name = String::from_utf8_lossy(&name).into_owned();
                // The format version of a Debian package.
                if name != "debian-binary" && !is_metadata_member(&name) {
                    extraction.extract_archive_member(FORMAT, location, &name, &mut content)?;
                }
            }
        }
        let rest = content.rest_bytes();
        extraction.skip_bytes(FORMAT, &mut content, rest)?;
        extraction.skip_bytes(FORMAT, reader, size % 2)?;
    }
}

fn read_name(name: &[u8], names: &[u8], content: &mut dyn Read) -> Result<Vec<u8>, ExtractError> {
    if let Some(length) = name.strip_prefix(b"#1/").and_then(parse_number) {
        let bytes = read_up_to(FORMAT, content, length.min(NAMES_BYTES_MAX))?;
        let end = memchr::memchr(0, &bytes).unwrap_or(bytes.len());
        return Ok(bytes.get(..end).unwrap_or_default().to_vec());
    }
    let offset = name.strip_prefix(b"/").and_then(parse_number);
    let offset = offset.and_then(|offset| usize::try_from(offset).ok());
    let long = offset.and_then(|offset| names.get(offset..));
    let long = long.and_then(|rest| rest.split(|byte| *byte == b'\n').next());
    let name = long.unwrap_or(name);
    Ok(name.strip_suffix(b"/").unwrap_or(name).to_vec())
}

fn parse_number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{extract_documents, extract_outputs};

    fn member(name: &str, content: &str) -> String {
        let padding = if content.len().is_multiple_of(2) {
            ""
        } else {
            "\n"
        };
        format!(
            "{name:<16}{:<32}{:<10}`\n{content}{padding}",
            "",
            content.len()
        )
    }

    #[test]
    fn members_are_documents_with_their_path() {
        let archive = [
            "!<arch>\n".to_string(),
            member("/", "\0\0\0\0"),
            member("//", "a long name.txt/\nb.txt/\n"),
            member("debian-binary", "2.0\n"),
            member("/0", "one"),
            member("x.txt/", "two"),
            member("#1/8", "y z.txt\0three"),
        ];
        let found: Vec<_> = extract_documents("a", archive.concat().as_bytes())
            .into_iter()
            .map(|document| (document.inner_path.unwrap_or_default(), document.text))
            .collect();
        let expected = [
            ("!/a long name.txt", "one"),
            ("!/x.txt", "two"),
            ("!/y z.txt", "three"),
        ];
        assert_eq!(
            found,
            expected.map(|(path, text)| (path.to_string(), text.to_string()))
        );
    }

    #[test]
    fn damaged_archives_fail() {
        let archive = format!("!<arch>\n{}damaged", member("a.txt/", "one"));
        let counts = extract_outputs("a", archive.as_bytes()).1;
        assert_eq!(counts.map_err(|error| error.code()), Err("malformed"));
    }
}
