//! PNG: the chunks with text. Source: <https://www.w3.org/TR/png-3/>.

use std::io::{self, Read, Seek};

use flate2::bufread::ZlibDecoder;

use super::bounded::BoundedReader;
use super::exif;
use super::properties::{Properties, Property};

/// The maximum size of a text chunk.
const CHUNK_BYTES_MAX: u32 = 16 << 20;
const TEXT_BYTES_MAX: u64 = 4 << 20;

pub(super) fn read(
    reader: &mut BoundedReader<'_>,
    properties: &mut Properties<'_>,
) -> io::Result<()> {
    reader.rewind()?;
    reader.skip(8)?;
    loop {
        let length = u32::from_be_bytes(reader.read_array()?);
        let kind: [u8; 4] = reader.read_array()?;
        let is_text = matches!(&kind, b"IHDR" | b"tEXt" | b"zTXt" | b"iTXt" | b"eXIf");
        if is_text && length <= CHUNK_BYTES_MAX {
            let content = reader.read_bytes(length as usize)?;
            read_chunk(&kind, content, properties);
            reader.skip(4)?;
        } else if &kind == b"IEND" {
            return Ok(());
        } else {
            reader.skip(u64::from(length) + 4)?;
        }
    }
}

fn read_chunk(kind: &[u8; 4], content: Vec<u8>, properties: &mut Properties<'_>) {
    match kind {
        b"IHDR" => {
            if let Some(([a, b, c, d, e, f, g, h], _)) = content.split_first_chunk::<8>() {
                let (width, height) = ([*a, *b, *c, *d], [*e, *f, *g, *h]);
                properties.set_size(u32::from_be_bytes(width), u32::from_be_bytes(height));
            }
        }
        b"eXIf" => exif::read_block(content, properties),
        _ => {
            if let Some((key, text)) = decode_text(kind, &content) {
                add_text(&key, &text, properties);
            }
        }
    }
}

/// Returns the keyword and the text of a chunk.
fn decode_text(kind: &[u8; 4], content: &[u8]) -> Option<(String, Vec<u8>)> {
    let (key, rest) = split_at_zero(content)?;
    let text = match kind {
        b"tEXt" => rest.to_vec(),
        b"zTXt" => inflate(rest.get(1..)?)?,
        // Compression flag and method, language, translated keyword, text.
        _ => {
            let is_compressed = rest.first() == Some(&1);
            let (_, rest) = split_at_zero(rest.get(2..)?)?;
            let (_, text) = split_at_zero(rest)?;
            if is_compressed {
                inflate(text)?
            } else {
                text.to_vec()
            }
        }
    };
    Some((String::from_utf8_lossy(key).into_owned(), text))
}

fn split_at_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(0, bytes)?;
    Some((bytes.get(..at)?, bytes.get(at + 1..)?))
}

fn inflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    ZlibDecoder::new(bytes)
        .take(TEXT_BYTES_MAX)
        .read_to_end(&mut text)
        .ok()?;
    Some(text)
}

fn add_text(key: &str, text: &[u8], properties: &mut Properties<'_>) {
    let property = match key {
        "XML:com.adobe.xmp" => return properties.add_xmp(text),
        "Title" => Property::Title,
        "Author" | "Artist" => Property::Author,
        "Description" => Property::Description,
        "Keywords" => Property::Keywords,
        "Comment" | "Copyright" | "Source" | "Disclaimer" | "Warning" | "parameters" => {
            Property::Other
        }
        // Dates, names of programs and profiles.
        _ => return,
    };
    properties.add_bytes(property, text);
}
