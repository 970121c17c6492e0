//! GIF: the size and the comments. Source: <https://www.w3.org/Graphics/GIF/spec-gif89a.txt>.

use std::io::{self, Seek};

use super::bounded::BoundedReader;
use super::properties::{Properties, Property};

pub(super) fn read(
    reader: &mut BoundedReader<'_>,
    properties: &mut Properties<'_>,
) -> io::Result<()> {
    reader.rewind()?;
    reader.skip(6)?;
    let [w1, w2, h1, h2, flags, _, _] = reader.read_array()?;
    let size = |low, high| u32::from(u16::from_le_bytes([low, high]));
    properties.set_size(size(w1, w2), size(h1, h2));
    reader.skip(color_table_bytes(flags))?;
    loop {
        let [kind] = reader.read_array()?;
        match kind {
            // An extension.
            0x21 => {
                let [label] = reader.read_array()?;
                let content = read_blocks(reader)?;
                if label == 0xfe {
                    properties.add_bytes(Property::Description, &content);
                }
            }
            // A picture.
            0x2c => {
                reader.skip(8)?;
                let [flags] = reader.read_array()?;
                reader.skip(color_table_bytes(flags) + 1)?;
                read_blocks(reader)?;
            }
            _ => return Ok(()),
        }
    }
}

fn color_table_bytes(flags: u8) -> u64 {
    if flags & 0x80 == 0 {
        0
    } else {
        3 << ((flags & 7) + 1)
    }
}

/// Reads blocks up to an empty one.
fn read_blocks(reader: &mut BoundedReader<'_>) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    loop {
        let [length] = reader.read_array()?;
        if length == 0 {
            return Ok(content);
        }
        content.extend(reader.read_bytes(length.into())?);
    }
}
