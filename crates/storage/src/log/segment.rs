//! Segment files: `log/<number>.log` in use, `log/<number>.free` dropped and ready for reuse.
//! Numbers ascend by one. A number is not used again while bytes of its first use can exist,
//! because records are bound to their segment by its number only. The layout is drawn in
//! docs/format.md.

use std::sync::Arc;

use super::Position;
use super::record::{ALIGNMENT, HEADER_BYTES as RECORD_HEADER_BYTES};
use crate::checksum::checksum;
use crate::disk::DiskFile;
use crate::encryption::{Cipher, DataKeys, FileKind};
use crate::fields::{put, u64_at};

pub(crate) const FOLDER: &str = "log";
const MAGIC: &[u8; 8] = b"WRlog-01";
/// The offset of a segment's first record.
pub(crate) const HEADER_BYTES: usize = 48;
/// The distance between two entries of a segment's sparse index, in bytes.
const INDEX_INTERVAL_BYTES: u64 = 256 << 10;

const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGNMENT));
const _: () = assert!(RECORD_HEADER_BYTES.is_multiple_of(ALIGNMENT));

pub(crate) fn path(number: u64) -> String {
    format!("{FOLDER}/{number:012}.log")
}

pub(crate) fn free_path(number: u64) -> String {
    format!("{FOLDER}/{number:012}.free")
}

/// Returns the number in the name of a segment file in use, or `None` for other names.
pub(crate) fn number_from_name(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

/// The header of a segment.
#[derive(Clone, Copy)]
pub(crate) struct SegmentHeader {
    pub number: u64,
    /// The position of its first record.
    pub first: Position,
    /// The position up to which the log was durable when the segment was begun.
    pub synced: Position,
    /// The field of [`DataKeys::create_file_key`], or zeros if the segment is not encrypted.
    pub key_field: [u8; 8],
}

impl SegmentHeader {
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, &self.number.to_le_bytes());
        put(&mut bytes, 16, &self.first.0.to_le_bytes());
        put(&mut bytes, 24, &self.synced.0.to_le_bytes());
        put(&mut bytes, 32, &self.key_field);
        let sum = checksum(self.number, bytes.split_at(40).0);
        put(&mut bytes, 40, &sum.to_le_bytes());
        bytes
    }

    /// Reads the header of segment `number`. The error describes the defect.
    pub fn read(bytes: &[u8], number: u64) -> Result<Self, &'static str> {
        let short = "the file ends within its header";
        let header = bytes.get(..HEADER_BYTES).ok_or(short)?;
        if header.get(..8) != Some(MAGIC.as_slice()) {
            return Err("it does not begin as a log segment does");
        }
        let covered = header.get(..40).ok_or(short)?;
        if u64_at(header, 40) != Some(checksum(number, covered)) {
            return Err(
                "the checksum of its header does not match, or it belongs to another number",
            );
        }
        let field = |offset| u64_at(header, offset).ok_or(short);
        Ok(Self {
            number: field(8)?,
            first: Position(field(16)?),
            synced: Position(field(24)?),
            key_field: field(32)?.to_le_bytes(),
        })
    }

    /// Returns the key of the segment, or `None` if it is not encrypted. The error describes the
    /// defect.
    pub fn cipher(&self, keys: Option<&DataKeys>) -> Result<Option<Arc<Cipher>>, &'static str> {
        let Some(keys) = keys else {
            return if self.key_field == [0; 8] {
                Ok(None)
            } else {
                Err("it is encrypted, and the data folder is not")
            };
        };
        let cipher = keys.file_key(FileKind::Segment, self.number, self.key_field);
        let cipher = cipher.ok_or("the data key that it uses is not in the file KEYS")?;
        Ok(Some(Arc::new(cipher)))
    }
}

/// A segment in use.
#[derive(Clone)]
pub(crate) struct Segment {
    pub number: u64,
    /// The position of its first record.
    pub first: Position,
    pub file: Arc<dyn DiskFile>,
    /// The key of an encrypted segment.
    pub cipher: Option<Arc<Cipher>>,
    /// The offset after its last record.
    pub end_bytes: u64,
    /// Some of the records, ascending, at least 256 KB apart.
    sparse_index: Vec<IndexedRecord>,
}

/// An entry of the sparse index.
#[derive(Clone, Copy)]
pub(crate) struct IndexedRecord {
    pub position: Position,
    /// The offset of the record in the file.
    pub offset: u64,
}

impl Segment {
    pub fn new(
        number: u64,
        first: Position,
        file: Arc<dyn DiskFile>,
        cipher: Option<Arc<Cipher>>,
    ) -> Self {
        Self {
            number,
            first,
            file,
            cipher,
            end_bytes: HEADER_BYTES as u64,
            sparse_index: Vec::new(),
        }
    }

    /// Adds the record `position` at `offset` to the sparse index, if it is far enough from the
    /// last entry.
    pub fn index_record(&mut self, position: Position, offset: u64) {
        let last = self.sparse_index.last().copied();
        let last = last.unwrap_or(IndexedRecord {
            position: self.first,
            offset: 0,
        });
        debug_assert!(
            position >= last.position && offset >= last.offset,
            "record {position} at {offset} follows record {} at {}",
            last.position,
            last.offset
        );
        if offset >= last.offset + INDEX_INTERVAL_BYTES {
            self.sparse_index.push(IndexedRecord { position, offset });
        }
    }

    /// Returns the last indexed record at or before `position`, or the first record.
    pub fn indexed_before(&self, position: Position) -> IndexedRecord {
        let count = self
            .sparse_index
            .partition_point(|indexed| indexed.position <= position);
        let entry = count
            .checked_sub(1)
            .and_then(|index| self.sparse_index.get(index));
        entry.copied().unwrap_or(IndexedRecord {
            position: self.first,
            offset: HEADER_BYTES as u64,
        })
    }
}

/// All segments in use, oldest first, and which of their bytes and names may not be durable.
#[derive(Default)]
pub(crate) struct Segments {
    pub list: Vec<Segment>,
    /// The names and files of dropped segments, ready for reuse.
    pub free: Vec<(String, Arc<dyn DiskFile>)>,
    /// Segments from this number on may have unsynced bytes.
    pub unsynced_from: u64,
    /// True if names changed since the last sync of the folder.
    pub names_unsynced: bool,
}

impl Segments {
    pub fn first(&self) -> Option<Position> {
        self.list.first().map(|segment| segment.first)
    }

    /// Returns the number of the oldest segments whose records are all before `position`. The last
    /// segment does not count: without its header, the next start would not know the next position.
    pub fn count_before(&self, position: Position) -> usize {
        let successors = self.list.iter().skip(1);
        successors.take_while(|next| next.first <= position).count()
    }

    /// Returns the number of bytes of the segments that a start reads if the catalog's checkpoint
    /// is at `checkpointed`.
    pub fn bytes_at_start(&self, checkpointed: Position) -> u64 {
        let skipped = self.count_before(checkpointed);
        let read = self.list.iter().skip(skipped);
        read.map(|segment| segment.end_bytes).sum()
    }

    /// Returns the number of the oldest segments that can be dropped: their records are all before
    /// `position`, and the remaining such segments have at most `kept_bytes` bytes.
    pub fn count_droppable(&self, position: Position, kept_bytes: u64) -> usize {
        let count = self.count_before(position);
        let before = self.list.iter().take(count);
        let mut bytes: u64 = before.clone().map(|segment| segment.end_bytes).sum();
        let too_much = |segment: &&Segment| {
            let is_too_much = bytes > kept_bytes;
            bytes = bytes.saturating_sub(segment.end_bytes);
            is_too_much
        };
        before.take_while(too_much).count()
    }

    /// Returns the first positions of all segments, in ascending order.
    pub fn firsts(&self) -> Vec<Position> {
        self.list.iter().map(|segment| segment.first).collect()
    }

    /// Returns the segment that has, or will have, the record. Returns `None` if it was dropped.
    pub fn find(&self, position: Position) -> Option<&Segment> {
        let after = self.list.partition_point(|it| it.first <= position);
        self.list.get(after.checked_sub(1)?)
    }

    /// Returns the number of bytes after `position`. The result is too large by at most the
    /// distance to the indexed record before it.
    pub fn bytes_since(&self, position: Position) -> u64 {
        let next = Position(position.0.saturating_add(1));
        let since = |segment: &Segment| segment.end_bytes - segment.indexed_before(next).offset;
        let before = self.count_before(next);
        self.list.iter().skip(before).map(since).sum()
    }
}
