//! Writes the segments of a log that begins with a copy of another log's records.

use std::sync::Arc;

use super::record::{EncodedRecord, Seal, StoredPayload};
use super::segment::{FOLDER, HEADER_BYTES, SegmentHeader, path};
use super::{LogOptions, Position};
use crate::disk::{Disk, DiskFile, at};
use crate::encryption::{Cipher, DataKeys, FileKind, new_file_key};
use crate::error::StorageError;

/// Writes segments into a folder that has no log. The log is valid after
/// [`finish`](LogCopy::finish).
pub(crate) struct LogCopy {
    disk: Arc<dyn Disk>,
    /// The keys of an encrypted data folder.
    keys: Option<Arc<DataKeys>>,
    segment_bytes: u64,
    segment: CopiedSegment,
    offset: u64,
    /// The position of the next record.
    next: Position,
}

impl LogCopy {
    /// Begins a log whose first record is `first`.
    pub fn begin(
        disk: &Arc<dyn Disk>,
        keys: Option<Arc<DataKeys>>,
        options: &LogOptions,
        first: Position,
    ) -> Result<Self, StorageError> {
        let segment = CopiedSegment::begin(disk, keys.as_deref(), 1, first)?;
        Ok(Self {
            disk: disk.clone(),
            keys,
            segment_bytes: options.segment_bytes,
            segment,
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
        let mut record = EncodedRecord::copy_of(payload, self.keys.is_some());
        if self.offset > HEADER_BYTES as u64
            && self.offset + record.len() as u64 > self.segment_bytes
        {
            self.sync()?;
            let number = self.segment.number + 1;
            let keys = self.keys.as_deref();
            self.segment = CopiedSegment::begin(&self.disk, keys, number, self.next)?;
            self.offset = HEADER_BYTES as u64;
        }
        let CopiedSegment {
            number,
            file,
            cipher,
        } = &self.segment;
        let cipher = cipher.as_ref().zip(self.keys.as_ref());
        record.seal(&Seal {
            position: self.next,
            synced: Position::ZERO,
            segment: *number,
            millis: payload.millis,
            cipher: cipher.map(|(cipher, keys)| (cipher, keys.next_nonce())),
        })?;
        file.write_at(self.offset, record.bytes()?)
            .map_err(at(&self.disk, &path(*number)))?;
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
        let CopiedSegment { number, file, .. } = &self.segment;
        file.sync_data().map_err(at(&self.disk, &path(*number)))
    }
}

/// The segment that is written.
struct CopiedSegment {
    number: u64,
    file: Arc<dyn DiskFile>,
    /// The key of an encrypted segment.
    cipher: Option<Cipher>,
}

impl CopiedSegment {
    fn begin(
        disk: &Arc<dyn Disk>,
        keys: Option<&DataKeys>,
        number: u64,
        first: Position,
    ) -> Result<Self, StorageError> {
        let path = path(number);
        let file = disk.create(&path).map_err(at(disk, &path))?;
        let created = new_file_key(keys, FileKind::Segment, number);
        let key = created.map_err(at(disk, &path))?;
        let header = SegmentHeader {
            number,
            first,
            synced: Position::ZERO,
            key_field: key.header_field,
        };
        file.write_at(0, &header.encode())
            .map_err(at(disk, &path))?;
        Ok(Self {
            number,
            file,
            cipher: key.cipher,
        })
    }
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
