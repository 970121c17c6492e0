//! Reads the members of a 7z archive. Several members can be compressed as one block, so all are
//! decompressed in order.

use std::cell::Cell;
use std::io::{self, BufReader, Cursor, Read};
use std::rc::Rc;

use sevenz_rust2::{ArchiveReader, EntryDecision, Error, Password};

use crate::bounded_reader::ExpansionReader;
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location, catch_panic, is_metadata_member};

const FORMAT: &str = "7z archive";
/// The maximum memory of a decompressor: twice what `7z -mx=9` needs.
const MEMORY_KB_MAX: usize = 192 << 10;

/// Extracts from all members.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    let compressed_bytes = Rc::new(Cell::new(bytes.len() as u64));
    let mut failure = None;
    let result = catch_panic(FORMAT, || {
        let source = Cursor::new(bytes);
        let mut archive =
            ArchiveReader::new_with_memory_limit(source, Password::empty(), MEMORY_KB_MAX)
                .map_err(convert_error)?;
        // Single-threaded, because each core runs its own worker.
        archive.set_thread_count(1);
        let read = archive.for_each_entries_with_decision(|entry, content| {
            if entry.is_directory || is_metadata_member(&entry.name) {
                drain(extraction, content, &compressed_bytes)
            } else {
                extract_member(
                    extraction,
                    location,
                    &entry.name,
                    content,
                    &compressed_bytes,
                )
            }
            .map(|()| EntryDecision::Continue)
            .or_else(|error| {
                failure = Some(error);
                Ok(EntryDecision::Stop)
            })
        });
        read.map_err(convert_error)
    });
    match failure {
        Some(error) => Err(error),
        None => result,
    }
}

fn extract_member(
    extraction: &mut Extraction<'_>,
    location: &Location,
    name: &str,
    content: &mut dyn Read,
    compressed_bytes: &Rc<Cell<u64>>,
) -> Result<(), ExtractError> {
    extraction.usage.count_member(&extraction.limits)?;
    let location = extraction.member_location(location, name);
    let mut content = bound(extraction, content, compressed_bytes);
    if !extraction.takes_member(&location) {
        return extraction.skip_bytes(FORMAT, &mut content, u64::MAX);
    }
    let result = extraction.extract_reader(FORMAT, &location, &mut content);
    extraction.record_result(&location, result)?;
    extraction.skip_bytes(FORMAT, &mut content, u64::MAX)
}

/// Decompresses the rest of a member, because later members of the block depend on it.
fn drain(
    extraction: &mut Extraction<'_>,
    content: &mut dyn Read,
    compressed_bytes: &Rc<Cell<u64>>,
) -> Result<(), ExtractError> {
    let mut content = bound(extraction, content, compressed_bytes);
    extraction.skip_bytes(FORMAT, &mut content, u64::MAX)
}

fn bound<'c>(
    extraction: &Extraction<'_>,
    content: &'c mut dyn Read,
    compressed_bytes: &Rc<Cell<u64>>,
) -> BufReader<ExpansionReader<&'c mut dyn Read>> {
    let counter = extraction.usage.expansion_counter();
    let compressed_bytes = Rc::clone(compressed_bytes);
    let limits = &extraction.limits;
    BufReader::new(ExpansionReader::new(
        content,
        compressed_bytes,
        counter,
        limits,
    ))
}

fn convert_error(error: Error) -> ExtractError {
    match error {
        Error::PasswordRequired | Error::MaybeBadPassword(_) => ExtractError::Encrypted(FORMAT),
        Error::UnsupportedCompressionMethod(method) if method.contains("AES") => {
            ExtractError::Encrypted(FORMAT)
        }
        Error::Io(error, _) => crate::bounded_reader::convert_read_error(FORMAT, error),
        error => ExtractError::malformed(FORMAT, io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use sevenz_rust2::{ArchiveEntry, ArchiveWriter};

    use crate::error::{ExtractError, Limit};
    use crate::fixtures::{extract_documents, extract_outputs};
    use crate::limits::Limits;

    fn build(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = ArchiveWriter::new(Cursor::new(Vec::new())).unwrap();
        for (name, bytes) in members {
            let entry = ArchiveEntry::new_file(name);
            writer.push_archive_entry(entry, Some(*bytes)).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    #[test]
    fn members_are_documents_with_their_path() {
        let archive = build(&[
            ("a/b.md", b"# B"),
            ("__MACOSX/x", b"x"),
            ("c.ttf", b"\0\x01\0\0\0"),
        ]);
        let [document] = &extract_documents("a.7z", &archive)[..] else {
            panic!("one document")
        };
        assert_eq!(document.inner_path.as_deref(), Some("!/a/b.md"));
        assert_eq!(document.text, "B");
    }

    #[test]
    fn bombs_are_refused() {
        let bomb = build(&[("a.ttf", &[b"\0\x01\0\0\0", &vec![0; 20 << 20][..]].concat())]);
        let error = extract_outputs("a.7z", &bomb).1;
        assert_eq!(error, Err(ExtractError::limit(Limit::ExpansionRatio, 200)));
        let limits = Limits {
            expanded_bytes_max: 1000,
            ..Limits::default()
        };
        let error = crate::extract("a.7z", &bomb, &limits, &mut |_| ());
        assert_eq!(error, Err(ExtractError::limit(Limit::ExpandedSize, 1000)));
    }
}
