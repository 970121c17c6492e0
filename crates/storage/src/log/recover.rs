//! Recovery of the log at a start:
//!
//! 1. Remove the files for reuse, and list the segments. Fail if one is missing.
//! 2. Read all records in order. Each must have the next position and valid checksums. The first
//!    one that does not is the *flaw*.
//! 3. Look for an intact header after the flaw that says that the flawed record was durable. Each
//!    header of a record or a segment has the position up to which the log was durable when it was
//!    written.
//! 4. If there is one, durable bytes have changed. Nothing is cut off, and the start fails with
//!    `Damaged`.
//! 5. Otherwise power was lost before the flawed record was durable. The records after it were not
//!    durable either. The log is cut off before it.
//! 6. Sync all that was read.
//!
//! Segments whose records are all before the catalog's checkpoint were durable when it was made.
//! They are skipped, because the history of the log may be long. Its readers verify the records
//! that they read.

use std::sync::Arc;

use windrow_invariant::Bug;

use super::record::{ALIGNMENT, HEADER_BYTES as RECORD_HEADER_BYTES, Header, Kind, StoredRecord};
use super::segment::{
    FOLDER, HEADER_BYTES, Segment, SegmentHeader, Segments, number_from_name, path,
};
use super::{LogOptions, Position};
use crate::disk::{Disk, DiskFile, at, read_all_into};
use crate::encryption::DataKeys;
use crate::error::StorageError;
use crate::fields::u64_at;

/// The result of a recovery.
pub(crate) struct RecoveredLog {
    pub segments: Segments,
    /// The position of the newest record.
    pub newest: Position,
    /// The time of the newest record, in milliseconds since 1970.
    pub millis: u64,
    /// The newest record without a time.
    pub untimed: Position,
    /// True if the log ends with an end marker.
    pub has_end_marker: bool,
}

/// The place of the first record that could not be read.
struct Flaw {
    /// The index of the segment in `Recovery::numbers`.
    index: usize,
    offset: usize,
    /// The position of the record that is expected there.
    position: Position,
    /// The defect.
    what: String,
}

struct Recovery<'a> {
    disk: &'a Arc<dyn Disk>,
    /// The keys of an encrypted data folder.
    keys: Option<&'a DataKeys>,
    /// The numbers of all segment files, ascending.
    numbers: Vec<u64>,
    /// The segments that were read or skipped.
    list: Vec<Segment>,
    /// The position of the next record.
    next: Position,
    has_end_marker: bool,
    millis: u64,
    untimed: Position,
    /// Records before this position are durable, and `visit` does not need them.
    needed: Position,
    /// The number of skipped segments.
    skipped: usize,
}

/// Recovers the log. Calls `visit` with each catalog record from `needed` on, and perhaps with
/// older ones. Fails with `Damaged` if durable bytes have changed.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    keys: Option<&DataKeys>,
    options: &LogOptions,
    needed: Position,
    mut visit: impl FnMut(Position, &[u8]) -> Result<(), StorageError>,
) -> Result<RecoveredLog, StorageError> {
    debug_assert!(options.segment_bytes > HEADER_BYTES as u64);
    let numbers = find_segments(disk)?;
    let mut recovery = Recovery {
        disk,
        keys,
        numbers,
        list: Vec::new(),
        next: Position(1),
        has_end_marker: false,
        millis: 0,
        untimed: Position::ZERO,
        needed,
        skipped: 0,
    };
    if let Some(flaw) = recovery.read_all(&mut visit)? {
        recovery.refuse_damage(&flaw)?;
        recovery.cut(&flaw)?;
    }
    recovery.finish()
}

/// Returns the numbers of the segments, in ascending order. Removes the files for reuse: after a
/// crash, such a file may have records of a segment number that will be used again.
fn find_segments(disk: &Arc<dyn Disk>) -> Result<Vec<u64>, StorageError> {
    let mut numbers = Vec::new();
    for name in disk.list(FOLDER).map_err(at(disk, FOLDER))? {
        if name.ends_with(".free") {
            let path = format!("{FOLDER}/{name}");
            disk.remove(&path).map_err(at(disk, &path))?;
        }
        numbers.extend(number_from_name(&name));
    }
    numbers.sort_unstable();
    let first = numbers.first().copied().unwrap_or_default();
    for (number, expected) in numbers.iter().zip(first..) {
        if *number != expected {
            let place = disk.place(&path(expected));
            return Err(StorageError::damaged(place, "the file is missing"));
        }
    }
    Ok(numbers)
}

impl Recovery<'_> {
    /// Reads or skips all segments. Returns the flaw if there is one.
    fn read_all(
        &mut self,
        visit: &mut impl FnMut(Position, &[u8]) -> Result<(), StorageError>,
    ) -> Result<Option<Flaw>, StorageError> {
        let mut bytes = Vec::new();
        for index in 0..self.numbers.len() {
            if self.skipped == index && self.skip(index)? {
                continue;
            }
            let file = self.read_segment(index, &mut bytes)?;
            if let Some(flaw) = self.read_records(index, file, &bytes, visit)? {
                return Ok(Some(flaw));
            }
        }
        Ok(None)
    }

    /// Adds a segment to the list without reading its records, if all of them are before `needed`.
    /// Returns `false` if they are not, or if the headers do not prove it.
    fn skip(&mut self, index: usize) -> Result<bool, StorageError> {
        let next = self.first_of(index + 1)?;
        let Some(next) = next.filter(|next| *next <= self.needed) else {
            return Ok(false);
        };
        let number = self.number(index)?;
        let path = path(number);
        let file = self.disk.open(&path).map_err(at(self.disk, &path))?;
        let mut bytes = [0; HEADER_BYTES + RECORD_HEADER_BYTES];
        file.read_at(0, &mut bytes).map_err(at(self.disk, &path))?;
        let Ok(header) = SegmentHeader::read(&bytes, number) else {
            return Ok(false);
        };
        // Records without a time are before all records with one. If the first record has a time,
        // the segment does not change `untimed`.
        let record = Header::read(&bytes, HEADER_BYTES, number);
        let is_timed = record.is_some_and(|record| record.millis > 0);
        let follows = index == 0 || header.first == self.next;
        if !is_timed || !follows || header.first >= next {
            return Ok(false);
        }
        let Ok(cipher) = header.cipher(self.keys) else {
            return Ok(false);
        };
        let mut segment = Segment::new(number, header.first, file, cipher);
        segment.end_bytes = segment.file.len().map_err(at(self.disk, &path))?;
        self.list.push(segment);
        self.next = next;
        self.skipped += 1;
        Ok(true)
    }

    /// Reads a segment file into `bytes`, a buffer that is used for all segments.
    fn read_segment(
        &self,
        index: usize,
        bytes: &mut Vec<u8>,
    ) -> Result<Arc<dyn DiskFile>, StorageError> {
        let path = path(self.number(index)?);
        let file = self.disk.open(&path).map_err(at(self.disk, &path))?;
        read_all_into(file.as_ref(), bytes).map_err(at(self.disk, &path))?;
        Ok(file)
    }

    fn number(&self, index: usize) -> Result<u64, Bug> {
        self.numbers.get(index).copied().ok_or_else(|| {
            let count = self.numbers.len();
            Bug::new(format!(
                "the recovery of the log needs segment {index} of {count}"
            ))
        })
    }

    /// Reads a segment and adds it to the list. Returns the flaw if there is one.
    fn read_records(
        &mut self,
        index: usize,
        file: Arc<dyn DiskFile>,
        bytes: &[u8],
        visit: &mut impl FnMut(Position, &[u8]) -> Result<(), StorageError>,
    ) -> Result<Option<Flaw>, StorageError> {
        let number = self.number(index)?;
        let flaw = |offset, position, what: String| {
            Some(Flaw {
                index,
                offset,
                position,
                what,
            })
        };
        let header = match SegmentHeader::read(bytes, number) {
            Ok(header) => header,
            Err(what) => return Ok(flaw(0, self.next, what.to_owned())),
        };
        if index == 0 {
            self.next = header.first;
        } else if header.first != self.next {
            let what = format!("it begins with record {}", header.first);
            return Ok(flaw(0, self.next, what));
        }
        let next_first = self.first_of(index + 1)?;
        let cipher = header.cipher(self.keys);
        let cipher =
            cipher.map_err(|what| StorageError::damaged(self.disk.place(&path(number)), what))?;
        let mut segment = Segment::new(number, header.first, file, cipher);
        let mut offset = HEADER_BYTES;
        let mut stopped = None;
        // The last segment is read up to a flaw. The others end where the next one begins.
        while next_first != Some(self.next) || !ends_at(bytes, offset, number, self.next) {
            match StoredRecord::read(bytes, offset, number) {
                Ok(found) if self.follows(&found.header) => {
                    self.add_record(&found, offset, &mut segment, visit)?;
                    offset = found.end;
                }
                Ok(found) => {
                    stopped = Some(format!("it holds record {}", found.header.position));
                    break;
                }
                Err(what) => {
                    stopped = Some(what.to_owned());
                    break;
                }
            }
        }
        segment.end_bytes = offset as u64;
        self.list.push(segment);
        if next_first.is_none() && index + 1 == self.numbers.len() && offset == bytes.len() {
            // The end of the log: no byte after it could prove anything, and there is none to cut
            // off.
            return Ok(None);
        }
        Ok(stopped.and_then(|what| flaw(offset, self.next, what)))
    }

    fn follows(&self, header: &Header) -> bool {
        match header.kind {
            Kind::EndMarker => header.position.next() == self.next,
            Kind::Data | Kind::Catalog => header.position == self.next,
        }
    }

    fn add_record(
        &mut self,
        found: &StoredRecord,
        offset: usize,
        segment: &mut Segment,
        visit: &mut impl FnMut(Position, &[u8]) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        // An end marker is empty: reading its payload tells if the key of the segment made it.
        let payload = match found.header.kind {
            Kind::Data => None,
            Kind::Catalog | Kind::EndMarker => {
                let payload = found.payload(segment.cipher.as_deref());
                let failed = |what| damaged(self.disk, segment.number, offset, self.next, what);
                Some(payload.map_err(failed)?)
            }
        };
        self.has_end_marker = found.header.kind == Kind::EndMarker;
        if self.has_end_marker {
            return Ok(());
        }
        segment.index_record(self.next, offset as u64);
        self.millis = self.millis.max(found.header.millis);
        if found.header.millis == 0 {
            self.untimed = self.next;
        }
        if let Some(payload) = payload {
            visit(self.next, &payload)?;
        }
        self.next = self.next.next();
        Ok(())
    }

    /// Returns the first position in the header of a segment, or `None` if the segment does not
    /// exist or its header is damaged.
    fn first_of(&self, index: usize) -> Result<Option<Position>, StorageError> {
        let Some(&number) = self.numbers.get(index) else {
            return Ok(None);
        };
        let path = path(number);
        let file = self.disk.open(&path).map_err(at(self.disk, &path))?;
        let mut bytes = [0; HEADER_BYTES];
        file.read_at(0, &mut bytes).map_err(at(self.disk, &path))?;
        Ok(SegmentHeader::read(&bytes, number)
            .ok()
            .map(|header| header.first))
    }

    /// Fails with `Damaged` if an intact header after the flaw proves that the flawed record was
    /// durable.
    fn refuse_damage(&self, flaw: &Flaw) -> Result<(), StorageError> {
        // If the flaw is the header of the first segment, the position of its first record is
        // unknown. Then a header that says that any record was durable is proof.
        let known = flaw.index > 0 || flaw.offset > 0;
        let position = if known { flaw.position } else { Position(1) };
        let mut bytes = Vec::new();
        for index in flaw.index..self.numbers.len() {
            self.read_segment(index, &mut bytes)?;
            let number = self.number(index)?;
            let from = if index == flaw.index { flaw.offset } else { 0 };
            if proves_durable(&bytes, from, number, position) {
                return Err(self.damage(flaw, position, index)?);
            }
        }
        Ok(())
    }

    /// Returns the error for a flaw that segment `index` proves to be damage. The end of a segment
    /// is known from the header of its successor. If that header is damaged, reading goes past the
    /// end, and the place of the damage is the header.
    fn damage(
        &self,
        flaw: &Flaw,
        position: Position,
        index: usize,
    ) -> Result<StorageError, StorageError> {
        let number = self.number(flaw.index)?;
        if index > flaw.index {
            let mut bytes = Vec::new();
            self.read_segment(flaw.index + 1, &mut bytes)?;
            if let Err(what) = SegmentHeader::read(&bytes, number + 1) {
                return Ok(damaged(self.disk, number + 1, 0, position, what));
            }
        }
        Ok(damaged(
            self.disk,
            number,
            flaw.offset,
            position,
            &flaw.what,
        ))
    }

    /// Cuts off the log before the flaw. Later segments are removed newest first, so that a crash
    /// between two removes leaves no gap in the numbers.
    fn cut(&mut self, flaw: &Flaw) -> Result<(), StorageError> {
        let begun = usize::from(flaw.offset > 0);
        for &number in self.numbers.iter().skip(flaw.index + begun).rev() {
            let path = path(number);
            self.disk.remove(&path).map_err(at(self.disk, &path))?;
        }
        self.disk.sync_dir(FOLDER).map_err(at(self.disk, FOLDER))?;
        if let Some(last) = self.list.last() {
            let path = path(last.number);
            last.file
                .set_len(last.end_bytes)
                .map_err(at(self.disk, &path))?;
        }
        Ok(())
    }

    /// Syncs all that was read: the result says that it is durable.
    fn finish(self) -> Result<RecoveredLog, StorageError> {
        for segment in self.list.iter().skip(self.skipped) {
            segment
                .file
                .sync_data()
                .map_err(at(self.disk, &path(segment.number)))?;
        }
        self.disk.sync_dir(FOLDER).map_err(at(self.disk, FOLDER))?;
        debug_assert!(self.list.is_sorted_by(|one, next| {
            one.number + 1 == next.number && one.first <= next.first
        }));
        // Without a segment, all future segments are unsynced.
        let unsynced_from = self.list.last().map_or(0, |segment| segment.number);
        let segments = Segments {
            list: self.list,
            unsynced_from,
            ..Segments::default()
        };
        Ok(RecoveredLog {
            segments,
            newest: self.next.previous(),
            millis: self.millis,
            untimed: self.untimed,
            has_end_marker: self.has_end_marker,
        })
    }
}

/// Returns `true` if the records of a segment end at `offset`. The successor of the segment begins
/// with record `next`, so only an end marker can follow.
fn ends_at(bytes: &[u8], offset: usize, number: u64, next: Position) -> bool {
    let header = Header::read(bytes, offset, number);
    !header.is_some_and(|header| header.kind == Kind::EndMarker && header.position.next() == next)
}

/// Returns `true` if an intact header at or after `from` says that record `position` was durable.
fn proves_durable(bytes: &[u8], from: usize, number: u64, position: Position) -> bool {
    if from == 0 && SegmentHeader::read(bytes, number).is_ok_and(|own| own.synced >= position) {
        return true;
    }
    let start = from.max(HEADER_BYTES);
    (start..bytes.len()).step_by(ALIGNMENT).any(|offset| {
        // The comparison is cheaper than the checksum and excludes most bytes that are not a
        // header.
        u64_at(bytes, offset + 8) >= Some(position.0)
            && Header::read(bytes, offset, number).is_some_and(|found| found.synced >= position)
    })
}

/// Returns the error of a damaged record at `offset` of segment `number`.
pub(crate) fn damaged(
    disk: &Arc<dyn Disk>,
    number: u64,
    offset: usize,
    position: Position,
    what: &str,
) -> StorageError {
    let place = format!("{}, at byte {offset}", disk.place(&path(number)));
    StorageError::damaged(
        place,
        format!("record {position} should be there, but {what}"),
    )
}
