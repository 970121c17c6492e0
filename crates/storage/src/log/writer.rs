//! Writing groups into the current segment, starting new segments, dropping old ones, and closing
//! the log.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use windrow_invariant::Bug;

use super::clock::next_millis;
use super::record::{EncodedRecord, Kind, Seal};
use super::segment::{FOLDER, Segment, SegmentHeader, free_path, path};
use super::{Position, Shared};
use crate::disk::{DiskFile, at};
use crate::encryption::{Cipher, FileKind, new_file_key};
use crate::error::StorageError;

/// The state of the leader of a group.
pub(crate) struct Writer {
    /// The position of the next record.
    next: Position,
    /// The time of the newest record, in milliseconds since 1970.
    millis: u64,
    /// The buffer for the bytes of a group of several records.
    gathered: Vec<u8>,
    /// True if the next record begins a new segment even if the current one has room.
    segment_ended: bool,
}

/// The place of a group in a segment.
struct WritePlace {
    number: u64,
    file: Arc<dyn DiskFile>,
    offset: u64,
    /// The key of an encrypted segment.
    cipher: Option<Arc<Cipher>>,
}

impl Writer {
    /// Returns the writer of a log whose newest record is `newest`, written at `millis`.
    pub fn after(newest: Position, millis: u64) -> Self {
        Self {
            next: newest.next(),
            millis,
            gathered: Vec::new(),
            segment_ended: false,
        }
    }

    /// Makes the next record the first of a new segment.
    pub fn end_segment(&mut self) {
        self.segment_ended = true;
    }

    /// Writes the records of a group and returns the position of the first one. Either all of them
    /// are written or none:
    ///
    /// 1. Choose the place: the end of the current segment, or a new segment.
    /// 2. Seal each record with its position and time.
    /// 3. Write all bytes with one write. If it fails, undo it.
    /// 4. Advance the end of the segment.
    ///
    /// After a bug the log refuses writes, because its content may be wrong.
    pub fn write(
        &mut self,
        shared: &Shared,
        records: &mut [&mut EncodedRecord],
    ) -> Result<Position, StorageError> {
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
        records: &mut [&mut EncodedRecord],
    ) -> Result<Position, StorageError> {
        self.check_follows(Position(shared.written.load(Ordering::Acquire)))?;
        let bytes: usize = records.iter().map(|record| record.len()).sum();
        let place = self.place_for(shared, bytes as u64)?;
        let synced = Position(shared.synced.load(Ordering::Acquire));
        let clock = (shared.options.clock)();
        for (record, position) in records.iter_mut().zip((self.next.0..).map(Position)) {
            let clock = record.millis().unwrap_or(clock);
            self.millis = next_millis(self.millis, clock, position);
            let keys = place.cipher.as_deref().zip(shared.keys.as_ref());
            record.seal(&Seal {
                position,
                synced,
                segment: place.number,
                millis: self.millis,
                cipher: keys.map(|(cipher, keys)| (cipher, keys.next_nonce())),
            })?;
        }
        // Stored before `written` advances. A reader that loads `written` and then `millis`
        // therefore gets a time that is not before that of the record.
        shared.millis.store(self.millis, Ordering::Release);
        let bytes = self.gather(records)?;
        place
            .file
            .write_at(place.offset, bytes)
            .map_err(|error| undo(shared, &place, error))?;
        let first = self.next;
        self.next = Position(first.0 + records.len() as u64);
        advance_end(shared, &place, first, records)?;
        Ok(first)
    }

    /// Fails if the next record does not follow the last published one: positions have no gaps.
    fn check_follows(&self, written: Position) -> Result<(), Bug> {
        if self.next == written.next() {
            return Ok(());
        }
        Err(Bug::new(format!(
            "record {} is to be written after record {written}",
            self.next
        )))
    }

    /// Returns the bytes of all records, for one write.
    fn gather<'w>(&'w mut self, records: &'w [&mut EncodedRecord]) -> Result<&'w [u8], Bug> {
        if let [alone] = records {
            return alone.bytes();
        }
        self.gathered.clear();
        for record in records {
            self.gathered.extend_from_slice(record.bytes()?);
        }
        Ok(&self.gathered)
    }

    fn place_for(&mut self, shared: &Shared, bytes: u64) -> Result<WritePlace, StorageError> {
        let current = {
            let segments = shared.segments.lock();
            segments.list.last().map(|last| {
                let offset = last.end_bytes;
                (
                    WritePlace {
                        number: last.number,
                        file: last.file.clone(),
                        offset,
                        cipher: last.cipher.clone(),
                    },
                    last.first,
                )
            })
        };
        let number = match current {
            Some((place, first)) => {
                let has_records = self.next > first;
                let has_room = place.offset + bytes <= shared.options.segment_bytes;
                if !has_records || (has_room && !self.segment_ended) {
                    return Ok(place);
                }
                place.number + 1
            }
            None if self.next == Position(1) => 1,
            None => return Err(no_segment(self.next).into()),
        };
        let place = self.begin_segment(shared, number)?;
        self.segment_ended = false;
        Ok(place)
    }

    fn begin_segment(&self, shared: &Shared, number: u64) -> Result<WritePlace, StorageError> {
        let file = take_file(shared, number)?;
        let synced = Position(shared.synced.load(Ordering::Acquire));
        let created = new_file_key(shared.keys.as_deref(), FileKind::Segment, number);
        let key = created.map_err(at(&shared.disk, &path(number)))?;
        let cipher = key.cipher.map(Arc::new);
        let header = SegmentHeader {
            number,
            first: self.next,
            synced,
            key_field: key.header_field,
        }
        .encode();
        if let Err(error) = file.write_at(0, &header) {
            // The file is not in use yet. The next start would take it for a torn segment.
            let _ = shared.disk.remove(&path(number));
            return Err(StorageError::from_io(
                shared.disk.place(&path(number)),
                error,
            ));
        }
        let segment = Segment::new(number, self.next, file.clone(), cipher.clone());
        let offset = segment.end_bytes;
        let mut segments = shared.segments.lock();
        segments.list.push(segment);
        segments.names_unsynced = true;
        Ok(WritePlace {
            number,
            file,
            offset,
            cipher,
        })
    }
}

/// Returns the file of a new segment: a dropped file with a new name, or a new file. A dropped file
/// keeps its bytes, because an overwrite needs no allocation of blocks.
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

/// Undoes a failed write durably. Without this, a refused record could be in the log after a crash.
/// The log refuses writes afterwards, except if the disk was full and the undo succeeded.
fn undo(shared: &Shared, place: &WritePlace, error: std::io::Error) -> StorageError {
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
fn no_segment(position: Position) -> Bug {
    Bug::new(format!("the log has no segment before record {position}"))
}

/// Advances the end of the last segment by the records of a group. Fails if the group was not
/// written at its end: the next group would overwrite it.
fn advance_end(
    shared: &Shared,
    place: &WritePlace,
    first: Position,
    records: &[&mut EncodedRecord],
) -> Result<(), Bug> {
    let mut segments = shared.segments.lock();
    let Some(segment) = segments.list.last_mut() else {
        return Err(no_segment(first));
    };
    if (segment.number, segment.end_bytes) != (place.number, place.offset) {
        return Err(Bug::new(format!(
            "record {first} is at byte {} of segment {}, but segment {} ends at byte {}",
            place.offset, place.number, segment.number, segment.end_bytes
        )));
    }
    for (record, position) in records.iter().zip((first.0..).map(Position)) {
        segment.index_record(position, segment.end_bytes);
        segment.end_bytes += record.len() as u64;
    }
    Ok(())
}

impl Shared {
    /// Drops the segments whose records are all before `position`. A crash between two steps loses
    /// neither the numbering of the log nor a record that is still needed:
    ///
    /// 1. Sync the log. The header of the next segment, which continues the numbering, is then
    ///    durable.
    /// 2. Remove the segments from the list, so that no reader opens them.
    /// 3. Rename each file for reuse, or remove it.
    /// 4. Sync the folder. A reused file must not appear under its old name after a crash.
    /// 5. Offer the renamed files for reuse.
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

    /// Syncs the log and writes an end marker. With it, the next start can distinguish damage from
    /// a torn end for the last records too. If this fails, only that ability is lost. A log that
    /// refuses writes gets no end marker, because the bytes after its last record are unknown.
    pub(crate) fn close(&self) {
        let newest = Position(self.written.load(Ordering::Acquire));
        if self.sync(newest).is_err() || self.check_not_refusing().is_err() {
            return;
        }
        if newest <= self.ended_at {
            return;
        }
        // The bug was already reported. The log is closed without an end marker.
        let Ok((last, marker)) = self.end_marker(newest) else {
            return;
        };
        if last.file.write_at(last.end_bytes, &marker).is_err() {
            // If this fails too, the next start cuts off the incomplete end marker.
            let _ = last.file.set_len(last.end_bytes);
        }
    }

    /// Returns the last segment and the bytes of the end marker after record `newest`.
    fn end_marker(&self, newest: Position) -> Result<(Segment, Vec<u8>), StorageError> {
        let last = self.segments.lock().list.last().cloned();
        let last = last.ok_or_else(|| no_segment(newest))?;
        let keys = last.cipher.as_deref().zip(self.keys.as_ref());
        let mut marker = EncodedRecord::new(Kind::EndMarker, &[], keys.is_some())?;
        let millis = self.millis.load(Ordering::Acquire);
        marker.seal(&Seal {
            position: newest,
            synced: newest,
            segment: last.number,
            millis,
            cipher: keys.map(|(cipher, keys)| (cipher, keys.next_nonce())),
        })?;
        let bytes = marker.bytes()?.to_vec();
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

    /// A log that had lost its list of segments did not advance the end of the segment, and wrote
    /// the next record over the last one. Now it refuses writes, and a start finds all acknowledged
    /// records.
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
    fn log_refuses_writes_after_a_bug() {
        check(
            |shared| shared.segments.lock().list.clear(),
            "has no segment before record 2",
        );
        check(
            |shared| shared.writer.lock().next = Position(7),
            "record 7 is to be written after record 1",
        );
        check(
            |shared| shared.written.store(0, Ordering::Release),
            "record 2 is to be written after record 0",
        );
    }

    /// A follower of a log without segments got the error that the log begins with record 0.
    #[test]
    fn follower_of_log_without_segments_gets_a_bug() {
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
    fn sync_of_unwritten_record_fails() {
        let storage = open(&MemoryDisk::new());
        let position = append(&storage.log, b"one").unwrap();
        let next = position.next();
        let broken = tolerate_bugs(|| storage.log.sync(next)).unwrap_err();
        assert!(matches!(broken, StorageError::Bug(_)), "{broken}");
        storage.log.sync(position).unwrap();
        assert!(storage.log.takes_writes());
    }
}
