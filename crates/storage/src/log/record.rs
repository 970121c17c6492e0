//! One record: a header of 48 bytes and the payload, padded with zeros to a multiple of 8. Drawn
//! in docs/format.md.
//!
//! The header's checksum is seeded with the segment's number: a segment file is written again
//! after use, and what an earlier use left must not look like a record of this one.

use std::cell::Cell;

use windrow_invariant::Bug;

use crate::checksum::checksum;
use crate::compression_trial::CompressionTrial;
use crate::error::StorageError;
use crate::fields::{put, u32_at, u64_at};

/// The longest payload of a record, before compression.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;

pub(crate) const HEADER_BYTES: usize = 48;
pub(crate) const ALIGNMENT: usize = 8;
/// Below this LZ4 saves nothing worth its call.
const COMPRESSED_FROM_BYTES: usize = 512;
const FLAG_LZ4: u8 = 1;
/// A thread's buffer that grew past this is given back after use.
const KEPT_BYTES_MAX: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data = 0,
    Catalog = 1,
    /// Written when the log is closed: says that all before it is durable. It has the position of
    /// the record before it and no payload.
    Mark = 2,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub position: u64,
    /// Up to here the log was durable when this record was written. After a crash this tells
    /// damage (the bytes had been durable) from a torn end (they had not).
    pub synced: u64,
    pub payload_checksum: u64,
    pub stored_bytes: u32,
    pub raw_bytes: u32,
    pub kind: Kind,
    pub lz4: bool,
    /// When it was written, in milliseconds since 1970; never less than the record before it says. 0
    /// where an earlier version wrote it.
    pub millis: u64,
}

/// Milliseconds are stored in so many bytes.
const MILLIS_BYTES: usize = 6;
pub(crate) const MILLIS_MAX: u64 = (1 << (8 * MILLIS_BYTES)) - 1;

impl Header {
    /// Bytes that the payload takes in the segment.
    pub fn padded_bytes(&self) -> usize {
        padded(self.stored_bytes as usize)
    }

    /// The header at `offset` of a segment's bytes, if it is one of segment `number`.
    pub fn read(bytes: &[u8], offset: usize, number: u64) -> Option<Header> {
        let header = bytes.get(offset..offset.checked_add(HEADER_BYTES)?)?;
        if u64_at(header, 0)? != checksum(number, header.get(8..)?) {
            return None;
        }
        Some(Header {
            position: u64_at(header, 8)?,
            synced: u64_at(header, 16)?,
            payload_checksum: u64_at(header, 24)?,
            stored_bytes: u32_at(header, 32)?,
            raw_bytes: u32_at(header, 36)?,
            kind: match header.get(40)? {
                0 => Kind::Data,
                1 => Kind::Catalog,
                2 => Kind::Mark,
                _ => return None,
            },
            lz4: header.get(41)? & FLAG_LZ4 != 0,
            millis: u64_at(header, 40)? >> 16,
        })
    }
}

/// A record as it lies in a segment's bytes, its checksums verified.
pub(crate) struct Found<'a> {
    pub header: Header,
    pub stored: &'a [u8],
    /// The offset after it.
    pub end: usize,
}

impl<'a> Found<'a> {
    /// The record at `offset`, or what is wrong there.
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
        Ok(Found {
            header,
            stored,
            end,
        })
    }

    /// The payload as it was appended.
    pub fn payload(&self) -> Result<Vec<u8>, &'static str> {
        if !self.header.lz4 {
            return Ok(self.stored.to_vec());
        }
        let raw_bytes = self.header.raw_bytes as usize;
        if raw_bytes > PAYLOAD_BYTES_MAX {
            return Err("the record claims to be longer than a record can be");
        }
        match lz4_flex::block::decompress(self.stored, raw_bytes) {
            Ok(payload) if payload.len() == raw_bytes => Ok(payload),
            _ => Err("the record's payload does not decompress"),
        }
    }
}

/// A record ready to be written but for its position. The buffer is larger than the record, so
/// that using it again costs no zeroing.
#[derive(Default)]
pub(crate) struct Encoded {
    buffer: Vec<u8>,
    length: usize,
    /// A payload of several pieces is gathered here for compression.
    gathered: Vec<u8>,
    /// Whether LZ4 pays for the thread's records.
    trial: CompressionTrial,
}

thread_local! {
    static SPARE: Cell<Option<Encoded>> = const { Cell::new(None) };
}

impl Encoded {
    /// Compresses and checksums, in this thread's buffer.
    pub fn new(kind: Kind, payload: &[&[u8]]) -> Result<Self, StorageError> {
        let raw_bytes: usize = payload.iter().map(|piece| piece.len()).sum();
        if raw_bytes > PAYLOAD_BYTES_MAX {
            return Err(StorageError::TooLarge {
                what: "the payload of a log record".to_owned(),
                bytes: raw_bytes as u64,
                bytes_max: PAYLOAD_BYTES_MAX as u64,
            });
        }
        let mut encoded = SPARE.take().unwrap_or_default();
        let compressed = encoded.compress(payload, raw_bytes);
        let stored_bytes = compressed.unwrap_or(raw_bytes);
        if compressed.is_none() {
            encoded.copy(payload, raw_bytes);
        }
        encoded.finish(kind, compressed.is_some(), stored_bytes, raw_bytes);
        Ok(encoded)
    }

    /// Compresses into the buffer; `None` where it does not pay.
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

    fn finish(&mut self, kind: Kind, lz4: bool, stored_bytes: usize, raw_bytes: usize) {
        self.length = HEADER_BYTES + padded(stored_bytes);
        let (header, rest) = self.buffer.split_at_mut(HEADER_BYTES);
        let (padded, _) = rest.split_at_mut(padded(stored_bytes));
        padded.split_at_mut(stored_bytes).1.fill(0);
        put(header, 24, &checksum(0, padded).to_le_bytes());
        put(header, 32, &(stored_bytes as u32).to_le_bytes());
        put(header, 36, &(raw_bytes as u32).to_le_bytes());
        put(
            header,
            40,
            &[kind as u8, if lz4 { FLAG_LZ4 } else { 0 }, 0, 0, 0, 0, 0, 0],
        );
    }

    /// Fills in what is known only when the record's turn has come.
    pub fn seal(
        &mut self,
        position: u64,
        synced: u64,
        number: u64,
        millis: u64,
    ) -> Result<(), Bug> {
        debug_assert!(synced <= position, "record {position} follows {synced}");
        let Some(header) = self.buffer.first_chunk_mut::<HEADER_BYTES>() else {
            return Err(self.cut());
        };
        put(header, 8, &position.to_le_bytes());
        put(header, 16, &synced.to_le_bytes());
        let millis = millis.min(MILLIS_MAX).to_le_bytes();
        put(header, 42, millis.split_at(MILLIS_BYTES).0);
        let sum = checksum(number, header.split_at(8).1);
        put(header, 0, &sum.to_le_bytes());
        Ok(())
    }

    pub fn bytes(&self) -> Result<&[u8], Bug> {
        self.buffer.get(..self.length).ok_or_else(|| self.cut())
    }

    #[cold]
    fn cut(&self) -> Bug {
        let (length, held) = (self.length, self.buffer.len());
        Bug::new(format!(
            "a log record of {length} bytes stands in a buffer of {held}"
        ))
    }

    pub fn len(&self) -> usize {
        self.length
    }

    /// Gives the buffer back to this thread.
    pub fn recycle(self) {
        if self.buffer.len() + self.gathered.capacity() <= KEPT_BYTES_MAX {
            SPARE.set(Some(self));
        }
    }
}

/// The log is written once and mostly never read: what LZ4 takes three eighths off is written faster
/// compressed, anything less is written faster as it is.
fn pays(stored_bytes: usize, raw_bytes: usize) -> bool {
    stored_bytes <= raw_bytes / 8 * 5
}

fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(payload: &[&[u8]]) -> Vec<u8> {
        let mut encoded = Encoded::new(Kind::Data, payload).unwrap();
        encoded.seal(7, 5, 3, 0x0605_0403_0201).unwrap();
        let bytes = encoded.bytes().unwrap().to_vec();
        encoded.recycle();
        bytes
    }

    fn check(payload: &[&[u8]], lz4: bool) {
        let bytes = sealed(payload);
        let raw = payload.concat();
        let found = Found::read(&bytes, 0, 3).unwrap();
        assert_eq!(found.payload().unwrap(), raw);
        assert_eq!(
            (found.end, found.header.lz4),
            (bytes.len(), lz4),
            "{} bytes",
            raw.len()
        );
        assert_eq!((found.header.position, found.header.synced), (7, 5));
        assert_eq!(found.header.millis, 0x0605_0403_0201);
        assert!(
            Found::read(&bytes, 0, 4).is_err(),
            "the number of the segment counts"
        );
        for end in 0..bytes.len() {
            assert!(Found::read(&bytes[..end], 0, 3).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_appended() {
        let noise: Vec<u8> = (0..2000).map(|i| checksum(i, b"") as u8).collect();
        check(&[], false);
        check(&[b""], false);
        check(&[b"a"], false);
        check(&[b"one", b"", b"two", b"three"], false);
        check(&[&[1; 511]], false);
        check(&[&[1; 512]], true);
        check(&[&[1; 300], &[2; 300], &[3; 300]], true);
        check(&[&noise], false);
        // A shorter record in the same buffer leaves nothing of a longer one in its padding.
        check(&[b"abc"], false);
        assert_eq!(sealed(&[b"abc"])[HEADER_BYTES..], *b"abc\0\0\0\0\0");
    }
}
