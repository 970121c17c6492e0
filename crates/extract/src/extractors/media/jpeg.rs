//! JPEG: the segments before the picture. Source: ITU-T T.81, annex B.

use std::io::{self, Seek};

use super::bounded::BoundedReader;
use super::properties::{Properties, Property};
use super::{exif, iptc};

pub(super) fn read(
    reader: &mut BoundedReader<'_>,
    properties: &mut Properties<'_>,
) -> io::Result<()> {
    reader.rewind()?;
    reader.skip(2)?;
    loop {
        let [mark, kind] = reader.read_array()?;
        if mark != 0xff {
            return Ok(());
        }
        match kind {
            // Padding, and markers without content.
            0xff => {
                reader.seek(io::SeekFrom::Current(-1))?;
                continue;
            }
            0x01 | 0xd0..=0xd8 => continue,
            // The picture, and the end.
            0xda | 0xd9 => return Ok(()),
            _ => {}
        }
        let length = usize::from(u16::from_be_bytes(reader.read_array()?));
        let length = length.saturating_sub(2);
        match kind {
            0xe1 | 0xed | 0xfe | 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let content = reader.read_bytes(length)?;
                read_segment(kind, &content, properties);
            }
            _ => reader.skip(length as u64)?,
        }
    }
}

fn read_segment(kind: u8, content: &[u8], properties: &mut Properties<'_>) {
    match kind {
        0xe1 => {
            if let Some(block) = content.strip_prefix(b"Exif\0\0") {
                exif::read_block(block.to_vec(), properties);
            } else if let Some(packet) = content.strip_prefix(b"http://ns.adobe.com/xap/1.0/\0") {
                properties.add_xmp(packet);
            }
        }
        0xed => {
            if let Some(block) = content.strip_prefix(b"Photoshop 3.0\0") {
                iptc::read_resources(block, properties);
            }
        }
        0xfe => properties.add_bytes(Property::Other, content),
        // The header of the frame: precision, height, width.
        _ => {
            if let Some((_, [h1, h2, w1, w2, ..])) = content.split_first() {
                let size = |high, low| u32::from(u16::from_be_bytes([high, low]));
                properties.set_size(size(*w1, *w2), size(*h1, *h2));
            }
        }
    }
}
