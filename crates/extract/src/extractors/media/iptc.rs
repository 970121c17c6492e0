//! IPTC-IIM, the metadata of press agencies. Source:
//! <https://www.iptc.org/std/IIM/4.2/specification/IIMV4.2.pdf>.

use super::properties::{Properties, Property};

/// Photoshop stores them as a resource with this number.
const RESOURCE: [u8; 2] = [0x04, 0x04];

/// Reads the resources of Photoshop: `8BIM`, number, name, length, content.
pub(super) fn read_resources(mut block: &[u8], properties: &mut Properties<'_>) {
    while let Some(rest) = block.strip_prefix(b"8BIM") {
        let Some(([first, second, name_bytes], _)) = rest.split_first_chunk::<3>() else {
            return;
        };
        // The name has its length before it, and an even number of bytes together.
        let name_end = 2 + (usize::from(*name_bytes) + 2) / 2 * 2;
        let Some((length, content)) = rest
            .get(name_end..)
            .and_then(<[u8]>::split_first_chunk::<4>)
        else {
            return;
        };
        let length = u32::from_be_bytes(*length) as usize;
        let Some((content, rest)) = content.split_at_checked(length) else {
            return;
        };
        if [*first, *second] == RESOURCE {
            read(content, properties);
        }
        block = rest.get(length % 2..).unwrap_or_default();
    }
}

/// Reads data sets: a mark, record, number, length and value.
pub(super) fn read(mut block: &[u8], properties: &mut Properties<'_>) {
    while let Some(([0x1c, record, number, high, low], rest)) = block.split_first_chunk::<5>() {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let Some((value, rest)) = rest.split_at_checked(length) else {
            return;
        };
        let property = match (record, number) {
            (2, 5 | 105) => Some(Property::Title),
            (2, 25) => Some(Property::Keywords),
            (2, 80 | 122) => Some(Property::Author),
            (2, 120) => Some(Property::Description),
            (2, 90 | 92 | 95 | 101 | 103 | 110 | 115 | 116) => Some(Property::Other),
            _ => None,
        };
        if let Some(property) = property {
            properties.add_bytes(property, value);
        }
        block = rest;
    }
}
