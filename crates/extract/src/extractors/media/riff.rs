//! RIFF files of pictures and video: WebP and AVI. Sources: RFC 9649,
//! <https://learn.microsoft.com/en-us/windows/win32/directshow/avi-riff-file-reference>.

use std::io::{self, Seek};

use super::bounded::BoundedReader;
use super::exif;
use super::properties::{Properties, Property};

/// The maximum size of a metadata chunk.
const CHUNK_BYTES_MAX: u32 = 16 << 20;

/// Reads WebP.
pub(super) fn read_webp(
    reader: &mut BoundedReader<'_>,
    properties: &mut Properties<'_>,
) -> io::Result<()> {
    walk(reader, &mut |kind, content| match kind {
        b"VP8X" => {
            if let Some(([w1, w2, w3, h1, h2, h3], _)) =
                content.get(4..).and_then(<[u8]>::split_first_chunk::<6>)
            {
                let size = |a, b, c| u32::from_le_bytes([a, b, c, 0]) + 1;
                properties.set_size(size(*w1, *w2, *w3), size(*h1, *h2, *h3));
            }
        }
        b"EXIF" => {
            let block = content.strip_prefix(b"Exif\0\0").unwrap_or(&content);
            exif::read_block(block.to_vec(), properties);
        }
        b"XMP " => properties.add_xmp(&content),
        _ => {}
    })
}

/// Reads AVI.
pub(super) fn read_avi(
    reader: &mut BoundedReader<'_>,
    properties: &mut Properties<'_>,
) -> io::Result<()> {
    walk(reader, &mut |kind, content| match kind {
        b"avih" => {
            let field = |at: usize| {
                let bytes = content.get(at..)?.first_chunk::<4>()?;
                Some(u32::from_le_bytes(*bytes))
            };
            if let (Some(width), Some(height)) = (field(32), field(36)) {
                properties.set_size(width, height);
            }
            if let (Some(frame_us), Some(frames)) = (field(0), field(16)) {
                let duration_ms = u64::from(frame_us) * u64::from(frames) / 1000;
                properties.document.metadata.duration_ms = Some(duration_ms);
            }
        }
        b"INAM" => properties.add_bytes(Property::Title, &content),
        b"IART" => properties.add_bytes(Property::Author, &content),
        b"IPRD" => properties.add_bytes(Property::Album, &content),
        b"ISBJ" => properties.add_bytes(Property::Description, &content),
        b"IKEY" => properties.add_bytes(Property::Keywords, &content),
        b"ICMT" | b"ICOP" | b"IGNR" => properties.add_bytes(Property::Other, &content),
        _ => {}
    })
}

/// Calls `visit` with each small chunk that may have metadata. Lists are entered, except that of
/// the video frames.
fn walk(
    reader: &mut BoundedReader<'_>,
    visit: &mut dyn FnMut(&[u8; 4], Vec<u8>),
) -> io::Result<()> {
    reader.rewind()?;
    reader.skip(12)?;
    loop {
        let kind: [u8; 4] = reader.read_array()?;
        let length = u32::from_le_bytes(reader.read_array()?);
        let padded = u64::from(length) + u64::from(length % 2);
        if &kind == b"LIST" {
            let list: [u8; 4] = reader.read_array()?;
            if &list == b"movi" {
                reader.skip(padded.saturating_sub(4))?;
            }
        } else if is_property(&kind) && length <= CHUNK_BYTES_MAX {
            let content = reader.read_bytes(length as usize)?;
            reader.skip(u64::from(length % 2))?;
            visit(&kind, content);
        } else {
            reader.skip(padded)?;
        }
    }
}

fn is_property(kind: &[u8; 4]) -> bool {
    matches!(kind, b"VP8X" | b"EXIF" | b"XMP " | b"avih") || kind.starts_with(b"I")
}
