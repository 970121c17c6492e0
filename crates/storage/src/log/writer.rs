//! Writing a group into the current segment, beginning new segments, and letting old ones go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::clock::next_millis;
use super::record::{Encoded, Kind};
use super::segment::{FOLDER, Segment, SegmentHeader, free_path, path};
use super::{Position, Shared};
use crate::disk::DiskFile;
use crate::error::StorageError;
use crate::folder::at;

/// What only the leader of a group touches.
pub(crate) struct Writer {
    next: u64,
    /// When the newest record was written.
    millis: u64,
    /// Where a group of several records is put together for one write.
    gathered: Vec<u8>,
}

/// Where a group goes.
struct Place {
    number: u64,
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl Writer {
    /// `millis`: when the newest record was written.
    pub fn after(newest: u64, millis: u64) -> Self {
        Self {
            next: newest + 1,
            millis,
            gathered: Vec::new(),
        }
    }

    /// Writes the records with one write and returns the first's position. All or none.
    pub fn write(
        &mut self,
        shared: &Shared,
        records: &mut [&mut Encoded],
    ) -> Result<u64, StorageError> {
        shared.check_not_refusing()?;
        let bytes: usize = records.iter().map(|record| record.len()).sum();
        let place = self.place_for(shared, bytes as u64)?;
        let synced = shared.synced.load(Ordering::Acquire);
        let clock = (shared.options.clock)();
        for (record, position) in records.iter_mut().zip(self.next..) {
            self.millis = next_millis(self.millis, clock, position);
            record.seal(position, synced, place.number, self.millis);
        }
        // Before any of them is seen: who reads `written` and then this never reads too little.
        shared.millis.store(self.millis, Ordering::Release);
        self.put_down(records, &place)
            .map_err(|error| undo(shared, &place, error))?;
        let first = self.next;
        self.next += records.len() as u64;
        note(shared, &place, first, records);
        Ok(first)
    }

    fn put_down(&mut self, records: &[&mut Encoded], place: &Place) -> std::io::Result<()> {
        if let [alone] = records {
            return place.file.write_at(place.offset, alone.bytes());
        }
        self.gathered.clear();
        records
            .iter()
            .for_each(|record| self.gathered.extend_from_slice(record.bytes()));
        place.file.write_at(place.offset, &self.gathered)
    }

    fn place_for(&self, shared: &Shared, bytes: u64) -> Result<Place, StorageError> {
        let current = {
            let segments = shared.segments.lock();
            segments.list.last().map(|last| {
                let offset = last.end_bytes;
                (
                    Place {
                        number: last.number,
                        file: last.file.clone(),
                        offset,
                    },
                    last.first,
                )
            })
        };
        let number = match current {
            Some((place, first)) => {
                let has_records = self.next > first;
                if !has_records || place.offset + bytes <= shared.options.segment_bytes {
                    return Ok(place);
                }
                place.number + 1
            }
            None => 1,
        };
        self.begin_segment(shared, number)
    }

    fn begin_segment(&self, shared: &Shared, number: u64) -> Result<Place, StorageError> {
        let file = take_file(shared, number)?;
        let synced = shared.synced.load(Ordering::Acquire);
        let header = SegmentHeader {
            number,
            first: self.next,
            synced,
        }
        .encode();
        if let Err(error) = file.write_at(0, &header) {
            // Nothing refers to it. Left behind it would be taken for a torn beginning.
            let _ = shared.disk.remove(&path(number));
            return Err(StorageError::from_io(
                shared.disk.place(&path(number)),
                error,
            ));
        }
        let segment = Segment::new(number, self.next, file.clone());
        let offset = segment.end_bytes;
        let mut segments = shared.segments.lock();
        segments.list.push(segment);
        segments.names_unsynced = true;
        Ok(Place {
            number,
            file,
            offset,
        })
    }
}

/// A dropped file under the new name, its bytes in place, or a new one.
fn take_file(shared: &Shared, number: u64) -> Result<Arc<dyn DiskFile>, StorageError> {
    let free = shared.segments.lock().free.pop();
    let to = path(number);
    if let Some((name, file)) = free {
        shared
            .disk
            .rename(&name, &to)
            .map_err(at(&shared.disk, &name))?;
        return Ok(file);
    }
    shared.disk.create(&to).map_err(at(&shared.disk, &to))
}

/// Takes back what a failed write may have left, durably: otherwise records that were refused
/// could come back after a crash. Where that fails too, the log takes no more writes.
fn undo(shared: &Shared, place: &Place, error: std::io::Error) -> StorageError {
    let name = shared.disk.place(&path(place.number));
    let error = StorageError::from_io(name, error);
    let undone = place
        .file
        .set_len(place.offset)
        .and_then(|()| place.file.sync_data());
    match undone {
        Ok(()) if error.is_full() => {}
        Ok(()) => shared.refuse(format!("a write failed: {error}")),
        Err(second) => {
            shared.refuse(format!(
                "a write failed: {error}; and it could not be undone: {second}"
            ));
        }
    }
    error
}

fn note(shared: &Shared, place: &Place, first: u64, records: &[&mut Encoded]) {
    let mut segments = shared.segments.lock();
    let Some(segment) = segments.list.last_mut() else {
        return;
    };
    debug_assert_eq!(segment.number, place.number);
    for (record, position) in records.iter().zip(first..) {
        segment.note(position, segment.end_bytes);
        segment.end_bytes += record.len() as u64;
    }
}

impl Shared {
    /// In this order, so that a crash in between never loses the numbering or a needed record:
    /// sync, take off the list, rename or remove, sync the folder, offer for use again.
    pub(crate) fn drop_before(&self, position: Position) -> Result<(), StorageError> {
        let kept_bytes = self.history_bytes.load(Ordering::Relaxed);
        if self.segments.lock().count_droppable(position, kept_bytes) == 0 {
            return Ok(());
        }
        self.sync(Position(self.written.load(Ordering::Acquire)))?;
        let (dropped, mut room): (Vec<Segment>, usize) = {
            let mut segments = self.segments.lock();
            let count = segments.count_droppable(position, kept_bytes);
            let room = self
                .options
                .recycled_max
                .saturating_sub(segments.free.len());
            (segments.list.drain(..count).collect(), room)
        };
        let mut free = Vec::new();
        for segment in dropped {
            let name = path(segment.number);
            let small = segment.file.len().map_err(at(&self.disk, &name))?
                <= self.options.segment_bytes * 2;
            if small && room > 0 {
                room -= 1;
                let to = free_path(segment.number);
                self.disk
                    .rename(&name, &to)
                    .map_err(at(&self.disk, &name))?;
                free.push((to, segment.file));
            } else {
                self.disk.remove(&name).map_err(at(&self.disk, &name))?;
            }
        }
        self.disk.sync_dir(FOLDER).map_err(at(&self.disk, FOLDER))?;
        self.segments.lock().free.append(&mut free);
        Ok(())
    }

    /// Syncs and says so in the log, so that the next start can tell damage from a torn end in
    /// the last records too. A failure costs only that.
    pub(crate) fn close(&self) {
        let newest = self.written.load(Ordering::Acquire);
        if self.sync(Position(newest)).is_err() {
            return;
        }
        if newest <= self.marked {
            return;
        }
        let Some(last) = self.segments.lock().list.last().cloned() else {
            return;
        };
        let Ok(mut mark) = Encoded::new(Kind::Mark, &[]) else {
            return;
        };
        let millis = self.millis.load(Ordering::Acquire);
        mark.seal(newest, newest, last.number, millis);
        if last.file.write_at(last.end_bytes, mark.bytes()).is_err() {
            let _ = last.file.set_len(last.end_bytes);
        }
    }
}
