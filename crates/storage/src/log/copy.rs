//! Writes the segments of a log that begins with a copy of another log's records.

use std::sync::Arc;

use super::record::{EncodedRecord, Seal, StoredPayload};
use super::segment::{FOLDER, HEADER_BYTES, SegmentHeader, path};
use super::{LogOptions, Position};
use crate::disk::{Disk, DiskFile, at};
use crate::error::StorageError;

/// Writes segments into a folder that has no log. The log is valid after
/// [`finish`](LogCopy::finish).
pub(crate) struct LogCopy {
    disk: Arc<dyn Disk>,
    segment_bytes: u64,
    number: u64,
    file: Arc<dyn DiskFile>,
    offset: u64,
    /// The position of the next record.
    next: Position,
}

impl LogCopy {
    /// Begins a log whose first record is `first`.
    pub fn begin(
        disk: &Arc<dyn Disk>,
        options: &LogOptions,
        first: Position,
    ) -> Result<Self, StorageError> {
        let number = 1;
        Ok(Self {
            disk: disk.clone(),
            segment_bytes: options.segment_bytes,
            number,
            file: begin_segment(disk, number, first)?,
            offset: HEADER_BYTES as u64,
            next: first,
        })
    }

    /// Returns the position of the next record.
    pub fn next(&self) -> Position {
        self.next
    }

    /// Adds the next record.
    pub fn add(&mut self, payload: &StoredPayload) -> Result<(), StorageError> {
        let mut record = EncodedRecord::copy_of(payload, false);
        if self.offset > HEADER_BYTES as u64
            && self.offset + record.len() as u64 > self.segment_bytes
        {
            self.sync()?;
            self.number += 1;
            self.file = begin_segment(&self.disk, self.number, self.next)?;
            self.offset = HEADER_BYTES as u64;
        }
        record.seal(&Seal {
            position: self.next.0,
            synced: 0,
            segment: self.number,
            millis: payload.millis,
            cipher: None,
        })?;
        self.file
            .write_at(self.offset, record.bytes()?)
            .map_err(at(&self.disk, &path(self.number)))?;
        self.offset += record.len() as u64;
        self.next = self.next.next();
        record.recycle();
        Ok(())
    }

    /// Makes the log durable.
    pub fn finish(self) -> Result<(), StorageError> {
        self.sync()?;
        self.disk.sync_dir(FOLDER).map_err(at(&self.disk, FOLDER))
    }

    fn sync(&self) -> Result<(), StorageError> {
        let path = path(self.number);
        self.file.sync_data().map_err(at(&self.disk, &path))
    }
}

fn begin_segment(
    disk: &Arc<dyn Disk>,
    number: u64,
    first: Position,
) -> Result<Arc<dyn DiskFile>, StorageError> {
    let path = path(number);
    let file = disk.create(&path).map_err(at(disk, &path))?;
    let header = SegmentHeader {
        number,
        first: first.0,
        synced: 0,
        key_field: [0; 8],
    };
    file.write_at(0, &header.encode())
        .map_err(at(disk, &path))?;
    Ok(file)
}

/// Removes all segments of a log that is not open.
pub(crate) fn remove_log(disk: &Arc<dyn Disk>) -> Result<(), StorageError> {
    let mut names = disk.list(FOLDER).map_err(at(disk, FOLDER))?;
    // Newest first: a crash between two removes leaves no gap in the numbers.
    names.sort_unstable_by(|one, other| other.cmp(one));
    for name in names {
        let path = format!("{FOLDER}/{name}");
        disk.remove(&path).map_err(at(disk, &path))?;
    }
    disk.sync_dir(FOLDER).map_err(at(disk, FOLDER))
}
