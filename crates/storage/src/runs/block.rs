//! Blocks: encoding with compression and checksum, and reading. The layout is drawn in
//! docs/format.md.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use windrow_invariant::Bug;
use zstd::zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd::zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

use super::RunId;
use crate::checksum::{checksum, seed_from};
use crate::compression_trial::CompressionTrial;
use crate::disk::DiskFile;
use crate::encryption::{Cipher, TAG_BYTES, numbered_nonce};
use crate::error::StorageError;
use crate::fields::{put, u32_at, u64_at};

/// The largest block before compression, in bytes. All versions of a document that open snapshots
/// can read are in one block, and each may have 16 MB.
pub(crate) const RAW_BYTES_MAX: usize = 1 << 30;
pub(crate) const HEADER_BYTES: usize = 16;

/// The place of a block. It is stored in catalog rows and in other blocks, in the form of
/// [`BlockAddress::to_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockAddress {
    /// The run that has the block.
    pub run: RunId,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// The length in the file with the block's header, in bytes.
    pub length_stored: u32,
}

impl BlockAddress {
    /// The length of an encoded address, in bytes.
    pub const ENCODED_BYTES: usize = 20;

    /// Returns run (8 bytes), offset (8) and length (4), little-endian.
    pub fn to_bytes(self) -> [u8; Self::ENCODED_BYTES] {
        let mut bytes = [0; Self::ENCODED_BYTES];
        put(&mut bytes, 0, &self.run.0.to_le_bytes());
        put(&mut bytes, 8, &self.offset.to_le_bytes());
        put(&mut bytes, 16, &self.length_stored.to_le_bytes());
        bytes
    }

    /// Reads an address. Returns `None` if there are fewer than [`BlockAddress::ENCODED_BYTES`]
    /// bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            run: RunId(u64_at(bytes, 0)?),
            offset: u64_at(bytes, 8)?,
            length_stored: u32_at(bytes, 16)?,
        })
    }
}

/// The compression of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// The block is stored raw.
    None,
    /// LZ4, for blocks that are read often.
    #[default]
    Lz4,
    /// Zstandard, for blocks that are rarely read: about a third smaller than LZ4, and slower.
    Zstd,
}

const STORED_RAW: u8 = 0;
const STORED_LZ4: u8 = 1;
const STORED_ZSTD: u8 = 2;
const ZSTD_LEVEL: i32 = 3;

/// The contexts of Zstandard. They have a megabyte of tables, so each thread keeps one pair and
/// uses it for all of its blocks.
struct Zstd {
    compressor: CCtx<'static>,
    decompressor: zstd::bulk::Decompressor<'static>,
}

thread_local! {
    /// `None` if the memory could not be allocated. Blocks are then stored raw, and Zstandard
    /// blocks cannot be read.
    static ZSTD: RefCell<Option<Zstd>> = RefCell::new(
        CCtx::try_create().and_then(|mut compressor| {
            compressor.set_parameter(CParameter::CompressionLevel(ZSTD_LEVEL)).ok()?;
            let decompressor = zstd::bulk::Decompressor::new().ok()?;
            Some(Zstd { compressor, decompressor })
        }),
    );
}

/// A compressed block with its checksum, ready for [`RunWriter::append`](crate::RunWriter::append).
#[derive(Clone)]
pub struct EncodedBlock {
    /// Header and stored bytes. The header has no checksum yet: it depends on the offset in the
    /// file.
    bytes: Vec<u8>,
    checksum: u64,
    raw_bytes: u32,
}

impl EncodedBlock {
    /// Returns the length in a file that is not encrypted, with the header, in bytes. Encryption
    /// adds 16 bytes.
    pub fn length_stored(&self) -> u32 {
        self.bytes.len() as u32
    }

    fn is_compressed(&self) -> bool {
        self.bytes.get(12) != Some(&STORED_RAW)
    }

    /// Returns the length before compression, in bytes.
    pub fn length_raw(&self) -> u32 {
        self.raw_bytes
    }

    /// Appends the bytes of the block to `target`, encrypted if there is a cipher, with the
    /// checksum for `offset` in `run`. Returns their number. A run has a cipher of its own, so the
    /// offset is a nonce.
    pub(crate) fn put(
        &self,
        run: RunId,
        offset: u64,
        cipher: Option<&Cipher>,
        target: &mut Vec<u8>,
    ) -> Result<u32, Bug> {
        let start = target.len();
        target.extend_from_slice(&[0; 8]);
        target.extend_from_slice(self.bytes.split_at(8).1);
        let checksum = match cipher {
            None => self.checksum,
            Some(cipher) => {
                let (header, stored) = target.split_at_mut(start + HEADER_BYTES);
                let tag = cipher.encrypt(numbered_nonce(offset), context(header), stored);
                let tag = tag.ok_or_else(|| Bug::new("a block is too long to be encrypted"))?;
                target.extend_from_slice(&tag);
                checksum(0, target.split_at(start + 8).1)
            }
        };
        let placed = checksum ^ seed_from(run.0, offset);
        put(target, start, &placed.to_le_bytes());
        Ok((target.len() - start) as u32)
    }
}

/// Returns the part of a header that is bound to an encrypted block: all but the checksum, which is
/// that of the encrypted bytes.
fn context(header: &[u8]) -> &[u8] {
    let start = header.len().saturating_sub(HEADER_BYTES - 8);
    header.get(start..).unwrap_or_default()
}

impl fmt::Debug for EncodedBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "EncodedBlock({} of {} bytes)",
            self.bytes.len(),
            self.raw_bytes
        )
    }
}

/// Compresses a block of at most 1 GB and computes its checksum. This needs no writer, so several
/// threads can encode blocks for one run. The block is stored raw if LZ4 saves less than an eighth
/// of it, or Zstandard less than a thirty-second.
///
/// # Panics
/// Panics if `raw` is longer than 1 GB.
///
/// ```
/// use windrow_storage::{Compression, encode_block};
///
/// let block = encode_block(&[7; 4096], Compression::Lz4);
/// assert_eq!(block.length_raw(), 4096);
/// assert!(block.length_stored() < 100);
/// ```
pub fn encode_block(raw: &[u8], compression: Compression) -> EncodedBlock {
    let stored = |bytes: &mut Vec<u8>| match compression {
        Compression::None => None,
        Compression::Lz4 => with_lz4(raw, bytes),
        Compression::Zstd => with_zstd(&[raw], bytes),
    };
    encode(&[raw], stored)
}

/// Encodes the concatenation of `parts` as one block with Zstandard. Each part gets entropy tables
/// of its own, which makes the block smaller if the parts differ from each other. [`encode_block`]
/// describes the result.
///
/// # Panics
/// Panics if the parts together are longer than 1 GB.
pub fn encode_parts<P: AsRef<[u8]>>(parts: &[P]) -> EncodedBlock {
    let parts: Vec<&[u8]> = parts.iter().map(AsRef::as_ref).collect();
    encode(&parts, |bytes| with_zstd(&parts, bytes))
}

/// Encodes a block. `store` appends the compressed bytes and returns the code of the compression,
/// or `None` if the block is to be stored raw.
fn encode(parts: &[&[u8]], store: impl FnOnce(&mut Vec<u8>) -> Option<u8>) -> EncodedBlock {
    let raw_bytes: usize = parts.iter().map(|part| part.len()).sum();
    assert!(
        raw_bytes <= RAW_BYTES_MAX,
        "a block of {raw_bytes} bytes is too long"
    );
    let mut bytes = vec![0; HEADER_BYTES];
    let how = store(&mut bytes).unwrap_or_else(|| {
        bytes.truncate(HEADER_BYTES);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        STORED_RAW
    });
    put(&mut bytes, 8, &(raw_bytes as u32).to_le_bytes());
    put(&mut bytes, 12, &[how, 0, 0, 0]);
    let checksum = checksum(0, bytes.split_at(8).1);
    EncodedBlock {
        bytes,
        checksum,
        raw_bytes: raw_bytes as u32,
    }
}

/// Returns `true` if compression saves at least the fraction 1/`part` of the raw length.
fn pays(stored_bytes: usize, raw_bytes: usize, part: usize) -> bool {
    stored_bytes <= raw_bytes - raw_bytes / part
}

/// LZ4 must save an eighth: these blocks are read often, and each read decompresses them.
const LZ4_PART: usize = 8;
/// Zstandard must save a thirty-second: these blocks are rarely read, and size matters most.
const ZSTD_PART: usize = 32;

fn with_lz4(raw: &[u8], bytes: &mut Vec<u8>) -> Option<u8> {
    bytes.resize(
        HEADER_BYTES + lz4_flex::block::get_maximum_output_size(raw.len()),
        0,
    );
    let stored_bytes = lz4_flex::block::compress_into(raw, bytes.get_mut(HEADER_BYTES..)?).ok()?;
    bytes.truncate(HEADER_BYTES + stored_bytes);
    pays(stored_bytes, raw.len(), LZ4_PART).then_some(STORED_LZ4)
}

fn with_zstd(parts: &[&[u8]], bytes: &mut Vec<u8>) -> Option<u8> {
    let raw_bytes: usize = parts.iter().map(|part| part.len()).sum();
    let bound = zstd::zstd_safe::compress_bound(raw_bytes) + PART_BYTES * parts.len();
    bytes.resize(HEADER_BYTES + bound, 0);
    let target = bytes.get_mut(HEADER_BYTES..)?;
    let stored_bytes = ZSTD.with_borrow_mut(|zstd| {
        let compressor = &mut zstd.as_mut()?.compressor;
        compressor.reset(ResetDirective::SessionOnly).ok()?;
        compressor
            .set_pledged_src_size(Some(raw_bytes as u64))
            .ok()?;
        let mut output = OutBuffer::around(target);
        for (number, part) in parts.iter().enumerate() {
            // A flush ends a block of the frame. The next part then gets tables of its own.
            let end = if number + 1 < parts.len() {
                ZSTD_EndDirective::ZSTD_e_flush
            } else {
                ZSTD_EndDirective::ZSTD_e_end
            };
            let mut input = InBuffer::around(part);
            let left = compressor.compress_stream2(&mut output, &mut input, end);
            (left.ok()? == 0).then_some(())?;
        }
        Some(output.pos())
    })?;
    bytes.truncate(HEADER_BYTES + stored_bytes);
    pays(stored_bytes, raw_bytes, ZSTD_PART).then_some(STORED_ZSTD)
}

/// The most bytes that a flush after a part adds to the frame.
const PART_BYTES: usize = 64;

/// Encodes a sequence of similar blocks. After blocks that did not compress, it stores some blocks
/// raw without an attempt.
///
/// ```
/// use windrow_storage::{BlockEncoder, Compression};
///
/// let mut encoder = BlockEncoder::new(Compression::Lz4);
/// assert!(encoder.encode(&[7; 4096]).length_stored() < 100);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BlockEncoder {
    compression: Compression,
    trial: CompressionTrial,
}

impl BlockEncoder {
    /// Returns an encoder that tries `compression`.
    pub fn new(compression: Compression) -> Self {
        Self {
            compression,
            trial: CompressionTrial::default(),
        }
    }

    /// Encodes a block as [`encode_block`] does, or stores it raw.
    ///
    /// # Panics
    /// Panics if `raw` is longer than 1 GB.
    pub fn encode(&mut self, raw: &[u8]) -> EncodedBlock {
        if !self.trial.is_due() {
            return encode_block(raw, Compression::None);
        }
        let encoded = encode_block(raw, self.compression);
        self.trial.record_result(encoded.is_compressed());
        encoded
    }
}

/// The bytes of a decompressed block. Clones share them.
#[derive(Clone)]
pub struct Block(Arc<[u8]>);

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes)", self.0.len())
    }
}

impl From<Vec<u8>> for Block {
    fn from(bytes: Vec<u8>) -> Block {
        Block(bytes.into())
    }
}

/// The file of a run.
pub(crate) struct StoredRun<'a> {
    pub file: &'a dyn DiskFile,
    /// The length of the file, in bytes.
    pub bytes: u64,
    /// The key of an encrypted run.
    pub cipher: Option<&'a Cipher>,
}

/// Reads, verifies, decrypts and decompresses a block. `place` returns the name of the file for
/// errors.
pub(crate) fn read(
    run: &StoredRun<'_>,
    address: BlockAddress,
    place: impl Fn() -> String,
) -> Result<Block, StorageError> {
    let here = || format!("{}, block at byte {}", place(), address.offset);
    let end = address
        .offset
        .saturating_add(u64::from(address.length_stored));
    if end > run.bytes || (address.length_stored as usize) < HEADER_BYTES {
        let what = format!("it should have {} bytes there", address.length_stored);
        return Err(StorageError::damaged(here(), what));
    }
    let mut bytes = vec![0; address.length_stored as usize];
    let count = run
        .file
        .read_at(address.offset, &mut bytes)
        .map_err(|error| StorageError::from_io(here(), error))?;
    bytes.truncate(count);
    decode(&mut bytes, address, run.cipher).map_err(|what| StorageError::damaged(here(), what))
}

/// Decrypts the stored bytes of a block in place, and returns them.
fn decrypt<'b>(
    bytes: &'b mut [u8],
    offset: u64,
    cipher: &Cipher,
) -> Result<&'b [u8], &'static str> {
    let short = "the block is shorter than an encrypted one can be";
    let (header, rest) = bytes.split_at_mut_checked(HEADER_BYTES).ok_or(short)?;
    let (stored, tag) = rest.split_last_chunk_mut::<TAG_BYTES>().ok_or(short)?;
    cipher
        .decrypt(numbered_nonce(offset), context(header), stored, *tag)
        .ok_or("it cannot be decrypted")?;
    Ok(stored)
}

fn decode(
    bytes: &mut [u8],
    address: BlockAddress,
    cipher: Option<&Cipher>,
) -> Result<Block, &'static str> {
    let short = "the file ends within the block";
    let covered = bytes.get(8..).ok_or(short)?;
    let placed = u64_at(bytes, 0).ok_or(short)?;
    if placed ^ seed_from(address.run.0, address.offset) != checksum(0, covered) {
        return Err("its checksum does not match");
    }
    let raw_bytes = u32_at(bytes, 8).ok_or(short)? as usize;
    if raw_bytes > RAW_BYTES_MAX {
        return Err("it claims to be longer than a block can be");
    }
    let how = bytes.get(12).copied();
    let stored = match cipher {
        None => bytes.get(HEADER_BYTES..).ok_or(short)?,
        Some(cipher) => decrypt(bytes, address.offset, cipher)?,
    };
    match how {
        Some(STORED_RAW) if stored.len() == raw_bytes => Ok(Block(stored.into())),
        Some(STORED_LZ4) => decompress(raw_bytes, |target| {
            lz4_flex::block::decompress_into(stored, target).ok()
        }),
        Some(STORED_ZSTD) => decompress(raw_bytes, |target| {
            ZSTD.with_borrow_mut(|zstd| {
                let zstd = zstd.as_mut()?;
                zstd.decompressor.decompress_to_buffer(stored, target).ok()
            })
        }),
        _ => Err("it is stored in a way that this version does not know"),
    }
}

/// Decompresses into the shared allocation of a [`Block`], which saves a copy.
fn decompress(
    raw_bytes: usize,
    into: impl FnOnce(&mut [u8]) -> Option<usize>,
) -> Result<Block, &'static str> {
    let mut block: Arc<[u8]> = std::iter::repeat_n(0, raw_bytes).collect();
    // The allocation is not shared yet, so `make_mut` does not clone.
    if into(Arc::make_mut(&mut block)) != Some(raw_bytes) {
        return Err("it does not decompress");
    }
    Ok(Block(block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression_trial::SKIPPED_MAX;

    fn check(raw: &[u8], compression: Compression, expected: u8) {
        let encoded = encode_block(raw, compression);
        assert_eq!(
            encoded.bytes[12],
            expected,
            "{compression:?} of {} bytes",
            raw.len()
        );
        let length_stored = encoded.length_stored();
        let address = BlockAddress {
            run: RunId(3),
            offset: 32,
            length_stored,
        };
        let mut bytes = Vec::new();
        let length = encoded.put(address.run, address.offset, None, &mut bytes);
        assert_eq!(length.unwrap(), length_stored);
        let decode = |bytes: &[u8], address| decode(&mut bytes.to_vec(), address, None);
        assert_eq!(*decode(&bytes, address).unwrap(), *raw);
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end], address).is_err(), "cut at {end}");
        }
        let elsewhere = [
            BlockAddress {
                run: RunId(4),
                ..address
            },
            BlockAddress {
                offset: 33,
                ..address
            },
        ];
        for address in elsewhere {
            assert_eq!(
                decode(&bytes, address).unwrap_err(),
                "its checksum does not match"
            );
        }
    }

    #[test]
    fn decoded_block_equals_raw_block() {
        let noise: Vec<u8> = (0..2000).map(|i| checksum(i, b"") as u8).collect();
        for raw in [&b""[..], b"a", &noise] {
            check(raw, Compression::None, STORED_RAW);
            check(raw, Compression::Lz4, STORED_RAW);
            check(raw, Compression::Zstd, STORED_RAW);
        }
        check(&[7; 3000], Compression::None, STORED_RAW);
        check(&[7; 3000], Compression::Lz4, STORED_LZ4);
        check(&[7; 3000], Compression::Zstd, STORED_ZSTD);
    }

    #[test]
    fn encoder_skips_attempts_after_incompressible_blocks() {
        let mut encoder = BlockEncoder::new(Compression::Lz4);
        let mut state = 1u64;
        let mut noise = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        for _ in 0..100 {
            let raw: Vec<u8> = (0..4096).map(|_| noise()).collect();
            assert!(!encoder.encode(&raw).is_compressed());
        }
        let plain = vec![7; 4096];
        let raw = (0..100).filter(|_| !encoder.encode(&plain).is_compressed());
        let raw = raw.count();
        assert!((1..=SKIPPED_MAX as usize).contains(&raw), "{raw}");
    }
}
