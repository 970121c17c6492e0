//! OP_COMPRESSED: a message that contains another message in compressed form.
//!
//! ```text
//! 0        16                  20                24           25
//! | header | original op code | uncompressed size | compressor | compressed bytes
//! ```
//!
//! The compressed bytes are those after the original message's header. See
//! <https://github.com/mongodb/specifications/blob/master/source/compression/OP_COMPRESSED.md>.

use std::io::{Read, Write};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};
use ruzstd::decoding::FrameDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::error::WireError;
use crate::field_reader::FieldReader;
use crate::header::{HEADER_BYTES, Header, OpCode};
use crate::limits::MESSAGE_BYTES_MAX;

/// Bytes of OP_COMPRESSED before the compressed bytes.
const PREFIX_BYTES: usize = HEADER_BYTES + 9;

/// A compression algorithm. Drivers list theirs in `hello` and use those that the reply lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    /// No compression. Never negotiated; tests of drivers use it.
    Noop,
    /// Snappy in its raw format.
    Snappy,
    /// Zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Compressor {
    /// The compressors that can be negotiated, in MongoDB's order of preference.
    pub const ALL: [Compressor; 3] = [Compressor::Snappy, Compressor::Zstd, Compressor::Zlib];

    /// Returns the number of the compressor in OP_COMPRESSED.
    pub fn id(self) -> u8 {
        match self {
            Compressor::Noop => 0,
            Compressor::Snappy => 1,
            Compressor::Zlib => 2,
            Compressor::Zstd => 3,
        }
    }

    /// Returns the compressor with this number, if there is one.
    pub fn from_id(id: u8) -> Option<Compressor> {
        [Compressor::Noop]
            .into_iter()
            .chain(Compressor::ALL)
            .find(|it| it.id() == id)
    }

    /// Returns the name of the compressor in `hello`.
    pub fn name(self) -> &'static str {
        match self {
            Compressor::Noop => "noop",
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    /// Returns the negotiable compressor with this name, if there is one.
    pub fn from_name(name: &str) -> Option<Compressor> {
        Compressor::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Appends the compressed form of `bytes`.
    fn compress(self, bytes: &[u8], into: &mut Vec<u8>) -> Result<(), WireError> {
        match self {
            Compressor::Noop => into.extend_from_slice(bytes),
            Compressor::Snappy => {
                let compressed = snap::raw::Encoder::new().compress_vec(bytes);
                into.extend_from_slice(
                    &compressed.map_err(|error| compression_error(self, error))?,
                );
            }
            Compressor::Zlib => {
                let mut encoder = ZlibEncoder::new(into, Compression::default());
                encoder.write_all(bytes)?;
                encoder.finish()?;
            }
            Compressor::Zstd => {
                into.extend_from_slice(&compress_to_vec(bytes, CompressionLevel::Fastest));
            }
        }
        Ok(())
    }

    /// Decompresses `compressed` into `into`. Fails if the result is shorter or longer than `into`.
    fn decompress(self, compressed: &[u8], into: &mut [u8]) -> Result<(), WireError> {
        let length = match self {
            Compressor::Noop => copy(compressed, into),
            Compressor::Snappy => decompress_snappy(compressed, into)?,
            Compressor::Zlib => decompress_zlib(compressed, into)?,
            Compressor::Zstd => FrameDecoder::new()
                .decode_all(compressed, into)
                .map_err(|error| compression_error(self, error))?,
        };
        if length != into.len() {
            let what = format!("{} bytes were declared, but there are {length}", into.len());
            return Err(WireError::Compression { what });
        }
        Ok(())
    }
}

fn copy(compressed: &[u8], into: &mut [u8]) -> usize {
    if compressed.len() == into.len() {
        into.copy_from_slice(compressed);
    }
    compressed.len()
}

fn decompress_snappy(compressed: &[u8], into: &mut [u8]) -> Result<usize, WireError> {
    let to_error = |error| compression_error(Compressor::Snappy, error);
    let length = snap::raw::decompress_len(compressed).map_err(to_error)?;
    if length > into.len() {
        return Ok(length);
    }
    snap::raw::Decoder::new()
        .decompress(compressed, into)
        .map_err(to_error)
}

fn decompress_zlib(compressed: &[u8], into: &mut [u8]) -> Result<usize, WireError> {
    let to_error = |error| compression_error(Compressor::Zlib, error);
    let mut decoder = ZlibDecoder::new(compressed);
    decoder.read_exact(into).map_err(to_error)?;
    // Reading one more byte detects excess output. It also makes the decoder verify the checksum.
    let extra = decoder.read(&mut [0]).map_err(to_error)?;
    Ok(into.len() + extra)
}

fn compression_error(compressor: Compressor, error: impl std::fmt::Display) -> WireError {
    WireError::Compression {
        what: format!("{} failed: {error}", compressor.name()),
    }
}

/// Decompresses an OP_COMPRESSED message into `into`, as the original message with its header.
/// Returns the original header and the compressor. Fails if the content is invalid, is itself
/// compressed, or is larger than [`MESSAGE_BYTES_MAX`].
pub fn decompress_message(
    header: &Header,
    message: &[u8],
    into: &mut Vec<u8>,
) -> Result<(Header, Compressor), WireError> {
    let mut fields = FieldReader::new(message, HEADER_BYTES);
    let op_code = OpCode(fields.int32("the original operation")?);
    let declared = fields.int32("the decompressed length")?;
    let id = fields.byte("the compressor")?;
    let compressor = Compressor::from_id(id).ok_or_else(|| WireError::Compression {
        what: format!("unknown compressor {id}"),
    })?;
    if op_code == OpCode::COMPRESSED {
        return Err(WireError::Compression {
            what: "a compressed message in a compressed one".into(),
        });
    }
    let length = usize::try_from(declared)
        .unwrap_or(usize::MAX)
        .saturating_add(HEADER_BYTES);
    if length > MESSAGE_BYTES_MAX {
        let what = format!("{declared} bytes are declared, the limit is {MESSAGE_BYTES_MAX}");
        return Err(WireError::Compression { what });
    }
    let original = Header {
        length,
        op_code,
        ..*header
    };
    into.clear();
    into.extend_from_slice(&original.to_bytes());
    into.resize(length, 0);
    let content = into.get_mut(HEADER_BYTES..);
    let content = content.ok_or(WireError::Truncated { what: "a header" })?;
    compressor.decompress(fields.rest(), content)?;
    Ok((original, compressor))
}

/// Compresses a whole message (header first) into `into`.
pub fn compress_message(
    compressor: Compressor,
    message: &[u8],
    into: &mut Vec<u8>,
) -> Result<(), WireError> {
    let (header, content) = message
        .split_first_chunk()
        .ok_or(WireError::Truncated { what: "a header" })?;
    let header = Header::parse(header)?;
    into.clear();
    into.resize(HEADER_BYTES, 0);
    into.extend_from_slice(&header.op_code.0.to_le_bytes());
    into.extend_from_slice(&(content.len() as i32).to_le_bytes());
    into.push(compressor.id());
    debug_assert_eq!(into.len(), PREFIX_BYTES);
    compressor.compress(content, into)?;
    let compressed = Header {
        length: into.len(),
        op_code: OpCode::COMPRESSED,
        ..header
    };
    if let Some(header) = into.get_mut(..HEADER_BYTES) {
        header.copy_from_slice(&compressed.to_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL_COMPRESSORS: [Compressor; 4] = [
        Compressor::Noop,
        Compressor::Snappy,
        Compressor::Zlib,
        Compressor::Zstd,
    ];

    fn message(content: &[u8]) -> Vec<u8> {
        let length = HEADER_BYTES + content.len();
        let header = Header {
            length,
            request_id: 3,
            response_to: 4,
            op_code: OpCode::MSG,
        };
        [&header.to_bytes(), content].concat()
    }

    fn decompress(compressed: &[u8]) -> Result<(Vec<u8>, Compressor), WireError> {
        let header = Header::parse(compressed.first_chunk().unwrap())?;
        assert_eq!(header.length, compressed.len());
        let mut into = vec![9; 5];
        let (_, compressor) = decompress_message(&header, compressed, &mut into)?;
        Ok((into, compressor))
    }

    #[test]
    fn decompression_reverses_compression() {
        let words: Vec<u8> = (0..400_000u32)
            .flat_map(|n| (n % 1013).to_string().into_bytes())
            .collect();
        for compressor in ALL_COMPRESSORS {
            for content in [&b""[..], b"a", &words] {
                let message = message(content);
                let mut compressed = Vec::new();
                compress_message(compressor, &message, &mut compressed).unwrap();
                assert_eq!(decompress(&compressed).unwrap(), (message, compressor));
            }
        }
    }

    #[test]
    fn invalid_compressed_messages_are_refused() {
        for compressor in ALL_COMPRESSORS {
            let mut compressed = Vec::new();
            compress_message(compressor, &message(&[5; 1000]), &mut compressed).unwrap();
            let with = |change: &dyn Fn(&mut Vec<u8>)| {
                let mut changed = compressed.clone();
                change(&mut changed);
                let length = changed.len() as i32;
                changed[..4].copy_from_slice(&length.to_le_bytes());
                assert!(decompress(&changed).is_err(), "{compressor:?}");
            };
            with(&|bytes| bytes.truncate(bytes.len() - 1));
            with(&|bytes| bytes.truncate(22));
            with(&|bytes| bytes[20..24].copy_from_slice(&999i32.to_le_bytes()));
            with(&|bytes| bytes[20..24].copy_from_slice(&1001i32.to_le_bytes()));
            with(&|bytes| bytes[20..24].copy_from_slice(&(-1i32).to_le_bytes()));
            with(&|bytes| bytes[20..24].copy_from_slice(&48_000_000i32.to_le_bytes()));
            with(&|bytes| bytes[16..20].copy_from_slice(&2012i32.to_le_bytes()));
            with(&|bytes| bytes[24] = 17);
        }
    }
}
