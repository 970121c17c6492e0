//! What a start makes of the segment files it finds.
//!
//! Records are read in order. Where that stops before the last byte ever written, one of two
//! things happened. Either power was lost and the record was never durable: then the log ends
//! here, and what lies behind it was not durable either. Or durable bytes have changed: then
//! nothing may be cut off, and the operator has to know. Each record and each segment says up to
//! where the log was durable when it was written, so one of them that is intact, lies behind the
//! flaw and says that the flawed record was durable proves the second.
//!
//! Segments that lie wholly before the catalog's checkpoint were durable when it was made, and are
//! passed over: they may be long, where a history of the log is kept. Whoever reads them verifies
//! what he reads.

use std::sync::Arc;

use windrow_invariant::Bug;

use super::record::{ALIGNMENT, Found, HEADER_BYTES as RECORD_HEADER_BYTES, Header, Kind};
use super::segment::{FOLDER, HEADER_BYTES, Segment, SegmentHeader, Segments, number_of, path};
use super::{LogOptions, Position};
use crate::disk::{Disk, DiskFile, read_all_into};
use crate::error::StorageError;
use crate::fields::u64_at;
use crate::folder::at;

pub(crate) struct Recovered {
    pub segments: Segments,
    pub newest: Position,
    /// When the newest record was written.
    pub millis: u64,
    /// The newest record that does not say when it was written.
    pub untimed: Position,
    /// The log ends with the mark of an orderly close.
    pub marked: bool,
}

/// The place where reading stopped.
struct Flaw {
    index: usize,
    offset: usize,
    /// The record that should have been there.
    position: u64,
    what: String,
}

struct Recovery<'a> {
    disk: &'a Arc<dyn Disk>,
    numbers: Vec<u64>,
    list: Vec<Segment>,
    next: u64,
    marked: bool,
    millis: u64,
    untimed: u64,
    /// Records before it were durable, and are asked of nobody here.
    needed: u64,
    /// So many of the segments were passed over.
    passed: usize,
}

/// Shows each catalog record from `needed` on to `visit`, with its position, and perhaps older ones.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    options: &LogOptions,
    needed: Position,
    mut visit: impl FnMut(Position, &[u8]) -> Result<(), StorageError>,
) -> Result<Recovered, StorageError> {
    debug_assert!(options.segment_bytes > HEADER_BYTES as u64);
    let numbers = find_segments(disk)?;
    let mut recovery = Recovery {
        disk,
        numbers,
        list: Vec::new(),
        next: 1,
        marked: false,
        millis: 0,
        untimed: 0,
        needed: needed.0,
        passed: 0,
    };
    if let Some(flaw) = recovery.read_all(&mut visit)? {
        recovery.refuse_damage(&flaw)?;
        recovery.cut(&flaw)?;
    }
    recovery.finish()
}

/// The numbers of the segments, ascending. Files that waited to be used again are removed: after
/// a crash one of them may hold records of a number that will be given again.
fn find_segments(disk: &Arc<dyn Disk>) -> Result<Vec<u64>, StorageError> {
    let mut numbers = Vec::new();
    for name in disk.list(FOLDER).map_err(at(disk, FOLDER))? {
        if name.ends_with(".free") {
            let path = format!("{FOLDER}/{name}");
            disk.remove(&path).map_err(at(disk, &path))?;
        }
        numbers.extend(number_of(&name));
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
    fn read_all(
        &mut self,
        visit: &mut impl FnMut(Position, &[u8]) -> Result<(), StorageError>,
    ) -> Result<Option<Flaw>, StorageError> {
        let mut bytes = Vec::new();
        for index in 0..self.numbers.len() {
            if self.passed == index && self.pass(index)? {
                continue;
            }
            let file = self.read_segment(index, &mut bytes)?;
            if let Some(flaw) = self.read_records(index, file, &bytes, visit)? {
                return Ok(Some(flaw));
            }
        }
        Ok(None)
    }

    /// Notes a segment without reading it, where all of its records are before what is needed: false where
    /// not, or where that is not sure.
    fn pass(&mut self, index: usize) -> Result<bool, StorageError> {
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
        // Records that do not say when they were written come before all that do.
        let record = Header::read(&bytes, HEADER_BYTES, number);
        let is_timed = record.is_some_and(|record| record.millis > 0);
        let follows = index == 0 || header.first == self.next;
        if !is_timed || !follows || header.first >= next {
            return Ok(false);
        }
        let mut segment = Segment::new(number, header.first, file);
        segment.end_bytes = segment.file.len().map_err(at(self.disk, &path))?;
        self.list.push(segment);
        self.next = next;
        self.passed += 1;
        Ok(true)
    }

    /// The bytes go into a buffer that serves all segments.
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
                "segment {index} of {count} is asked for at the start"
            ))
        })
    }

    /// Reads one segment to its end and notes it, or says what stopped that.
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
        let mut segment = Segment::new(number, header.first, file);
        let mut offset = HEADER_BYTES;
        let mut stopped = None;
        // The last segment is read until reading fails, the others until the next one takes over.
        while next_first != Some(self.next) || !ended(bytes, offset, number, self.next) {
            match Found::read(bytes, offset, number) {
                Ok(found) if self.follows(&found.header) => {
                    self.take(&found, offset, &mut segment, visit)?;
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
        Ok(stopped.and_then(|what| flaw(offset, self.next, what)))
    }

    fn follows(&self, header: &Header) -> bool {
        match header.kind {
            Kind::Mark => header.position + 1 == self.next,
            Kind::Data | Kind::Catalog => header.position == self.next,
        }
    }

    fn take(
        &mut self,
        found: &Found,
        offset: usize,
        segment: &mut Segment,
        visit: &mut impl FnMut(Position, &[u8]) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        self.marked = found.header.kind == Kind::Mark;
        if self.marked {
            return Ok(());
        }
        segment.note(self.next, offset as u64);
        self.millis = self.millis.max(found.header.millis);
        if found.header.millis == 0 {
            self.untimed = self.next;
        }
        if found.header.kind == Kind::Catalog {
            let payload = found
                .payload()
                .map_err(|what| damaged(self.disk, segment.number, offset, self.next, what))?;
            visit(Position(self.next), &payload)?;
        }
        self.next += 1;
        Ok(())
    }

    /// The first position that a segment's header names, if there is such a segment and header.
    fn first_of(&self, index: usize) -> Result<Option<u64>, StorageError> {
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

    /// An error where something behind the flaw proves that it had been durable.
    fn refuse_damage(&self, flaw: &Flaw) -> Result<(), StorageError> {
        // The first segment's own header says where its records begin: without it, anything
        // that says some record was durable is proof.
        let known = flaw.index > 0 || flaw.offset > 0;
        let position = if known { flaw.position } else { 1 };
        let mut bytes = Vec::new();
        for index in flaw.index..self.numbers.len() {
            self.read_segment(index, &mut bytes)?;
            let number = self.number(index)?;
            let from = if index == flaw.index { flaw.offset } else { 0 };
            if proves(&bytes, from, number, position) {
                return Err(self.damage(flaw, position, index)?);
            }
        }
        Ok(())
    }

    /// Names the flaw, of which segment `index` told that it is one. A segment ends where its
    /// successor begins; where the successor's header is what is damaged, that is the place.
    fn damage(
        &self,
        flaw: &Flaw,
        position: u64,
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

    /// Newest first, so that a crash in between leaves no gap.
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

    /// What was read counts as durable from here on, so it has to be.
    fn finish(self) -> Result<Recovered, StorageError> {
        for segment in self.list.iter().skip(self.passed) {
            segment
                .file
                .sync_data()
                .map_err(at(self.disk, &path(segment.number)))?;
        }
        self.disk.sync_dir(FOLDER).map_err(at(self.disk, FOLDER))?;
        debug_assert!(self.list.is_sorted_by(|one, next| {
            one.number + 1 == next.number && one.first <= next.first
        }));
        // Where there is no segment, all to come are unsynced.
        let unsynced_from = self.list.last().map_or(0, |segment| segment.number);
        let segments = Segments {
            list: self.list,
            unsynced_from,
            ..Segments::default()
        };
        Ok(Recovered {
            segments,
            newest: Position(self.next - 1),
            millis: self.millis,
            untimed: Position(self.untimed),
            marked: self.marked,
        })
    }
}

/// Whether the records of a segment that has a successor end here. The successor begins with the
/// next record, so all that may still follow is a mark.
fn ended(bytes: &[u8], offset: usize, number: u64, next: u64) -> bool {
    let header = Header::read(bytes, offset, number);
    !header.is_some_and(|header| header.kind == Kind::Mark && header.position + 1 == next)
}

/// Whether an intact header at or after `from` says that record `position` was durable.
fn proves(bytes: &[u8], from: usize, number: u64, position: u64) -> bool {
    if from == 0 && SegmentHeader::read(bytes, number).is_ok_and(|own| own.synced >= position) {
        return true;
    }
    let start = from.max(HEADER_BYTES);
    (start..bytes.len()).step_by(ALIGNMENT).any(|offset| {
        // Cheap first: nearly nothing of what is not a header passes the comparison.
        u64_at(bytes, offset + 8) >= Some(position)
            && Header::read(bytes, offset, number).is_some_and(|found| found.synced >= position)
    })
}

pub(crate) fn damaged(
    disk: &Arc<dyn Disk>,
    number: u64,
    offset: usize,
    position: u64,
    what: &str,
) -> StorageError {
    let place = format!("{}, at byte {offset}", disk.place(&path(number)));
    StorageError::damaged(
        place,
        format!("record {position} should be there, but {what}"),
    )
}
