use std::sync::Arc;

use super::Position;
use super::record::{Found, Kind};
use super::recover::damaged;
use super::segment::{Segment, Segments, path};
use crate::disk::{Disk, read_all};
use crate::error::StorageError;
use crate::folder::at;

/// One data record as it was appended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    pub position: Position,
    /// When it was written, in milliseconds since 1970; 0 where an earlier version wrote it.
    pub millis: u64,
    pub payload: Vec<u8>,
}

/// The data records from a position on, in order; ends after the first error. It sees what was
/// written when it was made.
pub struct LogReader {
    disk: Arc<dyn Disk>,
    /// The segments still to be read, the next one last.
    segments: Vec<Segment>,
    current: Option<Current>,
    /// Records before it are skipped.
    from: u64,
    /// The next record to be met, skipped or not.
    next: u64,
    last: u64,
    /// Told once, before anything else.
    error: Option<StorageError>,
}

/// A segment in memory.
struct Current {
    number: u64,
    bytes: Vec<u8>,
    offset: usize,
}

impl LogReader {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        segments: &Segments,
        position: Position,
        written: Position,
    ) -> Self {
        // Position 0 is before every record, and so the same as 1.
        let from = position.0.max(1);
        let first = segments.first().map_or(from, |first| first.0);
        let error = (from < first && from <= written.0).then(|| {
            let what = format!("record {from} is asked for, but the log begins with {first}");
            StorageError::damaged(disk.place(super::segment::FOLDER), what)
        });
        let skipped = segments.count_before(Position(from));
        let mut segments: Vec<Segment> = segments.list.iter().skip(skipped).cloned().collect();
        let next = segments
            .first()
            .map_or(from, |segment| segment.mark_before(from).0);
        segments.reverse();
        Self {
            disk,
            segments,
            current: None,
            from,
            next,
            last: written.0,
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
            let found = match Found::read(&current.bytes, current.offset, current.number) {
                Ok(found) if found.header.kind == Kind::Mark => {
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
            let wanted = found.header.kind == Kind::Data && position >= self.from;
            let payload = wanted
                .then(|| found.payload())
                .transpose()
                .map_err(|what| current.damaged(&self.disk, position, what))?;
            let millis = found.header.millis;
            current.offset = found.end;
            self.next += 1;
            if let Some(payload) = payload {
                return Ok(Some(LogRecord {
                    position: Position(position),
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
        let offset = segment.mark_before(self.next).1 as usize;
        self.current = Some(Current {
            number: segment.number,
            bytes,
            offset,
        });
        Ok(())
    }
}

impl Current {
    fn damaged(&self, disk: &Arc<dyn Disk>, position: u64, what: &str) -> StorageError {
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
            self.next = self.last.saturating_add(1);
        }
        read.transpose()
    }
}
