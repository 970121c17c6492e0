//! Matroska and WebM. Sources: RFC 8794 (EBML), RFC 9559.

use std::io::{self, Seek};

use super::bounded::BoundedReader;
use super::properties::{Properties, Property};

/// Elements that contain others.
const CONTAINERS: [u32; 12] = [
    0x1853_8067, // segment
    0x1549_a966, // information
    0x1654_ae6b, // tracks
    0xae,        // track
    0xe0,        // video
    0x1254_c367, // tags
    0x7373,      // tag
    0x67c8,      // simple tag
    0x1043_a770, // chapters
    0x45b9,      // edition
    0xb6,        // chapter
    0x80,        // display of a chapter
];
const HEADER: u32 = 0x1a45_dfa3;
/// The maximum length of a text.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// The maximum number of elements. A file of an hour has a few thousand.
const ELEMENTS_MAX: u32 = 200_000;
/// Milliseconds from 1970-01-01 to 2001-01-01, the epoch of dates.
const EPOCH_MS: i64 = 978_307_200_000;

pub(super) fn read(
    reader: &mut BoundedReader<'_>,
    properties: &mut Properties<'_>,
) -> io::Result<()> {
    reader.rewind()?;
    let mut state = State::default();
    for _ in 0..ELEMENTS_MAX {
        let id = read_id(reader)?;
        let size = read_size(reader)?;
        if CONTAINERS.contains(&id) {
            continue;
        }
        let Some(size) = size else {
            // A segment of unknown length that is not a container: a live stream.
            return Ok(());
        };
        if is_read(id) && size <= TEXT_BYTES_MAX {
            let content = reader.read_bytes(usize::try_from(size).unwrap_or(0))?;
            state.add(id, &content, properties);
        } else {
            reader.skip(size)?;
        }
    }
    Ok(())
}

fn is_read(id: u32) -> bool {
    id != HEADER
        && matches!(
            id,
            0x7ba9 | 0x4489 | 0x2a_d7b1 | 0x4461 | 0xb0 | 0xba | 0x45a3 | 0x4487 | 0x85 | 0x536e
        )
}

#[derive(Default)]
struct State {
    tag_name: String,
    duration: Option<f64>,
    /// The number of nanoseconds of a time unit.
    scale: Option<u64>,
    width: u32,
}

impl State {
    fn add(&mut self, id: u32, content: &[u8], properties: &mut Properties<'_>) {
        let number = content
            .iter()
            .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        match id {
            0x7ba9 => properties.add_bytes(Property::Title, content),
            0x2a_d7b1 => self.scale = Some(number),
            0x4489 => self.duration = parse_float(content),
            0x4461 => {
                let ns = number.cast_signed();
                properties.document.metadata.date_ms = Some(EPOCH_MS + ns / 1_000_000);
            }
            0xb0 => self.width = u32::try_from(number).unwrap_or(0),
            0xba => properties.set_size(self.width, u32::try_from(number).unwrap_or(0)),
            0x45a3 => self.tag_name = String::from_utf8_lossy(content).to_ascii_uppercase(),
            0x4487 => {
                if let Some(property) = find_property(&self.tag_name) {
                    properties.add_bytes(property, content);
                }
            }
            // The names of chapters and tracks.
            _ => properties.add_bytes(Property::Other, content),
        }
        if let Some(duration) = self.duration {
            let scale = self.scale.unwrap_or(1_000_000);
            let ms = duration * scale as f64 / 1e6;
            properties.document.metadata.duration_ms = Some(ms as u64);
        }
    }
}

fn find_property(tag: &str) -> Option<Property> {
    Some(match tag {
        "TITLE" => Property::Title,
        "ARTIST" | "DIRECTOR" | "AUTHOR" | "WRITTEN_BY" | "LEAD_PERFORMER" | "COMPOSER" => {
            Property::Author
        }
        "ALBUM" => Property::Album,
        "DESCRIPTION" | "SUMMARY" | "SYNOPSIS" | "COMMENT" => Property::Description,
        "KEYWORDS" | "GENRE" | "SUBJECT" => Property::Keywords,
        "ACTOR" | "PRODUCER" | "LYRICS" | "COPYRIGHT" | "SUBTITLE" | "PUBLISHER" => Property::Other,
        // Programs, statistics and numbers.
        _ => return None,
    })
}

fn parse_float(content: &[u8]) -> Option<f64> {
    let value = match content.len() {
        4 => f64::from(f32::from_be_bytes(*content.first_chunk()?)),
        8 => f64::from_be_bytes(*content.first_chunk()?),
        _ => return None,
    };
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// Reads an id, whose length depends on its first byte.
fn read_id(reader: &mut BoundedReader<'_>) -> io::Result<u32> {
    let [first] = reader.read_array()?;
    let length = first.leading_zeros();
    if length > 3 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut id = u32::from(first);
    for _ in 0..length {
        let [byte] = reader.read_array()?;
        id = id << 8 | u32::from(byte);
    }
    Ok(id)
}

/// Reads a size. If all bits are set, the size is unknown.
fn read_size(reader: &mut BoundedReader<'_>) -> io::Result<Option<u64>> {
    let [first] = reader.read_array()?;
    let length = first.leading_zeros();
    if length > 7 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut size = u64::from(first) & (0x7f >> length);
    for _ in 0..length {
        let [byte] = reader.read_array()?;
        size = size << 8 | u64::from(byte);
    }
    let unknown = (1u64 << (7 * (length + 1))) - 1;
    Ok((size != unknown).then_some(size))
}
