//! One record: a header of 48 bytes and the payload, padded with zeros to a multiple of 8. The
//! layout is drawn in docs/format.md.
//!
//! The checksum of the header is seeded with the number of the segment. Segment files are reused,
//! and a record of an earlier use must not be taken for a record of the current one.

use std::cell::Cell;

use windrow_invariant::Bug;

use crate::checksum::checksum;
use crate::compression_trial::CompressionTrial;
use crate::encryption::{Cipher, NONCE_BYTES, TAG_BYTES};
use crate::error::StorageError;
use crate::fields::{put, u32_at, u64_at};
use crate::position::Position;

/// The longest payload of a record, before compression.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

pub(crate) const HEADER_BYTES: usize = 48;
pub(crate) const ALIGNMENT: usize = 8;
/// Shorter payloads are stored raw: LZ4 saves too little to pay for its call.
const COMPRESSED_FROM_BYTES: usize = 512;
const FLAG_LZ4: u8 = 1;
const FLAG_ENCRYPTED: u8 = 2;
/// The bytes that encryption adds to a payload: nonce and tag.
const ENCRYPTION_BYTES: usize = NONCE_BYTES + TAG_BYTES;
/// A buffer larger than this is freed after use. Otherwise one large record would keep its memory
/// for the life of the thread.
const SPARE_BYTES_MAX: usize = 8 << 20;

/// The kind of a record, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A record of [`Log::append`](crate::Log::append).
    Data = 0,
    /// A change of the catalog.
    Catalog = 1,
    /// The end marker of a clean shutdown. It says that all records before it are durable. Its
    /// payload is empty, and its position is that of the record before it.
    EndMarker = 2,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub position: Position,
    /// The position up to which the log was durable when this record was written. Recovery uses it
    /// to distinguish damage (the bytes had been durable) from a torn end (they had not).
    pub synced: Position,
    pub payload_checksum: u64,
    pub stored_bytes: u32,
    pub raw_bytes: u32,
    pub kind: Kind,
    pub lz4: bool,
    pub encrypted: bool,
    /// The time of the write, in milliseconds since 1970. It is never less than that of the record
    /// before. 0 if an earlier version wrote the record.
    pub millis: u64,
}

/// The stored length of `millis`, in bytes.
const MILLIS_BYTES: usize = 6;
pub(crate) const MILLIS_MAX: u64 = (1 << (8 * MILLIS_BYTES)) - 1;

impl Header {
    /// Returns the length of the payload with its padding, in bytes.
    pub fn padded_bytes(&self) -> usize {
        padded(self.stored_bytes as usize)
    }

    /// Reads the header at `offset` of the bytes of segment `number`. Returns `None` if its
    /// checksum does not match.
    pub fn read(bytes: &[u8], offset: usize, number: u64) -> Option<Header> {
        let header = bytes.get(offset..offset.checked_add(HEADER_BYTES)?)?;
        if u64_at(header, 0)? != checksum(number, header.get(8..)?) {
            return None;
        }
        Some(Header {
            position: Position(u64_at(header, 8)?),
            synced: Position(u64_at(header, 16)?),
            payload_checksum: u64_at(header, 24)?,
            stored_bytes: u32_at(header, 32)?,
            raw_bytes: u32_at(header, 36)?,
            kind: match header.get(40)? {
                0 => Kind::Data,
                1 => Kind::Catalog,
                2 => Kind::EndMarker,
                _ => return None,
            },
            lz4: header.get(41)? & FLAG_LZ4 != 0,
            encrypted: header.get(41)? & FLAG_ENCRYPTED != 0,
            millis: u64_at(header, 40)? >> 16,
        })
    }
}

/// A record in the bytes of a segment, with verified checksums.
pub(crate) struct StoredRecord<'a> {
    pub header: Header,
    /// The part of the header that an encrypted payload authenticates.
    context: Context,
    pub stored: &'a [u8],
    /// The offset of the next record.
    pub end: usize,
}

impl<'a> StoredRecord<'a> {
    /// Reads the record at `offset` of the bytes of segment `number`. The error describes the
    /// defect.
    pub fn read(bytes: &'a [u8], offset: usize, number: u64) -> Result<Self, &'static str> {
        let header = Header::read(bytes, offset, number)
            .ok_or("there is no record header whose checksum matches")?;
        let start = offset + HEADER_BYTES;
        let end = start + padded(header.stored_bytes as usize);
        let padded = bytes
            .get(start..end)
            .ok_or("the file ends within the record")?;
        if checksum(0, padded) != header.payload_checksum {
            return Err("the checksum of the record's payload does not match");
        }
        let (stored, _) = padded.split_at(header.stored_bytes as usize);
        Ok(StoredRecord {
            header,
            context: context(bytes.get(offset..start).unwrap_or_default()),
            stored,
            end,
        })
    }

    /// Returns the decrypted and decompressed payload. `cipher` is that of the segment. The error
    /// describes the defect.
    pub fn payload(&self, cipher: Option<&Cipher>) -> Result<Vec<u8>, &'static str> {
        self.decompress(self.decrypted(cipher)?)
    }

    /// Returns the payload after decryption, as it was compressed.
    fn decrypted(&self, cipher: Option<&Cipher>) -> Result<Vec<u8>, &'static str> {
        match (self.header.encrypted, cipher) {
            (false, None) => Ok(self.stored.to_vec()),
            (true, Some(cipher)) => self.decrypt(cipher),
            (true, None) => Err("the record is encrypted, and its segment is not"),
            (false, Some(_)) => Err("the record is not encrypted, and its segment is"),
        }
    }

    fn decrypt(&self, cipher: &Cipher) -> Result<Vec<u8>, &'static str> {
        let short = "the record is shorter than an encrypted one can be";
        let (rest, tag) = self.stored.split_last_chunk().ok_or(short)?;
        let (stored, nonce) = rest.split_last_chunk().ok_or(short)?;
        let mut stored = stored.to_vec();
        let decrypted = cipher.decrypt(*nonce, &self.context, &mut stored, *tag);
        decrypted.ok_or("the record cannot be decrypted")?;
        Ok(stored)
    }

    fn decompress(&self, stored: Vec<u8>) -> Result<Vec<u8>, &'static str> {
        decompress(stored, self.header.lz4, self.header.raw_bytes)
    }

    /// Returns the payload of a record that is not encrypted, as it is stored.
    pub fn stored_payload(&self, cipher: Option<&Cipher>) -> Result<StoredPayload, &'static str> {
        Ok(StoredPayload {
            kind: self.header.kind,
            lz4: self.header.lz4,
            raw_bytes: self.header.raw_bytes,
            millis: self.header.millis,
            stored: self.decrypted(cipher)?,
        })
    }
}

/// A payload as it is stored, after compression, with what its reader needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPayload {
    pub kind: Kind,
    pub lz4: bool,
    /// The length of the payload before compression, in bytes.
    pub raw_bytes: u32,
    /// The time of the write, in milliseconds since 1970.
    pub millis: u64,
    pub stored: Vec<u8>,
}

impl StoredPayload {
    /// Returns the decompressed payload. The error describes the defect.
    pub fn payload(&self) -> Result<Vec<u8>, &'static str> {
        decompress(self.stored.clone(), self.lz4, self.raw_bytes)
    }
}

/// Returns the decompressed payload. The error describes the defect.
fn decompress(stored: Vec<u8>, lz4: bool, raw_bytes: u32) -> Result<Vec<u8>, &'static str> {
    if !lz4 {
        return Ok(stored);
    }
    let raw_bytes = raw_bytes as usize;
    if raw_bytes > PAYLOAD_BYTES_MAX {
        return Err("the record claims to be longer than a record can be");
    }
    match lz4_flex::block::decompress(&stored, raw_bytes) {
        Ok(payload) if payload.len() == raw_bytes => Ok(payload),
        _ => Err("the record's payload does not decompress"),
    }
}

/// The bytes of a header that are bound to an encrypted payload: all besides the two checksums.
type Context = [u8; HEADER_BYTES - 16];

fn context(header: &[u8]) -> Context {
    let mut context = [0; HEADER_BYTES - 16];
    let before = header.get(8..24).unwrap_or_default();
    let behind = header.get(32..HEADER_BYTES).unwrap_or_default();
    let parts = before.iter().chain(behind);
    context
        .iter_mut()
        .zip(parts)
        .for_each(|(to, from)| *to = *from);
    context
}

/// The fields of a record that are set when the leader of a group commit assigns its position.
pub(crate) struct Seal<'s> {
    pub position: Position,
    /// The position up to which the log is durable.
    pub synced: Position,
    /// The number of the segment.
    pub segment: u64,
    /// The time, in milliseconds since 1970.
    pub millis: u64,
    /// The key of an encrypted segment, and a nonce that was never used with it.
    pub cipher: Option<(&'s Cipher, [u8; NONCE_BYTES])>,
}

/// An encoded record. Its position, time and header checksum are added by
/// [`seal`](EncodedRecord::seal). The buffer never shrinks between two uses, which saves filling it
/// with zeros again.
#[derive(Default)]
pub(crate) struct EncodedRecord {
    buffer: Vec<u8>,
    length: usize,
    /// The length of the payload before encryption, after compression.
    plain_bytes: usize,
    /// The time of a record that is a copy, in milliseconds since 1970.
    millis: Option<u64>,
    is_encrypted: bool,
    /// The concatenation of the pieces of a payload, for compression.
    gathered: Vec<u8>,
    /// The compression attempts of the thread.
    trial: CompressionTrial,
}

thread_local! {
    static SPARE: Cell<Option<EncodedRecord>> = const { Cell::new(None) };
}

impl EncodedRecord {
    /// Compresses a payload and computes its checksum, in the buffer of this thread. A record that
    /// is to be encrypted gets its checksum by [`seal`](Self::seal). Fails with `TooLarge` if the
    /// payload is longer than [`PAYLOAD_BYTES_MAX`].
    pub fn new(kind: Kind, payload: &[&[u8]], is_encrypted: bool) -> Result<Self, StorageError> {
        let raw_bytes: usize = payload.iter().map(|piece| piece.len()).sum();
        if raw_bytes > PAYLOAD_BYTES_MAX {
            return Err(StorageError::TooLarge {
                what: "the payload of a log record".to_owned(),
                bytes: raw_bytes as u64,
                bytes_max: PAYLOAD_BYTES_MAX as u64,
            });
        }
        let mut encoded = SPARE.take().unwrap_or_default();
        encoded.millis = None;
        let compressed = encoded.compress(payload, raw_bytes);
        encoded.plain_bytes = compressed.unwrap_or(raw_bytes);
        encoded.is_encrypted = is_encrypted;
        if compressed.is_none() {
            encoded.copy(payload, raw_bytes);
        }
        encoded.finish(kind, compressed.is_some(), raw_bytes);
        Ok(encoded)
    }

    /// Encodes a copy of a record of another log. It keeps its time.
    pub fn copy_of(payload: &StoredPayload, is_encrypted: bool) -> Self {
        let mut encoded = SPARE.take().unwrap_or_default();
        encoded.millis = Some(payload.millis);
        encoded.plain_bytes = payload.stored.len();
        encoded.is_encrypted = is_encrypted;
        encoded.copy(&[&payload.stored], payload.stored.len());
        encoded.finish(payload.kind, payload.lz4, payload.raw_bytes as usize);
        encoded
    }

    /// Returns the time of a record that is a copy.
    pub fn millis(&self) -> Option<u64> {
        self.millis
    }

    /// Compresses the payload into the buffer and returns the compressed length. Returns `None` if
    /// the payload is to be stored raw.
    fn compress(&mut self, payload: &[&[u8]], raw_bytes: usize) -> Option<usize> {
        if raw_bytes < COMPRESSED_FROM_BYTES || !self.trial.is_due() {
            return None;
        }
        self.reserve(lz4_flex::block::get_maximum_output_size(raw_bytes));
        let raw = match payload {
            [piece] => piece,
            pieces => {
                self.gathered.clear();
                pieces
                    .iter()
                    .for_each(|piece| self.gathered.extend_from_slice(piece));
                self.gathered.as_slice()
            }
        };
        let target = self.buffer.get_mut(HEADER_BYTES..)?;
        let stored_bytes = lz4_flex::block::compress_into(raw, target).ok()?;
        let paid = pays(stored_bytes, raw_bytes);
        self.trial.record_result(paid);
        paid.then_some(stored_bytes)
    }

    fn copy(&mut self, payload: &[&[u8]], raw_bytes: usize) {
        self.reserve(raw_bytes);
        let mut offset = HEADER_BYTES;
        for piece in payload {
            put(&mut self.buffer, offset, piece);
            offset += piece.len();
        }
    }

    fn reserve(&mut self, stored_bytes: usize) {
        let needed = HEADER_BYTES + padded(stored_bytes);
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
    }

    fn finish(&mut self, kind: Kind, lz4: bool, raw_bytes: usize) {
        let mut flags = if lz4 { FLAG_LZ4 } else { 0 };
        let mut stored_bytes = self.plain_bytes;
        if self.is_encrypted {
            flags |= FLAG_ENCRYPTED;
            stored_bytes += ENCRYPTION_BYTES;
        }
        self.reserve(stored_bytes);
        self.length = HEADER_BYTES + padded(stored_bytes);
        let (header, rest) = self.buffer.split_at_mut(HEADER_BYTES);
        let (padded, _) = rest.split_at_mut(padded(stored_bytes));
        padded.split_at_mut(stored_bytes).1.fill(0);
        put(header, 32, &(stored_bytes as u32).to_le_bytes());
        put(header, 36, &(raw_bytes as u32).to_le_bytes());
        put(header, 40, &[kind as u8, flags, 0, 0, 0, 0, 0, 0]);
        if !self.is_encrypted {
            put(header, 24, &checksum(0, padded).to_le_bytes());
        }
    }

    /// Writes the fields that are known only when the leader places the record in a segment,
    /// encrypts the payload, and writes the checksum of the header.
    pub fn seal(&mut self, seal: &Seal<'_>) -> Result<(), Bug> {
        let Seal {
            position, synced, ..
        } = *seal;
        debug_assert!(synced <= position, "record {position} follows {synced}");
        let Some(header) = self.buffer.first_chunk_mut::<HEADER_BYTES>() else {
            return Err(self.short_buffer());
        };
        put(header, 8, &position.0.to_le_bytes());
        put(header, 16, &synced.0.to_le_bytes());
        let millis = seal.millis.min(MILLIS_MAX).to_le_bytes();
        put(header, 42, millis.split_at(MILLIS_BYTES).0);
        self.encrypt(seal)?;
        let Some(header) = self.buffer.first_chunk_mut::<HEADER_BYTES>() else {
            return Err(self.short_buffer());
        };
        let sum = checksum(seal.segment, header.split_at(8).1);
        put(header, 0, &sum.to_le_bytes());
        Ok(())
    }

    /// Encrypts the payload if the segment is encrypted, and writes its checksum.
    fn encrypt(&mut self, seal: &Seal<'_>) -> Result<(), Bug> {
        let (true, Some((cipher, nonce))) = (self.is_encrypted, &seal.cipher) else {
            if self.is_encrypted != seal.cipher.is_some() {
                let message = "a log record and its segment are not both encrypted";
                return Err(Bug::new(message));
            }
            return Ok(());
        };
        let plain_bytes = self.plain_bytes;
        let used = self.buffer.get_mut(..self.length);
        let Some((header, rest)) = used.and_then(|used| used.split_at_mut_checked(HEADER_BYTES))
        else {
            return Err(self.short_buffer());
        };
        let context = context(header);
        let plain = rest.get_mut(..plain_bytes);
        let tag = plain.and_then(|plain| cipher.encrypt(*nonce, &context, plain));
        let tag = tag.ok_or_else(|| Bug::new("a log record cannot be encrypted"))?;
        put(rest, plain_bytes, nonce);
        put(rest, plain_bytes + NONCE_BYTES, &tag);
        put(header, 24, &checksum(0, rest).to_le_bytes());
        Ok(())
    }

    pub fn bytes(&self) -> Result<&[u8], Bug> {
        self.buffer
            .get(..self.length)
            .ok_or_else(|| self.short_buffer())
    }

    #[cold]
    fn short_buffer(&self) -> Bug {
        let (length, buffer_length) = (self.length, self.buffer.len());
        Bug::new(format!(
            "the buffer of a log record of {length} bytes has {buffer_length} bytes"
        ))
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// Makes the buffer the spare one of this thread.
    pub fn recycle(self) {
        if self.buffer.len() + self.gathered.capacity() <= SPARE_BYTES_MAX {
            SPARE.set(Some(self));
        }
    }
}

/// Returns `true` if the compressed payload is to be stored. Most records are never read, so only
/// the time of the write counts. The write is faster than a raw one if LZ4 saves three eighths or
/// more.
fn pays(stored_bytes: usize, raw_bytes: usize) -> bool {
    stored_bytes <= raw_bytes / 8 * 5
}

fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEAL: Seal<'_> = Seal {
        position: Position(7),
        synced: Position(5),
        segment: 3,
        millis: 0x0605_0403_0201,
        cipher: None,
    };

    fn sealed(payload: &[&[u8]]) -> Vec<u8> {
        let mut encoded = EncodedRecord::new(Kind::Data, payload, false).unwrap();
        encoded.seal(&SEAL).unwrap();
        let bytes = encoded.bytes().unwrap().to_vec();
        encoded.recycle();
        bytes
    }

    fn check(payload: &[&[u8]], lz4: bool) {
        let bytes = sealed(payload);
        let raw = payload.concat();
        let found = StoredRecord::read(&bytes, 0, 3).unwrap();
        assert_eq!(found.payload(None).unwrap(), raw);
        assert_eq!(
            (found.end, found.header.lz4),
            (bytes.len(), lz4),
            "{} bytes",
            raw.len()
        );
        let header = found.header;
        assert_eq!((header.position, header.synced), (Position(7), Position(5)));
        assert_eq!(header.millis, 0x0605_0403_0201);
        assert!(
            StoredRecord::read(&bytes, 0, 4).is_err(),
            "the number of the segment counts"
        );
        for end in 0..bytes.len() {
            assert!(
                StoredRecord::read(&bytes[..end], 0, 3).is_err(),
                "cut at {end}"
            );
        }
    }

    #[test]
    fn decoded_record_equals_appended_payload() {
        let noise: Vec<u8> = (0..2000).map(|i| checksum(i, b"") as u8).collect();
        check(&[], false);
        check(&[b""], false);
        check(&[b"a"], false);
        check(&[b"one", b"", b"two", b"three"], false);
        check(&[&[1; 511]], false);
        check(&[&[1; 512]], true);
        check(&[&[1; 300], &[2; 300], &[3; 300]], true);
        check(&[&noise], false);
        // The padding of a short record has no bytes of a longer record in the same buffer.
        check(&[b"abc"], false);
        assert_eq!(sealed(&[b"abc"])[HEADER_BYTES..], *b"abc\0\0\0\0\0");
    }

    /// The time, the durable position and end markers had not been authenticated: only a checksum
    /// that everybody can compute covered them.
    #[test]
    fn each_byte_of_a_header_is_bound_to_an_encrypted_payload() {
        let cipher = Cipher::for_tests();
        for (kind, payload) in [(Kind::Data, &b"payload"[..]), (Kind::EndMarker, b"")] {
            let mut encoded = EncodedRecord::new(kind, &[payload], true).unwrap();
            let cipher_and_nonce = Some((&cipher, [1; NONCE_BYTES]));
            let seal = Seal {
                cipher: cipher_and_nonce,
                ..SEAL
            };
            encoded.seal(&seal).unwrap();
            let bytes = encoded.bytes().unwrap().to_vec();
            let read = |bytes: &[u8]| {
                let record = StoredRecord::read(bytes, 0, SEAL.segment)?;
                record.payload(Some(&cipher))
            };
            assert_eq!(read(&bytes).unwrap(), payload);
            for at in (8..24).chain(32..HEADER_BYTES) {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                let sum = checksum(SEAL.segment, &changed[8..HEADER_BYTES]);
                changed[..8].copy_from_slice(&sum.to_le_bytes());
                assert!(read(&changed).is_err(), "{kind:?}, byte {at}");
            }
        }
    }
}
