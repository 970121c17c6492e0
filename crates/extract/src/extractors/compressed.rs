//! Decompresses files that contain a single file: gzip (RFC 1952), bzip2, xz, lzma, lzip, Zstandard
//! (RFC 8878), LZ4 and compress. The content is extracted while it is decompressed, so a tar
//! archive is never in memory as a whole.

mod compress;
mod frames;

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::{LzipReader, LzmaReader, XzReader};
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder as ZstandardDecoder};

use crate::bounded_reader::{CountingReader, ExpansionReader, convert_read_error};
use crate::error::ExtractError;
use crate::format::extraction::{Extraction, Location};
use crate::format::{Input, take_prefix};
use compress::CompressReader;
use frames::{Frame, FrameReader};

/// Suffixes of compressed files, and the suffixes of their content.
const SUFFIXES: &[(&str, &str)] = &[
    (".gz", ""),
    (".tgz", ".tar"),
    (".svgz", ".svg"),
    (".bz2", ""),
    (".tbz", ".tar"),
    (".tbz2", ".tar"),
    (".xz", ""),
    (".txz", ".tar"),
    (".lzma", ""),
    (".tlz", ".tar"),
    (".lz", ""),
    (".zst", ""),
    (".tzst", ".tar"),
    (".lz4", ""),
    (".z", ""),
    (".taz", ".tar"),
];
const BUFFER_BYTES: usize = 64 << 10;
/// The maximal memory of a decompressor: twice what `xz -9` needs.
const MEMORY_KB_MAX: u32 = 128 << 10;

/// The input of a decompressor.
type Source<'r> = CountingReader<&'r mut dyn BufRead>;

pub(crate) fn extract_gzip(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extract_content("gzip", extraction, location, reader, |source| {
        Ok(Box::new(FrameReader::<_, GzipFrame<_>>::new(source)))
    })
}

pub(crate) fn extract_bzip2(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extract_content("bzip2", extraction, location, reader, |source| {
        Ok(Box::new(MultiBzDecoder::new(source)))
    })
}

pub(crate) fn extract_xz(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extract_content("xz file", extraction, location, reader, |source| {
        Ok(Box::new(XzReader::new_mem_limit(
            source,
            true,
            MEMORY_KB_MAX,
        )))
    })
}

pub(crate) fn extract_lzma(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extract_content("lzma file", extraction, location, reader, |source| {
        Ok(Box::new(LzmaReader::new_mem_limit(
            source,
            MEMORY_KB_MAX,
            None,
        )?))
    })
}

pub(crate) fn extract_lzip(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extract_content("lzip", extraction, location, reader, |source| {
        Ok(Box::new(LzipReader::new(source)))
    })
}

pub(crate) fn extract_zstandard(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extract_content("Zstandard", extraction, location, reader, |source| {
        Ok(open_zstandard(source))
    })
}

pub(crate) fn extract_lz4(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extract_content("LZ4", extraction, location, reader, |source| {
        Ok(Box::new(FrameDecoder::new(source)))
    })
}

pub(crate) fn extract_compress(
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &mut dyn BufRead,
) -> Result<(), ExtractError> {
    extract_content("compress", extraction, location, reader, |source| {
        Ok(Box::new(CompressReader::new(source)?))
    })
}

pub(super) fn open_xz<'r>(source: impl Read + 'r) -> Box<dyn Read + 'r> {
    Box::new(XzReader::new_mem_limit(source, true, MEMORY_KB_MAX))
}

pub(super) fn open_lzma<'r>(source: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let reader = LzmaReader::new_mem_limit(source, MEMORY_KB_MAX, None)?;
    Ok(Box::new(reader))
}

pub(super) fn open_zstandard<'r>(source: impl BufRead + 'r) -> Box<dyn Read + 'r> {
    Box::new(FrameReader::<_, ZstandardFrame<_>>::new(source))
}

fn extract_content<'r>(
    format: &'static str,
    extraction: &mut Extraction<'_>,
    location: &Location,
    reader: &'r mut dyn BufRead,
    open: impl FnOnce(Source<'r>) -> io::Result<Box<dyn Read + 'r>>,
) -> Result<(), ExtractError> {
    let compressed_bytes = Rc::new(Cell::new(0));
    let source = CountingReader::new(reader, Rc::clone(&compressed_bytes));
    let decompressor = open(source).map_err(|error| convert_read_error(format, error))?;
    let counter = extraction.usage.expansion_counter();
    let content = ExpansionReader::new(decompressor, compressed_bytes, counter, &extraction.limits);
    let mut content = BufReader::with_capacity(BUFFER_BYTES, content);
    let name = derive_content_name(&location.name);
    extraction.extract_reader(format, &location.for_content(&name), &mut content)
}

/// Returns the name of the content: `a.html` for `a.html.gz`, `a.tar` for `a.tgz`.
fn derive_content_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let row = SUFFIXES.iter().find(|(suffix, _)| lower.ends_with(suffix));
    let Some((suffix, content_suffix)) = row else {
        return name.to_string();
    };
    let stem = name.get(..name.len() - suffix.len()).unwrap_or(name);
    format!("{stem}{content_suffix}")
}

/// Detects lzma, which has no signature, by its header: the default properties, a dictionary size
/// that is a power of two or the sum of two, and a plausible content size.
pub(crate) fn is_lzma(input: &Input<'_>) -> bool {
    let Some((&[0x5d, d0, d1, d2, d3], rest)) = input.bytes.split_first_chunk::<5>() else {
        return false;
    };
    let dictionary = u32::from_le_bytes([d0, d1, d2, d3]);
    let is_size = dictionary >= 1 << 12 && dictionary.count_ones() <= 2;
    let size = rest
        .first_chunk::<8>()
        .map(|bytes| u64::from_le_bytes(*bytes));
    // The first byte of the content is always zero.
    let starts_with_zero = rest.get(8) == Some(&0);
    is_size && starts_with_zero && size.is_some_and(|size| size == u64::MAX || size < 1 << 40)
}

/// Returns `true` if the file is Zstandard with a skippable frame at its start. LZ4 uses the same
/// signature for such frames, so the frame after it is examined.
pub(crate) fn is_skippable_frame(input: &Input<'_>) -> bool {
    let Some((&[0x50..=0x5f, 0x2a, 0x4d, 0x18], rest)) = input.bytes.split_first_chunk::<4>()
    else {
        return false;
    };
    let length = rest
        .first_chunk::<4>()
        .map(|bytes| u32::from_le_bytes(*bytes) as usize);
    let next = length.and_then(|length| rest.get(length.checked_add(4)?..));
    next.is_none_or(|next| next.is_empty() || next.starts_with(b"\x28\xb5\x2f\xfd"))
}

/// A member of a gzip file.
struct GzipFrame<R>(GzDecoder<R>);

impl<R: BufRead> Frame<R> for GzipFrame<R> {
    fn start(source: R) -> io::Result<Option<Self>> {
        Ok(Some(GzipFrame(GzDecoder::new(source))))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }

    fn into_source(self) -> R {
        self.0.into_inner()
    }

    /// Other trailing bytes are ignored, as by gzip: zeros fill the last block of a tape.
    fn starts_with(next: &[u8]) -> bool {
        take_prefix(next, 2) == take_prefix(b"\x1f\x8b", next.len())
    }
}

/// A frame of a Zstandard file.
struct ZstandardFrame<R> {
    decoder: ZstandardDecoder,
    source: R,
}

impl<R: BufRead> Frame<R> for ZstandardFrame<R> {
    /// Skips skippable frames.
    fn start(mut source: R) -> io::Result<Option<Self>> {
        let mut decoder = ZstandardDecoder::new();
        decoder.set_max_window_size(u64::from(MEMORY_KB_MAX) << 10);
        loop {
            match decoder.init(&mut source) {
                Ok(()) => return Ok(Some(ZstandardFrame { decoder, source })),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut (&mut source).take(length.into()), &mut io::sink())?;
                    if source.fill_buf()?.is_empty() {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let decoder = &mut self.decoder;
        while decoder.can_collect() == 0 && !decoder.is_finished() {
            decoder
                .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(io::Error::other)?;
        }
        decoder.read(buffer)
    }

    fn into_source(self) -> R {
        self.source
    }

    fn starts_with(_: &[u8]) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
