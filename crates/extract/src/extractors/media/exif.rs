//! Exif. Source: CIPA DC-008.

use std::io::{self, BufReader, Seek};

use exif::{Exif, Field, In, Reader, Tag, Value};

use super::bounded::BoundedReader;
use super::iptc;
use super::properties::{Properties, Property};
use crate::metadata_text::{CalendarTime, clean_property};

/// The XMP packet of TIFF.
const XMP: Tag = Tag(exif::Context::Tiff, 700);
const IPTC: Tag = Tag(exif::Context::Tiff, 33723);
/// Texts that Windows writes as UTF-16.
const WINDOWS_TEXTS: [(u16, Property); 5] = [
    (0x9c9b, Property::Title),
    (0x9c9c, Property::Description),
    (0x9c9d, Property::Author),
    (0x9c9e, Property::Keywords),
    (0x9c9f, Property::Other),
];

/// Reads TIFF, HEIF or AVIF.
pub(super) fn read_container(
    reader: &mut BoundedReader<'_>,
    properties: &mut Properties<'_>,
) -> io::Result<()> {
    reader.rewind()?;
    let mut buffered = BufReader::new(reader);
    let found = tolerant_reader().read_from_container(&mut buffered);
    add_all(
        &accept_partial(found).map_err(io::Error::other)?,
        properties,
    );
    Ok(())
}

/// Reads the Exif block of another format.
pub(super) fn read_block(block: Vec<u8>, properties: &mut Properties<'_>) {
    if let Ok(found) = accept_partial(tolerant_reader().read_raw(block)) {
        add_all(&found, properties);
    }
}

fn tolerant_reader() -> Reader {
    let mut reader = Reader::new();
    reader.continue_on_error(true);
    reader
}

fn accept_partial(found: Result<Exif, exif::Error>) -> Result<Exif, exif::Error> {
    found.or_else(|error| error.distill_partial_result(|_| ()))
}

fn add_all(found: &Exif, properties: &mut Properties<'_>) {
    let field = |tag| found.get_field(tag, In::PRIMARY);
    let texts = [
        (Tag::ImageDescription, Property::Description),
        (Tag::Artist, Property::Author),
        (Tag::Copyright, Property::Other),
        (Tag::UserComment, Property::Other),
    ];
    for (tag, property) in texts {
        if let Some(bytes) = field(tag).and_then(text_bytes) {
            properties.add_bytes(property, bytes);
        }
    }
    for (number, property) in WINDOWS_TEXTS {
        if let Some(Value::Byte(bytes)) =
            field(Tag(exif::Context::Tiff, number)).map(|it| &it.value)
        {
            let (decoded, _) = encoding_rs::UTF_16LE.decode_without_bom_handling(bytes);
            properties.add(property, decoded.trim_end_matches('\0'));
        }
    }
    if let Some(Value::Byte(packet) | Value::Undefined(packet, _)) = field(XMP).map(|it| &it.value)
    {
        properties.add_xmp(packet);
    }
    if let Some(Value::Byte(block) | Value::Undefined(block, _)) = field(IPTC).map(|it| &it.value) {
        iptc::read(block, properties);
    }
    add_facts(found, properties);
}

fn add_facts(found: &Exif, properties: &mut Properties<'_>) {
    let field = |tag| found.get_field(tag, In::PRIMARY);
    let number = |tag| field(tag).and_then(|field: &Field| field.value.get_uint(0));
    let width = number(Tag::PixelXDimension).or_else(|| number(Tag::ImageWidth));
    let height = number(Tag::PixelYDimension).or_else(|| number(Tag::ImageLength));
    if let (Some(width), Some(height), None) = (width, height, properties.document.metadata.width) {
        properties.set_size(width, height);
    }
    let text = |tag| {
        let bytes = field(tag).and_then(text_bytes)?;
        clean_property(&String::from_utf8_lossy(bytes))
    };
    let (make, model) = (text(Tag::Make), text(Tag::Model));
    let camera = match (make, model) {
        (Some(make), Some(model)) if !model.starts_with(&make) => Some(format!("{make} {model}")),
        (make, model) => model.or(make),
    };
    let metadata = &mut properties.document.metadata;
    metadata.camera = metadata.camera.take().or(camera);
    let date = [Tag::DateTimeOriginal, Tag::DateTimeDigitized, Tag::DateTime]
        .into_iter()
        .find_map(|tag| parse_date(text_bytes(field(tag)?)?, field(Tag::OffsetTimeOriginal)));
    metadata.date_ms = metadata.date_ms.or(date);
}

/// Returns a date such as `2024:05:06 07:08:09`. Without an offset it is the local time of the
/// camera.
fn parse_date(bytes: &[u8], offset: Option<&Field>) -> Option<i64> {
    let mut parsed = exif::DateTime::from_ascii(bytes).ok()?;
    if let Some(offset) = offset.and_then(text_bytes) {
        // A damaged offset is ignored.
        let _ = parsed.parse_offset(offset);
    }
    let time = CalendarTime {
        year: parsed.year.into(),
        month: parsed.month.into(),
        day: parsed.day.into(),
        hour: parsed.hour.into(),
        minute: parsed.minute.into(),
        second: parsed.second.into(),
        offset_minutes: parsed.offset.map_or(0, i64::from),
    };
    time.is_valid().then(|| time.to_unix_ms())
}

fn text_bytes(field: &Field) -> Option<&[u8]> {
    match &field.value {
        Value::Ascii(parts) => parts.first().map(Vec::as_slice),
        // A comment begins with the name of its encoding.
        Value::Undefined(bytes, _) => match bytes.split_at_checked(8)? {
            (b"ASCII\0\0\0" | b"UNICODE\0" | b"\0\0\0\0\0\0\0\0", text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}
