//! Pictures, sound and video: a document with the metadata of the file. Only the parts of the file
//! that contain metadata are read.
//!
//! A file without metadata becomes a document without text, so that it is found by its name.
//! Damaged metadata is ignored, because the picture or the sound may be intact.

mod bounded;
mod exif;
mod gif;
mod iptc;
mod jpeg;
mod matroska;
mod png;
mod properties;
mod riff;
mod tags;

use std::io;

use crate::error::ExtractError;
use crate::format::{Input, ReadSeek};
use crate::limits::Limits;
use crate::output::{DocumentKind, ExtractedDocument};
use bounded::BoundedReader;
use properties::Properties;

/// Returns `true` if a file is of chunks, the outermost one of this kind, with one of these
/// contents.
pub(crate) fn is_chunked(input: &Input<'_>, kind: &[u8], contents: &[&[u8]]) -> bool {
    let content = input.bytes.get(8..).unwrap_or_default();
    input.bytes.starts_with(kind) && contents.iter().any(|it| content.starts_with(it))
}

/// Returns `true` if a file begins with ID3 tags or with an MPEG audio frame: layer 2 or 3, or AAC.
pub(crate) fn is_mpeg_audio(input: &Input<'_>) -> bool {
    match input.bytes {
        [b'I', b'D', b'3', ..] => true,
        // AAC has the layer 0 and no bit rate.
        [0xff, 0xf0 | 0xf1 | 0xf8 | 0xf9, ..] => true,
        [0xff, head, rates, ..] => {
            let (version, layer) = (head >> 3 & 3, head >> 1 & 3);
            let (bit_rate, sample_rate) = (rates >> 4, rates >> 2 & 3);
            head >> 5 == 7
                && version != 1
                && matches!(layer, 1 | 2)
                && !matches!(bit_rate, 0 | 15)
                && sample_rate != 3
        }
        _ => false,
    }
}

/// Reads the properties of a file into [`Properties`].
type ReadProperties = fn(&mut BoundedReader<'_>, &mut Properties<'_>) -> io::Result<()>;

/// JPEG.
pub(crate) fn extract_jpeg(reader: &mut dyn ReadSeek, limits: &Limits) -> PropertiesResult {
    extract(reader, limits, DocumentKind::Image, jpeg::read)
}

/// PNG.
pub(crate) fn extract_png(reader: &mut dyn ReadSeek, limits: &Limits) -> PropertiesResult {
    extract(reader, limits, DocumentKind::Image, png::read)
}

/// GIF.
pub(crate) fn extract_gif(reader: &mut dyn ReadSeek, limits: &Limits) -> PropertiesResult {
    extract(reader, limits, DocumentKind::Image, gif::read)
}

/// WebP.
pub(crate) fn extract_webp(reader: &mut dyn ReadSeek, limits: &Limits) -> PropertiesResult {
    extract(reader, limits, DocumentKind::Image, riff::read_webp)
}

/// TIFF, HEIF and AVIF.
pub(crate) fn extract_exif(reader: &mut dyn ReadSeek, limits: &Limits) -> PropertiesResult {
    extract(reader, limits, DocumentKind::Image, exif::read_container)
}

/// AVI.
pub(crate) fn extract_avi(reader: &mut dyn ReadSeek, limits: &Limits) -> PropertiesResult {
    extract(reader, limits, DocumentKind::Video, riff::read_avi)
}

/// Sound in any format with tags.
pub(crate) fn extract_audio(reader: &mut dyn ReadSeek, limits: &Limits) -> PropertiesResult {
    extract(reader, limits, DocumentKind::Audio, tags::read)
}

/// MPEG-4 video.
pub(crate) fn extract_video(reader: &mut dyn ReadSeek, limits: &Limits) -> PropertiesResult {
    extract(reader, limits, DocumentKind::Video, tags::read)
}

/// Matroska and WebM.
pub(crate) fn extract_matroska(reader: &mut dyn ReadSeek, limits: &Limits) -> PropertiesResult {
    extract(reader, limits, DocumentKind::Video, matroska::read)
}

type PropertiesResult = Result<ExtractedDocument, ExtractError>;

fn extract(
    reader: &mut dyn ReadSeek,
    limits: &Limits,
    kind: DocumentKind,
    read: ReadProperties,
) -> PropertiesResult {
    let mut properties = Properties::new(kind, limits);
    // An error ends the reading of metadata, but is not an error of the document.
    let _ = read(&mut BoundedReader::new(reader, limits), &mut properties);
    limits.check_deadline()?;
    Ok(properties.finish())
}

#[cfg(test)]
mod tests;
