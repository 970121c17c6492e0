//! Segment files: `log/<number>.log`, and `log/<number>.free` for those that wait to be written
//! again. Numbers grow by one and are never used twice while bytes of the first use can survive.

use std::sync::Arc;

use super::Position;
use super::record::{ALIGNMENT, HEADER_BYTES as RECORD_HEADER_BYTES};
use crate::checksum::checksum;
use crate::disk::DiskFile;
use crate::fields::{put, u64_at};

pub(crate) const FOLDER: &str = "log";
const MAGIC: &[u8; 8] = b"WRlog-01";
/// The offset of a segment's first record.
pub(crate) const HEADER_BYTES: usize = 48;
/// One place in a segment is remembered for every so many bytes.
const MARK_BYTES: u64 = 256 << 10;

const _: () = assert!(HEADER_BYTES.is_multiple_of(ALIGNMENT));
const _: () = assert!(RECORD_HEADER_BYTES.is_multiple_of(ALIGNMENT));

pub(crate) fn path(number: u64) -> String {
    format!("{FOLDER}/{number:012}.log")
}

pub(crate) fn free_path(number: u64) -> String {
    format!("{FOLDER}/{number:012}.free")
}

pub(crate) fn number_of(name: &str) -> Option<u64> {
    name.strip_suffix(".log")?.parse().ok()
}

/// What a segment's first bytes say.
#[derive(Clone, Copy)]
pub(crate) struct SegmentHeader {
    pub number: u64,
    pub first: u64,
    /// Up to here the log was durable when the segment was begun.
    pub synced: u64,
}

impl SegmentHeader {
    pub fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 8, &self.number.to_le_bytes());
        put(&mut bytes, 16, &self.first.to_le_bytes());
        put(&mut bytes, 24, &self.synced.to_le_bytes());
        let sum = checksum(self.number, bytes.split_at(40).0);
        put(&mut bytes, 40, &sum.to_le_bytes());
        bytes
    }

    /// The header of segment `number`, or what is wrong with it.
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
            first: field(16)?,
            synced: field(24)?,
        })
    }
}

/// A segment in use.
#[derive(Clone)]
pub(crate) struct Segment {
    pub number: u64,
    pub first: u64,
    pub file: Arc<dyn DiskFile>,
    /// Where the next record goes, or would go.
    pub end_bytes: u64,
    /// Positions and their offsets, ascending, at most one for every 256 KB.
    marks: Vec<(u64, u64)>,
}

impl Segment {
    pub fn new(number: u64, first: u64, file: Arc<dyn DiskFile>) -> Self {
        Self {
            number,
            first,
            file,
            end_bytes: HEADER_BYTES as u64,
            marks: Vec::new(),
        }
    }

    /// Notes that the record `position` lies at `offset`.
    pub fn note(&mut self, position: u64, offset: u64) {
        let (marked, last) = self.marks.last().copied().unwrap_or((self.first, 0));
        debug_assert!(
            position >= marked && offset >= last,
            "record {position} at byte {offset} is noted after record {marked} at byte {last}"
        );
        if offset >= last + MARK_BYTES {
            self.marks.push((position, offset));
        }
    }

    /// A known record at or before `position`, and its offset.
    pub fn mark_before(&self, position: u64) -> (u64, u64) {
        let count = self
            .marks
            .partition_point(|&(marked, _)| marked <= position);
        let mark = count.checked_sub(1).and_then(|index| self.marks.get(index));
        mark.copied().unwrap_or((self.first, HEADER_BYTES as u64))
    }
}

/// All segments in use, oldest first, and what about them is not durable yet.
#[derive(Default)]
pub(crate) struct Segments {
    pub list: Vec<Segment>,
    /// Dropped files under their free names, ready to be written again.
    pub free: Vec<(String, Arc<dyn DiskFile>)>,
    /// Segments from this number on may hold unsynced bytes.
    pub unsynced_from: u64,
    /// Names changed since the folder was last synced.
    pub names_unsynced: bool,
}

impl Segments {
    pub fn first(&self) -> Option<Position> {
        self.list.first().map(|segment| Position(segment.first))
    }

    /// How many of the oldest segments hold nothing from `position` on. Never the last one: its
    /// header keeps the numbering alive.
    pub fn count_before(&self, position: Position) -> usize {
        let begins_later = self.list.iter().skip(1);
        begins_later
            .take_while(|next| next.first <= position.0)
            .count()
    }

    /// How many of those may go that hold nothing from `position` on, where so many bytes of them are
    /// kept.
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

    /// The first positions of all of them, ascending.
    pub fn firsts(&self) -> Vec<u64> {
        self.list.iter().map(|segment| segment.first).collect()
    }

    /// The segment that has the record.
    pub fn of(&self, position: u64) -> Option<&Segment> {
        let behind = self.list.partition_point(|it| it.first <= position);
        self.list.get(behind.checked_sub(1)?)
    }

    pub fn bytes_since(&self, position: Position) -> u64 {
        let next = position.0.saturating_add(1);
        let since = |segment: &Segment| {
            let (_, offset) = segment.mark_before(next);
            segment.end_bytes - offset
        };
        let before = self.count_before(Position(next));
        self.list.iter().skip(before).map(since).sum()
    }
}
