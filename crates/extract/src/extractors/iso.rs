//! Reads the files of an ISO 9660 image (CD, DVD) from a stream, with the long names of Rock Ridge
//! or Joliet. Sources: ECMA-119, IEEE P1282, and the Joliet specification of Microsoft.
//!
//! ```text
//! sectors of 2,048 bytes: 16 unused │ volume descriptors │ … directories … │ … files …
//! descriptor         type: 1 primary, 2 supplementary, 255 last │ "CD001" │ … │ root, a record (156)
//! record             its length (1) │ … │ sector (2) │ … │ bytes (10) │ … │ flags (25) │ …
//!                    │ length of the name (32) │ name, filled to an even length │ Rock Ridge
//! ```
//!
//! Directories and files are read in the order of their sectors, so that the image is read once.
//! Programs write directories before the files that they contain.

use std::collections::BTreeMap;
use std::io::BufRead;

use encoding_rs::UTF_16BE;

use crate::bounded_reader::{MemberReader, read_up_to};
use crate::error::{ExtractError, Limit};
use crate::format::Input;
use crate::format::extraction::{Extraction, Location, is_metadata_member};

const FORMAT: &str = "ISO 9660 image";
const SECTOR_BYTES: u64 = 2048;
const FIRST_DESCRIPTOR: u64 = 16;
const DESCRIPTORS_MAX: u64 = 64;
const SIGNATURE: &[u8] = b"CD001";
const DIRECTORY_BYTES_MAX: u64 = 16 << 20;
const DEPTH_MAX: u32 = 64;
const IS_DIRECTORY: u8 = 2;
const RECORD_BYTES_MIN: usize = 34;

/// Returns `true` if the file is named as an image. The first descriptor lies after the bytes that
/// are read to detect a format.
pub(crate) fn is_image(input: &Input<'_>) -> bool {
    let extension = input.name.rsplit('.').next().unwrap_or_default();
    let signature = (FIRST_DESCRIPTOR * SECTOR_BYTES) as usize + 1;
    match input.bytes.get(signature..) {
        Some(rest) if rest.len() >= SIGNATURE.len() => rest.starts_with(SIGNATURE),
        _ => extension.eq_ignore_ascii_case("iso"),
    }
}

/// Extracts from all files.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    let mut image = Image {
        reader,
        position: 0,
        pending: BTreeMap::new(),
        names: NameKind::Plain,
        joliet_root: None,
    };
    image.read_descriptors(extraction)?;
    while let Some((start, entry)) = image.pending.pop_first() {
        extraction.limits.check_deadline()?;
        // The content was already read under another name of the same file.
        if start.offset < image.position {
            continue;
        }
        image.skip_to(extraction, start.offset)?;
        if entry.is_directory {
            image.read_directory(extraction, &entry)?;
        } else {
            image.extract_file(extraction, location, &entry)?;
        }
    }
    Ok(())
}

/// The source of the names of entries.
#[derive(Clone, Copy, PartialEq)]
enum NameKind {
    Plain,
    RockRidge,
    Joliet,
}

/// The position of an entry's content. The number distinguishes entries with the same content.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct ContentStart {
    offset: u64,
    number: usize,
}

struct Entry {
    path: String,
    bytes: u64,
    depth: u32,
    is_directory: bool,
}

struct Image<'r> {
    reader: &'r mut dyn BufRead,
    position: u64,
    /// Entries whose content is not yet read.
    pending: BTreeMap<ContentStart, Entry>,
    names: NameKind,
    joliet_root: Option<Record>,
}

/// A record of a directory.
#[derive(Clone)]
struct Record {
    offset: u64,
    bytes: u64,
    is_directory: bool,
    name: Vec<u8>,
    system_use: Vec<u8>,
}

impl Record {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let number = |offset: usize| {
            let bytes = bytes.get(offset..)?.first_chunk()?;
            Some(u64::from(u32::from_le_bytes(*bytes)))
        };
        let name_bytes = usize::from(*bytes.get(32)?);
        let system_use = 33 + name_bytes + usize::from(name_bytes.is_multiple_of(2));
        // An extended attribute record precedes the content.
        let sector = number(2)? + u64::from(*bytes.get(1)?);
        Some(Record {
            offset: sector * SECTOR_BYTES,
            bytes: number(10)?,
            is_directory: bytes.get(25)? & IS_DIRECTORY != 0,
            name: bytes.get(33..33 + name_bytes)?.to_vec(),
            system_use: bytes.get(system_use..).unwrap_or_default().to_vec(),
        })
    }

    /// Returns the name. `None` for the directory itself and for its parent.
    fn name(&self, kind: NameKind) -> Option<String> {
        if matches!(self.name.as_slice(), [] | [0 | 1]) {
            return None;
        }
        let name = match kind {
            NameKind::RockRidge => {
                let name = rock_ridge_name(&self.system_use);
                return Some(name.unwrap_or_else(|| plain_name(&self.name)));
            }
            NameKind::Joliet => UTF_16BE
                .decode_without_bom_handling(&self.name)
                .0
                .into_owned(),
            NameKind::Plain => plain_name(&self.name),
        };
        let name = name.split(';').next().unwrap_or_default();
        Some(name.trim_end_matches('.').to_string())
    }
}

fn plain_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let name = name.split(';').next().unwrap_or_default();
    name.trim_end_matches('.').to_string()
}

/// Returns the name in the fields `NM`. Parts in a continuation area are omitted, because it is
/// elsewhere in the image.
fn rock_ridge_name(system_use: &[u8]) -> Option<String> {
    let mut name = Vec::new();
    let mut rest = system_use;
    while let Some((&[s0, s1, length, _], _)) = rest.split_first_chunk::<4>() {
        let Some((field, after)) = rest.split_at_checked(usize::from(length)) else {
            break;
        };
        if field.len() < 4 {
            break;
        }
        if [s0, s1] == *b"NM" {
            name.extend_from_slice(field.get(5..).unwrap_or_default());
        }
        rest = after;
    }
    (!name.is_empty()).then(|| String::from_utf8_lossy(&name).into_owned())
}

impl Image<'_> {
    /// Reads the volume descriptors and enqueues the root directory.
    fn read_descriptors(&mut self, extraction: &Extraction<'_>) -> Result<(), ExtractError> {
        self.skip_to(extraction, FIRST_DESCRIPTOR * SECTOR_BYTES)?;
        let mut root = None;
        for _ in 0..DESCRIPTORS_MAX {
            let sector = self.read(SECTOR_BYTES)?;
            if sector.get(1..6) != Some(SIGNATURE) {
                break;
            }
            let record = sector.get(156..190).and_then(Record::parse);
            let escapes = sector.get(88..91).unwrap_or_default();
            let is_joliet = matches!(escapes, b"%/@" | b"%/C" | b"%/E");
            match sector.first() {
                Some(1) if root.is_none() => root = record,
                Some(2) if is_joliet => self.joliet_root = record,
                Some(255) => break,
                _ => {}
            }
        }
        // UDF images without ISO 9660 have other descriptors.
        let root = root.ok_or(ExtractError::Unsupported("disk image of another kind"))?;
        self.add(&root, String::new(), 0);
        Ok(())
    }

    fn add(&mut self, record: &Record, path: String, depth: u32) {
        let start = ContentStart {
            offset: record.offset,
            number: self.pending.len(),
        };
        let entry = Entry {
            path,
            bytes: record.bytes,
            depth,
            is_directory: record.is_directory,
        };
        self.pending.insert(start, entry);
    }

    fn read_directory(
        &mut self,
        extraction: &mut Extraction<'_>,
        directory: &Entry,
    ) -> Result<(), ExtractError> {
        if directory.bytes > DIRECTORY_BYTES_MAX || directory.depth > DEPTH_MAX {
            return Err(ExtractError::limit(Limit::InputSize, DIRECTORY_BYTES_MAX));
        }
        let bytes = self.read(directory.bytes)?;
        let records = parse_records(&bytes);
        if directory.depth == 0 {
            self.choose_names(&records);
            if self.names == NameKind::Joliet
                && let Some(root) = self.joliet_root.take()
            {
                self.add(&root, String::new(), 0);
                return Ok(());
            }
        }
        for record in &records {
            let Some(name) = record.name(self.names).filter(|name| !name.is_empty()) else {
                continue;
            };
            extraction.usage.count_member(&extraction.limits)?;
            let path = if directory.path.is_empty() {
                name
            } else {
                format!("{}/{name}", directory.path)
            };
            self.add(record, path, directory.depth + 1);
        }
        Ok(())
    }

    /// Selects the source of names. Rock Ridge marks the first record of the root directory.
    fn choose_names(&mut self, records: &[Record]) {
        let first = records.first().map_or(&[][..], |record| &record.system_use);
        if self.names == NameKind::Plain {
            self.names = if first.starts_with(b"SP") {
                NameKind::RockRidge
            } else if self.joliet_root.is_some() {
                NameKind::Joliet
            } else {
                NameKind::Plain
            };
        }
    }

    fn extract_file(
        &mut self,
        extraction: &mut Extraction<'_>,
        location: &Location,
        file: &Entry,
    ) -> Result<(), ExtractError> {
        if is_metadata_member(&file.path) {
            return Ok(());
        }
        let location = extraction.member_location(location, &file.path);
        if !extraction.takes_member(&location) {
            return Ok(());
        }
        let mut content = MemberReader::new(&mut *self.reader, file.bytes);
        let result = extraction.extract_reader(FORMAT, &location, &mut content);
        self.position += file.bytes - content.rest_bytes();
        extraction.record_result(&location, result)
    }

    fn skip_to(&mut self, extraction: &Extraction<'_>, offset: u64) -> Result<(), ExtractError> {
        extraction.skip_bytes(FORMAT, self.reader, offset.saturating_sub(self.position))?;
        self.position = offset;
        Ok(())
    }

    fn read(&mut self, bytes_max: u64) -> Result<Vec<u8>, ExtractError> {
        let bytes = read_up_to(FORMAT, self.reader, bytes_max)?;
        self.position += bytes.len() as u64;
        Ok(bytes)
    }
}

/// Parses the records of a directory. Records do not cross sector boundaries.
fn parse_records(bytes: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    for sector in bytes.chunks(SECTOR_BYTES as usize) {
        let mut rest = sector;
        while let Some(&length) = rest.first() {
            let length = usize::from(length);
            if length < RECORD_BYTES_MIN {
                break;
            }
            let Some((record, after)) = rest.split_at_checked(length) else {
                break;
            };
            records.extend(Record::parse(record));
            rest = after;
        }
    }
    records
}
