//! The properties of a document: the property set of the stream `SummaryInformation`.
//!
//! ```text
//! offset 44  offset of the section
//! section    size, count, then for each property: id, offset in the section
//! property   type, then its value: 30 a text in a code page, 31 UTF-16, 64 a time
//! ```

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

use crate::extractors::bytes::{decode_utf16, length_at, slice_at, u16_at, u32_at, u64_at};
use crate::extractors::code_page::find_encoding;
use crate::metadata_text::{append_keywords, clean_property};
use crate::output::ExtractedDocument;

const SECTION_OFFSET_AT: usize = 44;
/// The standard has 19 properties.
const PROPERTIES_MAX: usize = 64;

/// Milliseconds from 1601-01-01, where times start, to 1970-01-01.
const UNIX_EPOCH_MS: i64 = 11_644_473_600_000;
const TICKS_PER_MS: u64 = 10_000;

/// Sets the title and metadata of `document`. A damaged property is ignored.
pub(super) fn read_summary(stream: &[u8], document: &mut ExtractedDocument) {
    let section = length_at(stream, SECTION_OFFSET_AT).and_then(|offset| stream.get(offset..));
    let Some(section) = section else { return };
    let count = length_at(section, 4).unwrap_or(0).min(PROPERTIES_MAX);
    let properties = || {
        (0..count).filter_map(|index| {
            let offset = length_at(section, 12 + 8 * index)?;
            Some((u32_at(section, 8 + 8 * index)?, section.get(offset..)?))
        })
    };
    let code_page = properties().find(|(id, _)| *id == 1);
    let code_page = code_page.and_then(|(_, value)| u16_at(value, 4));
    let encoding = match code_page {
        Some(65001) => UTF_8,
        code_page => code_page
            .and_then(|page| find_encoding(page.into()))
            .unwrap_or(WINDOWS_1252),
    };
    let metadata = &mut document.metadata;
    for (id, value) in properties() {
        let text = || clean_property(&read_text(value, encoding)?);
        match id {
            2 => document.title = text(),
            3 => metadata.subject = text(),
            4 => metadata.author = text(),
            5 => append_keywords(&mut metadata.keywords, &text().unwrap_or_default()),
            6 => metadata.description = text(),
            12 => metadata.date_ms = read_time(value),
            _ => {}
        }
    }
}

fn read_text(property: &[u8], encoding: &'static Encoding) -> Option<String> {
    let length = length_at(property, 4)?;
    match u32_at(property, 0)? {
        30 => {
            let bytes = slice_at(property, 8, length)?;
            Some(encoding.decode_without_bom_handling(bytes).0.into_owned())
        }
        31 => Some(decode_utf16(slice_at(property, 8, length.checked_mul(2)?)?)),
        _ => None,
    }
}

fn read_time(property: &[u8]) -> Option<i64> {
    let ticks = u64_at(property, 4).filter(|ticks| *ticks > 0)?;
    let is_time = u32_at(property, 0)? == 64;
    let ms = i64::try_from(ticks / TICKS_PER_MS).ok()?;
    is_time.then_some(ms - UNIX_EPOCH_MS)
}
