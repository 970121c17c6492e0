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

use crate::bytes::Fields;
use crate::error::WireError;
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

    /// The number of the compressor in OP_COMPRESSED.
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
            .find(|one| one.id() == id)
    }

    /// The name of the compressor in `hello`.
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
        Compressor::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Appends the compressed form of `bytes`.
    fn pack(self, bytes: &[u8], into: &mut Vec<u8>) -> Result<(), WireError> {
        match self {
            Compressor::Noop => into.extend_from_slice(bytes),
            Compressor::Snappy => {
                let packed = snap::raw::Encoder::new().compress_vec(bytes);
                into.extend_from_slice(&packed.map_err(|error| failed(self, error))?);
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

    /// Decompresses `packed` into `into`. Fails if the result is shorter or longer than `into`.
    fn unpack(self, packed: &[u8], into: &mut [u8]) -> Result<(), WireError> {
        let length = match self {
            Compressor::Noop => copy(packed, into),
            Compressor::Snappy => unpack_snappy(packed, into)?,
            Compressor::Zlib => unpack_zlib(packed, into)?,
            Compressor::Zstd => FrameDecoder::new()
                .decode_all(packed, into)
                .map_err(|error| failed(self, error))?,
        };
        if length != into.len() {
            let what = format!("{} bytes were announced, {length} came", into.len());
            return Err(WireError::Compression { what });
        }
        Ok(())
    }
}

fn copy(packed: &[u8], into: &mut [u8]) -> usize {
    if packed.len() == into.len() {
        into.copy_from_slice(packed);
    }
    packed.len()
}

fn unpack_snappy(packed: &[u8], into: &mut [u8]) -> Result<usize, WireError> {
    let wrong = |error| failed(Compressor::Snappy, error);
    let length = snap::raw::decompress_len(packed).map_err(wrong)?;
    if length > into.len() {
        return Ok(length);
    }
    snap::raw::Decoder::new()
        .decompress(packed, into)
        .map_err(wrong)
}

fn unpack_zlib(packed: &[u8], into: &mut [u8]) -> Result<usize, WireError> {
    let wrong = |error| failed(Compressor::Zlib, error);
    let mut decoder = ZlibDecoder::new(packed);
    decoder.read_exact(into).map_err(wrong)?;
    // Reading one more byte detects excess output. It also makes the decoder verify the checksum.
    let extra = decoder.read(&mut [0]).map_err(wrong)?;
    Ok(into.len() + extra)
}

fn failed(compressor: Compressor, error: impl std::fmt::Display) -> WireError {
    WireError::Compression {
        what: format!("{} failed: {error}", compressor.name()),
    }
}

/// Decompresses an OP_COMPRESSED message into `into`, as the original message with its header.
/// Returns the original header and the compressor. Fails if the content is invalid, is itself
/// compressed, or is larger than [`MESSAGE_BYTES_MAX`].
pub fn unpack_message(
    header: &Header,
    message: &[u8],
    into: &mut Vec<u8>,
) -> Result<(Header, Compressor), WireError> {
    let mut fields = Fields::new(message, HEADER_BYTES);
    let op_code = OpCode(fields.int32("the original operation")?);
    let stated = fields.int32("the unpacked length")?;
    let id = fields.byte("the compressor")?;
    let compressor = Compressor::from_id(id).ok_or_else(|| WireError::Compression {
        what: format!("unknown compressor {id}"),
    })?;
    if op_code == OpCode::COMPRESSED {
        return Err(WireError::Compression {
            what: "a packed message in a packed one".into(),
        });
    }
    let length = usize::try_from(stated)
        .unwrap_or(usize::MAX)
        .saturating_add(HEADER_BYTES);
    if length > MESSAGE_BYTES_MAX {
        let what = format!("{stated} bytes are announced, {MESSAGE_BYTES_MAX} are the limit");
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
    compressor.unpack(
        fields.rest(),
        into.get_mut(HEADER_BYTES..).unwrap_or_default(),
    )?;
    Ok((original, compressor))
}

/// Compresses a whole message (header first) into `into`.
pub fn pack_message(
    compressor: Compressor,
    message: &[u8],
    into: &mut Vec<u8>,
) -> Result<(), WireError> {
    let header = message
        .first_chunk()
        .ok_or(WireError::Truncated { what: "a header" })?;
    let header = Header::parse(header)?;
    let content = message.get(HEADER_BYTES..).unwrap_or_default();
    into.clear();
    into.resize(HEADER_BYTES, 0);
    into.extend_from_slice(&header.op_code.0.to_le_bytes());
    into.extend_from_slice(&(content.len() as i32).to_le_bytes());
    into.push(compressor.id());
    debug_assert_eq!(into.len(), PREFIX_BYTES);
    compressor.pack(content, into)?;
    let packed = Header {
        length: into.len(),
        op_code: OpCode::COMPRESSED,
        ..header
    };
    if let Some(place) = into.get_mut(..HEADER_BYTES) {
        place.copy_from_slice(&packed.to_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: [Compressor; 4] = [
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

    fn unpack(packed: &[u8]) -> Result<(Vec<u8>, Compressor), WireError> {
        let header = Header::parse(packed.first_chunk().unwrap())?;
        assert_eq!(header.length, packed.len());
        let mut into = vec![9; 5];
        let (_, compressor) = unpack_message(&header, packed, &mut into)?;
        Ok((into, compressor))
    }

    #[test]
    fn what_is_packed_unpacks() {
        let words: Vec<u8> = (0..400_000u32)
            .flat_map(|n| (n % 1013).to_string().into_bytes())
            .collect();
        for compressor in EVERY {
            for content in [&b""[..], b"a", &words] {
                let message = message(content);
                let mut packed = Vec::new();
                pack_message(compressor, &message, &mut packed).unwrap();
                assert_eq!(unpack(&packed).unwrap(), (message, compressor));
            }
        }
    }

    #[test]
    fn what_is_not_right_is_refused() {
        for compressor in EVERY {
            let mut packed = Vec::new();
            pack_message(compressor, &message(&[5; 1000]), &mut packed).unwrap();
            let with = |change: &dyn Fn(&mut Vec<u8>)| {
                let mut changed = packed.clone();
                change(&mut changed);
                let length = changed.len() as i32;
                changed[..4].copy_from_slice(&length.to_le_bytes());
                assert!(unpack(&changed).is_err(), "{compressor:?}");
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
