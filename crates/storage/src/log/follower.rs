//! Reading the log while it grows, from any record that was not dropped. Change streams use this.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use windrow_invariant::Bug;

use super::clock::ClusterTime;
use super::record::{HEADER_BYTES, Header, Kind, StoredPayload, StoredRecord};
use super::recover::damaged;
use super::segment::path;
use super::{Log, Position, Shared};
use crate::disk::{DiskFile, at};
use crate::encryption::Cipher;
use crate::error::StorageError;

/// The number of bytes of a segment that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A record that a [`Follower`] read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowedRecord {
    /// The position of the record.
    pub position: Position,
    /// The time of the write, in milliseconds since 1970. 0 if an earlier version wrote the record.
    pub millis: u64,
    /// The payload of the record.
    pub content: Content,
}

impl FollowedRecord {
    /// Returns the cluster time of the record.
    pub fn time(&self) -> ClusterTime {
        ClusterTime::from_record(self.position, self.millis)
    }
}

/// The payload of a record, by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The payload of [`Log::append`].
    Data(Vec<u8>),
    /// A change of the catalog, for [`Catalog::read_change`](crate::Catalog::read_change).
    Catalog(Vec<u8>),
}

/// A reader of all records of the log from a position on, also of those that are written later. It
/// has a small part of the log in memory. It does not prevent segments from being dropped.
/// [`Log::follow`] creates it.
pub struct Follower {
    shared: Arc<Shared>,
    /// The position of the next record.
    next: Position,
    segment: Option<SegmentWindow>,
}

/// A part of a segment in memory.
struct SegmentWindow {
    number: u64,
    /// The offset of `bytes` in the file.
    offset: u64,
    bytes: Vec<u8>,
    /// The offset of the next record in `bytes`.
    at: usize,
    /// The key of an encrypted segment.
    cipher: Option<Arc<Cipher>>,
}

/// Makes the result of a read of a record. The error describes the defect.
type Decode<T> = fn(&StoredRecord<'_>, Option<&Cipher>) -> Result<T, &'static str>;

/// The place in a segment file to read next.
struct ReadPlace {
    number: u64,
    file: Arc<dyn DiskFile>,
    offset: u64,
    /// The end of the segment's records.
    end: u64,
    /// The key of an encrypted segment.
    cipher: Option<Arc<Cipher>>,
}

impl Follower {
    /// Returns the next record, or `None` if it is not written yet.
    ///
    /// # Errors
    /// Fails with `NotKept` if the record was dropped, and with `Damaged` if it cannot be read.
    pub fn read(&mut self) -> Result<Option<FollowedRecord>, StorageError> {
        self.read_with(|record, cipher| {
            let payload = record.payload(cipher)?;
            Ok(FollowedRecord {
                position: record.header.position,
                millis: record.header.millis,
                content: match record.header.kind {
                    Kind::Catalog => Content::Catalog(payload),
                    Kind::Data | Kind::EndMarker => Content::Data(payload),
                },
            })
        })
    }

    /// Returns the position of the next record.
    pub fn position(&self) -> Position {
        self.next
    }

    /// Returns the next record as it is stored, after decryption, or `None` if it is not written
    /// yet.
    ///
    /// Fails as [`read`](Follower::read) does.
    pub(crate) fn read_stored(&mut self) -> Result<Option<StoredPayload>, StorageError> {
        self.read_with(|record, cipher| record.stored_payload(cipher))
    }

    /// Returns what `decode` makes of the next record, or `None` if it is not written yet.
    fn read_with<T>(&mut self, decode: Decode<T>) -> Result<Option<T>, StorageError> {
        if self.next.0 > self.shared.written.load(Ordering::Acquire) {
            return Ok(None);
        }
        if let Some(found) = self.take(decode)? {
            return Ok(Some(found));
        }
        // The indexed place may be several chunks before the record.
        loop {
            self.fill()?;
            if let Some(found) = self.take(decode)? {
                return Ok(Some(found));
            }
            if self.segment.as_ref().is_none_or(|open| open.at == 0) {
                return Err(self.missing());
            }
        }
    }

    /// Returns what `decode` makes of the next record if it is in memory as a whole.
    fn take<T>(&mut self, decode: Decode<T>) -> Result<Option<T>, StorageError> {
        let Some(open) = &mut self.segment else {
            return Ok(None);
        };
        while let Ok(found) = StoredRecord::read(&open.bytes, open.at, open.number) {
            let position = found.header.position;
            let is_passed = position < self.next || found.header.kind == Kind::EndMarker;
            if !is_passed && position != self.next {
                return Ok(None);
            }
            let at = open.at;
            open.at = found.end;
            if is_passed {
                continue;
            }
            let decoded = decode(&found, open.cipher.as_deref()).map_err(|what| {
                let offset = open.offset as usize + at;
                damaged(&self.shared.disk, open.number, offset, position, what)
            })?;
            self.next = self.next.next();
            return Ok(Some(decoded));
        }
        Ok(None)
    }

    /// Reads the part of the segment with the next record into memory.
    fn fill(&mut self) -> Result<(), StorageError> {
        let place = self.place()?;
        let left = place.end.checked_sub(place.offset).ok_or_else(|| {
            Bug::new(format!(
                "record {} is expected at byte {} of segment {}, which ends at byte {}",
                self.next, place.offset, place.number, place.end
            ))
        })?;
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        // Reuses the buffer.
        let mut bytes = self.segment.take().map_or(Vec::new(), |open| open.bytes);
        read_at(self, &place, left.min(CHUNK_BYTES), &mut bytes)?;
        // If there is no header, `take` returns `None`, and `read` reports the record as missing.
        let needed = Header::read(&bytes, 0, place.number)
            .map_or(0, |header| HEADER_BYTES + header.padded_bytes());
        if needed > bytes.len() {
            read_at(self, &place, left.min(needed), &mut bytes)?;
        }
        self.segment = Some(SegmentWindow {
            number: place.number,
            offset: place.offset,
            bytes,
            at: 0,
            cipher: place.cipher,
        });
        Ok(())
    }

    fn place(&self) -> Result<ReadPlace, StorageError> {
        let segments = self.shared.segments.lock();
        let Some(segment) = segments.find(self.next) else {
            let first = segments.first().ok_or_else(|| self.no_segment())?;
            return Err(self.not_kept(first));
        };
        let offset = match &self.segment {
            Some(open) if open.number == segment.number => open.offset + open.at as u64,
            _ => segment.indexed_before(self.next).offset,
        };
        Ok(ReadPlace {
            number: segment.number,
            file: segment.file.clone(),
            offset,
            end: segment.end_bytes,
            cipher: segment.cipher.clone(),
        })
    }

    fn not_kept(&self, first: Position) -> StorageError {
        StorageError::NotKept {
            position: self.next,
            first,
        }
    }

    /// The error of a log with records and without a segment.
    #[cold]
    fn no_segment(&self) -> Bug {
        let position = self.next;
        Bug::new(format!(
            "the log has no segment, and record {position} is written"
        ))
    }

    /// Returns the error of a record that was not found at its place: its segment was dropped
    /// during the read, or it is damaged.
    fn missing(&self) -> StorageError {
        let first = self.shared.segments.lock().first();
        let (Some(first), Some(open)) = (first, &self.segment) else {
            return self.no_segment().into();
        };
        if first > self.next {
            return self.not_kept(first);
        }
        let (number, offset) = (open.number, open.offset as usize + open.at);
        let what = "there is no record header whose checksum matches";
        damaged(&self.shared.disk, number, offset, self.next, what)
    }
}

fn read_at(
    follower: &Follower,
    place: &ReadPlace,
    count: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), StorageError> {
    bytes.resize(count, 0);
    let read = place.file.read_at(place.offset, bytes);
    let read = read.map_err(at(&follower.shared.disk, &path(place.number)))?;
    bytes.truncate(read);
    Ok(())
}

/// The threads that wait for the log to grow.
#[derive(Default)]
pub(crate) struct Arrival {
    waiting: AtomicUsize,
    lock: Mutex<()>,
    arrived: Condvar,
}

impl Shared {
    /// Wakes the waiters after `written` has grown. If no thread waits, this costs one load.
    ///
    /// A waiter must not sleep although the log has grown. The two sides are sequentially
    /// consistent, so at least one of them sees the store of the other:
    ///
    /// 1. The leader stores `written`, then reads `waiting`.
    /// 2. The waiter increments `waiting`, then reads `written`.
    pub(crate) fn wake_followers(&self) {
        if self.arrival.waiting.load(Ordering::SeqCst) > 0 {
            // A waiter holds the lock from its read of `written` until it sleeps. The notification
            // must come after that.
            drop(self.arrival.lock.lock());
            self.arrival.arrived.notify_all();
        }
    }

    fn wait_beyond(&self, seen: Position, at_most: Duration) -> bool {
        let has_more = || self.written.load(Ordering::SeqCst) > seen.0;
        if has_more() {
            return true;
        }
        let arrival = &self.arrival;
        let mut lock = arrival.lock.lock();
        arrival.waiting.fetch_add(1, Ordering::SeqCst);
        if !has_more() {
            arrival.arrived.wait_for(&mut lock, at_most);
        }
        arrival.waiting.fetch_sub(1, Ordering::SeqCst);
        has_more()
    }
}

impl Log {
    /// Returns a follower of the log from `position` on.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use windrow_storage::{Content, MemoryDisk, Position, Storage, StorageOptions};
    ///
    /// let storage = Storage::open(Arc::new(MemoryDisk::new()), StorageOptions::default())?;
    /// let mut follower = storage.log.follow(Position(1));
    /// assert_eq!(follower.read()?, None);
    ///
    /// storage.log.append(&[b"a record"], |_position| {})?;
    /// let record = follower.read()?.unwrap();
    /// assert_eq!(record.content, Content::Data(b"a record".to_vec()));
    /// # Ok::<(), windrow_storage::StorageError>(())
    /// ```
    pub fn follow(&self, position: Position) -> Follower {
        Follower {
            shared: self.shared.clone(),
            next: position.max(Position(1)),
            segment: None,
        }
    }

    /// Waits until a record after `seen` is written, or until `at_most` has passed. Returns `true`
    /// if there is such a record.
    pub fn wait_beyond(&self, seen: Position, at_most: Duration) -> bool {
        self.shared.wait_beyond(seen, at_most)
    }

    /// Ends the waits in [`Log::wait_beyond`], although the log has not grown.
    pub(crate) fn wake_followers(&self) {
        self.shared.wake_followers();
    }

    /// Returns the first record that can be followed: it was not dropped, and it has a time. If
    /// there is none, returns the position of the next record.
    pub fn history_first(&self) -> Position {
        self.first().max(self.shared.untimed.next())
    }

    /// Returns a cluster time such that all written records are at or before it, and all later
    /// records are after it. This is the time of the newest record, or a later one if a write is
    /// running or has failed.
    pub fn newest_time(&self) -> ClusterTime {
        // `written` is read first. A time made of an older position and a newer second is still
        // before that of the next record.
        let written = self.written();
        ClusterTime::from_record(written, self.shared.millis.load(Ordering::Acquire))
    }

    /// Returns the position of the first record whose time is at or after `time`. If there is none,
    /// returns the position of the next record. If `time` is before the history, returns the first
    /// record of the [history](Log::history_first).
    ///
    /// # Errors
    /// Fails if the log cannot be read.
    pub fn position_at(&self, time: ClusterTime) -> Result<Position, StorageError> {
        if time > self.newest_time() {
            return Ok(self.written().next());
        }
        if let Some(position) = self.position_of(time)? {
            return Ok(position);
        }
        let mut from = self.history_first();
        let firsts = self.shared.segments.lock().firsts();
        for first in firsts.into_iter().rev() {
            if first >= from && self.time_of(first)?.is_some_and(|it| it <= time) {
                from = first;
                break;
            }
        }
        let mut follower = self.follow(from);
        while let Some(record) = follower.read()? {
            if record.time() >= time {
                return Ok(record.position);
            }
        }
        Ok(follower.position())
    }

    /// Returns the position of the record whose time is exactly `time`. Returns `None` if there is
    /// none in the history.
    ///
    /// The lowest 32 bits of the position are those of `time`. The highest 32 bits are those of the
    /// newest record, or one less if that position is not written yet.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub fn position_of(&self, time: ClusterTime) -> Result<Option<Position>, StorageError> {
        let written = self.written().0;
        let high = written >> 32 << 32;
        let candidate = high | u64::from(time.increment());
        let position = if candidate <= written {
            Some(candidate)
        } else {
            candidate.checked_sub(1 << 32)
        };
        let position = position.map(Position);
        let Some(position) = position.filter(|it| *it >= self.history_first()) else {
            return Ok(None);
        };
        let found = self.time_of(position)?;
        Ok(found.filter(|found| *found == time).map(|_| position))
    }

    /// Returns the time of a record, or `None` if it is not written yet.
    fn time_of(&self, position: Position) -> Result<Option<ClusterTime>, StorageError> {
        let record = self.follow(position).read()?;
        Ok(record.map(|record| record.time()))
    }
}
