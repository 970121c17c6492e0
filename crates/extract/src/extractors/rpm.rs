//! Reads an RPM package: its description as a document, and the files in its payload, a compressed
//! cpio archive. Source: <https://rpm-software-management.github.io/rpm/manual/format_v4.html>.
//!
//! ```text
//! lead, 96 bytes │ signature: a header, filled to 8 bytes │ header │ payload
//! header   8e ad e8 01 │ reserved (4) │ number of entries (4) │ bytes of values (4) │ entries │ values
//! entry    tag (4) │ type (4) │ offset of the value (4) │ count (4)
//! ```

use std::io::BufRead;

use crate::bounded_reader::read_up_to;
use crate::encoding;
use crate::error::{ExtractError, Limit};
use crate::format::extraction::{Extraction, Location};
use crate::metadata_text::clean_property;
use crate::output::{DocumentKind, DocumentMetadata, ExtractedDocument};

const FORMAT: &str = "RPM package";
const LEAD_BYTES: u64 = 96;
const HEADER_MAGIC: &[u8] = &[0x8e, 0xad, 0xe8, 0x01];
const ENTRY_BYTES: u64 = 16;
/// The maximum size of a header. Packages with many files have headers of some megabytes.
const HEADER_BYTES_MAX: u64 = 32 << 20;

/// Tags of values. Source: `rpmtag.h`.
const NAME: u32 = 1000;
const VERSION: u32 = 1001;
const RELEASE: u32 = 1002;
const SUMMARY: u32 = 1004;
const DESCRIPTION: u32 = 1005;
const BUILD_TIME: u32 = 1006;
const VENDOR: u32 = 1011;
const LICENSE: u32 = 1014;
const PACKAGER: u32 = 1015;
const GROUP: u32 = 1016;
const URL: u32 = 1020;

/// Extracts the description and the files.
pub(crate) fn extract(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extraction.skip_bytes(FORMAT, reader, LEAD_BYTES)?;
    let signature = Header::read(reader)?;
    let padding = signature.bytes.next_multiple_of(8) - signature.bytes;
    extraction.skip_bytes(FORMAT, reader, padding)?;
    let header = Header::read(reader)?;
    extraction.emit_document(location, build_document(&header));
    // The compression is detected by the signature of the payload.
    let result = extraction.extract_reader(FORMAT, &location.for_content(""), reader);
    match result {
        // An empty package has no payload.
        Err(ExtractError::Unsupported(_)) => Ok(()),
        result => result,
    }
}

fn build_document(header: &Header) -> ExtractedDocument {
    let name = header.text(NAME).unwrap_or_default();
    let lines = [
        [NAME, VERSION, RELEASE]
            .iter()
            .filter_map(|tag| header.text(*tag))
            .collect::<Vec<_>>()
            .join("-"),
        header.text(SUMMARY).unwrap_or_default(),
        header.text(DESCRIPTION).unwrap_or_default(),
        header.text(LICENSE).unwrap_or_default(),
        header.text(URL).unwrap_or_default(),
    ];
    let text = lines
        .iter()
        .filter(|line| !line.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join("\n\n");
    let property = |tag: u32| header.text(tag).as_deref().and_then(clean_property);
    ExtractedDocument {
        title: (!name.is_empty()).then_some(name),
        metadata: DocumentMetadata {
            author: property(PACKAGER).or_else(|| property(VENDOR)),
            description: property(SUMMARY),
            keywords: property(GROUP).into_iter().collect(),
            date_ms: header
                .number(BUILD_TIME)
                .map(|seconds| i64::from(seconds) * 1000),
            ..DocumentMetadata::default()
        },
        ..ExtractedDocument::new(DocumentKind::Text, text)
    }
}

/// A header: entries that refer to values.
struct Header {
    entries: Vec<u8>,
    values: Vec<u8>,
    bytes: u64,
}

impl Header {
    fn read(reader: &mut dyn BufRead) -> Result<Self, ExtractError> {
        let start = read_up_to(FORMAT, reader, 16)?;
        let damaged = || ExtractError::malformed(FORMAT, "a header is not valid");
        if !start.starts_with(HEADER_MAGIC) {
            return Err(damaged());
        }
        let count = u64::from(read_number(&start, 8).ok_or_else(damaged)?);
        let value_bytes = u64::from(read_number(&start, 12).ok_or_else(damaged)?);
        let entry_bytes = count * ENTRY_BYTES;
        if entry_bytes + value_bytes > HEADER_BYTES_MAX {
            return Err(ExtractError::limit(Limit::InputSize, HEADER_BYTES_MAX));
        }
        Ok(Header {
            entries: read_up_to(FORMAT, reader, entry_bytes)?,
            values: read_up_to(FORMAT, reader, value_bytes)?,
            bytes: 16 + entry_bytes + value_bytes,
        })
    }

    /// Returns the offset of a value.
    fn offset(&self, tag: u32) -> Option<usize> {
        let (entries, _) = self.entries.as_chunks::<{ ENTRY_BYTES as usize }>();
        let entry = entries
            .iter()
            .find(|entry| read_number(*entry, 0) == Some(tag))?;
        usize::try_from(read_number(entry, 8)?).ok()
    }

    /// Returns the text of a tag, in the first language.
    fn text(&self, tag: u32) -> Option<String> {
        let rest = self.values.get(self.offset(tag)?..)?;
        let text = rest.split(|byte| *byte == 0).next()?;
        let text = encoding::decode(text, text.len().saturating_mul(4)).text;
        let text = text.trim();
        (!text.is_empty() && text != "(none)").then(|| text.to_string())
    }

    fn number(&self, tag: u32) -> Option<u32> {
        read_number(&self.values, self.offset(tag)?)
    }
}

fn read_number(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes
        .get(offset..)?
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}
