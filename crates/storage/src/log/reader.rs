//! Reading the data records of the log from a position on, for the start of the database.

use std::sync::Arc;

use super::Position;
use super::record::{Kind, StoredRecord};
use super::recover::damaged;
use super::segment::{Segment, Segments, path};
use crate::disk::{Disk, at, read_all};
use crate::encryption::Cipher;
use crate::error::StorageError;

/// A data record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// The position of the record.
    pub position: Position,
    /// The time of the write, in milliseconds since 1970. 0 if an earlier version wrote the record.
    pub millis: u64,
    /// The bytes that were appended.
    pub payload: Vec<u8>,
}

/// An iterator over the data records from a position to the newest one at the time of its creation,
/// in order. It ends after the first error. [`Log::read_from`](crate::Log::read_from) creates it.
pub struct LogReader {
    disk: Arc<dyn Disk>,
    /// The segments that are still to be read, in reverse order.
    segments: Vec<Segment>,
    current: Option<LoadedSegment>,
    /// The first record to return. Earlier records of its segment are skipped.
    from: Position,
    /// The position of the next record in `current`.
    next: Position,
    /// The last record to return.
    last: Position,
    /// An error of the creation. It is the first item.
    error: Option<StorageError>,
}

/// A segment in memory, and the offset of its next record.
struct LoadedSegment {
    number: u64,
    bytes: Vec<u8>,
    offset: usize,
    /// The key of an encrypted segment.
    cipher: Option<Arc<Cipher>>,
}

impl LogReader {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        segments: &Segments,
        position: Position,
        written: Position,
    ) -> Self {
        // Position 0 is before all records, so record 1 is the first in both cases.
        let from = position.max(Position(1));
        let first = segments.first().unwrap_or(from);
        let error = (from < first && from <= written).then(|| {
            let what = format!("record {from} is missing: the log begins with record {first}");
            StorageError::damaged(disk.place(super::segment::FOLDER), what)
        });
        let skipped = segments.count_before(from);
        let mut segments: Vec<Segment> = segments.list.iter().skip(skipped).cloned().collect();
        let next = segments
            .first()
            .filter(|_| from <= written)
            .map_or(from, |segment| segment.indexed_before(from).position);
        segments.reverse();
        Self {
            disk,
            segments,
            current: None,
            from,
            next,
            last: written,
            error,
        }
    }

    fn read(&mut self) -> Result<Option<LogRecord>, StorageError> {
        while self.next <= self.last {
            let Some(current) = &mut self.current else {
                self.open_next()?;
                continue;
            };
            let position = self.next;
            let found = match StoredRecord::read(&current.bytes, current.offset, current.number) {
                Ok(found) if found.header.kind == Kind::EndMarker => {
                    current.offset = found.end;
                    continue;
                }
                Ok(found) if found.header.position == position => found,
                _ if self
                    .segments
                    .last()
                    .is_some_and(|next| next.first == position) =>
                {
                    self.current = None;
                    continue;
                }
                Ok(_) => return Err(current.damaged(&self.disk, position, "another one is")),
                Err(what) => return Err(current.damaged(&self.disk, position, what)),
            };
            let is_returned = found.header.kind == Kind::Data && position >= self.from;
            let payload = is_returned
                .then(|| found.payload(current.cipher.as_deref()))
                .transpose()
                .map_err(|what| current.damaged(&self.disk, position, what))?;
            let millis = found.header.millis;
            current.offset = found.end;
            self.next = self.next.next();
            if let Some(payload) = payload {
                return Ok(Some(LogRecord {
                    position,
                    millis,
                    payload,
                }));
            }
        }
        Ok(None)
    }

    fn open_next(&mut self) -> Result<(), StorageError> {
        let Some(segment) = self.segments.pop() else {
            let what = format!("record {} is in none of its files", self.next);
            return Err(StorageError::damaged(
                self.disk.place(super::segment::FOLDER),
                what,
            ));
        };
        let path = path(segment.number);
        let bytes = read_all(segment.file.as_ref()).map_err(at(&self.disk, &path))?;
        let offset = segment.indexed_before(self.next).offset as usize;
        self.current = Some(LoadedSegment {
            number: segment.number,
            bytes,
            offset,
            cipher: segment.cipher,
        });
        Ok(())
    }
}

impl LoadedSegment {
    fn damaged(&self, disk: &Arc<dyn Disk>, position: Position, what: &str) -> StorageError {
        damaged(disk, self.number, self.offset, position, what)
    }
}

impl Iterator for LogReader {
    type Item = Result<LogRecord, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = match self.error.take() {
            Some(error) => Err(error),
            None => self.read(),
        };
        if read.is_err() {
            self.next = Position(self.last.0.saturating_add(1));
        }
        read.transpose()
    }
}
