//! Writing a group into the current segment, beginning new segments, and letting old ones go.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use windrow_invariant::Bug;

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

    /// Writes the records with one write and returns the first's position. All or none. After a bug
    /// the log takes no more writes: what it holds may not be what was to be written.
    pub fn write(
        &mut self,
        shared: &Shared,
        records: &mut [&mut Encoded],
    ) -> Result<u64, StorageError> {
        shared.check_not_refusing()?;
        let written = self.write_all(shared, records);
        if let Err(StorageError::Bug(bug)) = &written {
            shared.refuse(bug.to_string());
        }
        written
    }

    fn write_all(
        &mut self,
        shared: &Shared,
        records: &mut [&mut Encoded],
    ) -> Result<u64, StorageError> {
        self.check_follows(shared.written.load(Ordering::Acquire))?;
        let bytes: usize = records.iter().map(|record| record.len()).sum();
        let place = self.place_for(shared, bytes as u64)?;
        let synced = shared.synced.load(Ordering::Acquire);
        let clock = (shared.options.clock)();
        for (record, position) in records.iter_mut().zip(self.next..) {
            self.millis = next_millis(self.millis, clock, position);
            record.seal(position, synced, place.number, self.millis)?;
        }
        // Before any of them is seen: who reads `written` and then this never reads too little.
        shared.millis.store(self.millis, Ordering::Release);
        let bytes = self.gather(records)?;
        place
            .file
            .write_at(place.offset, bytes)
            .map_err(|error| undo(shared, &place, error))?;
        let first = self.next;
        self.next += records.len() as u64;
        note(shared, &place, first, records)?;
        Ok(first)
    }

    /// Positions have no gaps: the next record follows the last one that was published.
    fn check_follows(&self, written: u64) -> Result<(), Bug> {
        match self.next == written + 1 {
            true => Ok(()),
            false => Err(Bug::new(format!(
                "record {} is to be written after record {written}",
                self.next
            ))),
        }
    }

    /// The bytes of all records, for one write.
    fn gather<'w>(&'w mut self, records: &'w [&mut Encoded]) -> Result<&'w [u8], Bug> {
        if let [alone] = records {
            return alone.bytes();
        }
        self.gathered.clear();
        for record in records {
            self.gathered.extend_from_slice(record.bytes()?);
        }
        Ok(&self.gathered)
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
            None if self.next == 1 => 1,
            None => return Err(no_segment(self.next).into()),
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

#[cold]
fn no_segment(position: u64) -> Bug {
    Bug::new(format!("the log has no segment before record {position}"))
}

/// Fails if the records do not stand at the end of the last segment: the next ones would be written
/// over them.
fn note(shared: &Shared, place: &Place, first: u64, records: &[&mut Encoded]) -> Result<(), Bug> {
    let mut segments = shared.segments.lock();
    let Some(segment) = segments.list.last_mut() else {
        return Err(no_segment(first));
    };
    if (segment.number, segment.end_bytes) != (place.number, place.offset) {
        return Err(Bug::new(format!(
            "record {first} stands at byte {} of segment {}, but segment {} ends at byte {}",
            place.offset, place.number, segment.number, segment.end_bytes
        )));
    }
    for (record, position) in records.iter().zip(first..) {
        segment.note(position, segment.end_bytes);
        segment.end_bytes += record.len() as u64;
    }
    Ok(())
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
    /// the last records too. A failure costs only that. A log that refuses writes gets no mark: what
    /// stands behind its last record is not known.
    pub(crate) fn close(&self) {
        let newest = self.written.load(Ordering::Acquire);
        if self.sync(Position(newest)).is_err() || self.check_not_refusing().is_err() {
            return;
        }
        if newest <= self.marked {
            return;
        }
        // A bug here has been reported, and costs as much as a failure.
        let Ok((last, mark)) = self.mark(newest) else {
            return;
        };
        if last.file.write_at(last.end_bytes, &mark).is_err() {
            // Where this fails, too, the next start cuts the rest of the mark off.
            let _ = last.file.set_len(last.end_bytes);
        }
    }

    /// The mark of a close after record `newest`, and the segment that it goes into.
    fn mark(&self, newest: u64) -> Result<(Segment, Vec<u8>), StorageError> {
        let last = self.segments.lock().list.last().cloned();
        let last = last.ok_or_else(|| no_segment(newest))?;
        let mut mark = Encoded::new(Kind::Mark, &[])?;
        let millis = self.millis.load(Ordering::Acquire);
        mark.seal(newest, newest, last.number, millis)?;
        let bytes = mark.bytes()?.to_vec();
        Ok((last, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Log, MemoryDisk, Storage, StorageOptions};
    use windrow_invariant::tolerate_bugs;

    fn open(disk: &MemoryDisk) -> Storage {
        Storage::open(Arc::new(disk.clone()), StorageOptions::default()).unwrap()
    }

    fn append(log: &Log, payload: &[u8]) -> Result<Position, StorageError> {
        log.append(&[payload], |_| {})
    }

    fn payloads(log: &Log) -> Vec<Vec<u8>> {
        let records = log.read_from(Position(1));
        records.map(|record| record.unwrap().payload).collect()
    }

    /// A log that had lost its list of segments skipped the note of where a record ended, and wrote
    /// the next record over it. Now it refuses, and a start finds all that was acknowledged.
    fn check(break_it: fn(&Shared), what: &str) {
        let disk = MemoryDisk::new();
        let storage = open(&disk);
        append(&storage.log, b"one").unwrap();
        break_it(&storage.log.shared);
        let broken = tolerate_bugs(|| append(&storage.log, b"two")).unwrap_err();
        assert!(matches!(broken, StorageError::Bug(_)), "{broken}");
        assert!(broken.to_string().contains(what), "{broken}");
        assert!(!storage.log.takes_writes());
        let refused = append(&storage.log, b"three").unwrap_err();
        let StorageError::RefusingWrites { because } = refused else {
            panic!("{refused}");
        };
        assert!(because.contains(what), "{because}");
        assert!(storage.catalog.change(Vec::new(), |_| {}).is_err());
        drop(storage);
        let storage = open(&disk);
        assert_eq!(payloads(&storage.log), [b"one"]);
        assert_eq!(append(&storage.log, b"two").unwrap(), Position(2));
    }

    #[test]
    fn after_a_bug_the_log_refuses_writes() {
        check(
            |shared| shared.segments.lock().list.clear(),
            "has no segment before record 2",
        );
        check(
            |shared| shared.writer.lock().next = 7,
            "record 7 is to be written after record 1",
        );
        check(
            |shared| shared.written.store(0, Ordering::Release),
            "record 2 is to be written after record 0",
        );
    }

    /// A follower of a log without segments was told that record 0 is the first that is kept.
    #[test]
    fn a_follower_of_a_log_without_segments_meets_a_bug() {
        let storage = open(&MemoryDisk::new());
        append(&storage.log, b"one").unwrap();
        let mut follower = storage.log.follow(Position(1));
        let found = follower.read().unwrap().unwrap();
        assert_eq!(found.content, Content::Data(b"one".to_vec()));
        storage.log.shared.segments.lock().list.clear();
        let mut follower = storage.log.follow(Position(1));
        let broken = tolerate_bugs(|| follower.read()).unwrap_err();
        assert!(matches!(broken, StorageError::Bug(_)), "{broken}");
        tolerate_bugs(|| drop(storage));
    }

    /// A sync of a record that is not written yet returned at once, as if the record were durable.
    #[test]
    fn what_is_not_written_cannot_be_synced() {
        let storage = open(&MemoryDisk::new());
        let position = append(&storage.log, b"one").unwrap();
        let next = position.next();
        let broken = tolerate_bugs(|| storage.log.sync(next)).unwrap_err();
        assert!(matches!(broken, StorageError::Bug(_)), "{broken}");
        storage.log.sync(position).unwrap();
        assert!(storage.log.takes_writes());
    }
}
