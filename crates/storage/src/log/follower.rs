//! The log followed as it grows, from any record that is still kept: for those who want to know what
//! has changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use windrow_invariant::Bug;

use super::clock::ClusterTime;
use super::record::{Found, HEADER_BYTES, Header, Kind};
use super::recover::damaged;
use super::segment::path;
use super::{Log, Position, Shared};
use crate::disk::DiskFile;
use crate::error::StorageError;
use crate::folder::at;

/// So much of a segment is read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// A record as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub position: Position,
    /// When, in milliseconds since 1970.
    pub millis: u64,
    pub content: Content,
}

impl Written {
    pub fn time(&self) -> ClusterTime {
        ClusterTime::of(self.position, self.millis)
    }
}

/// The payload of a record, by what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Data(Vec<u8>),
    Catalog(Vec<u8>),
}

/// See the module. It holds a small part of the log in memory, and keeps nothing of it from being let
/// go of.
pub struct Follower {
    shared: Arc<Shared>,
    /// The next record.
    next: u64,
    segment: Option<Open>,
}

/// The part of a segment that is in memory.
struct Open {
    number: u64,
    /// Where `bytes` stand in the file.
    offset: u64,
    bytes: Vec<u8>,
    /// What has been read of them.
    at: usize,
}

/// A place in a segment file to read on from.
struct Place {
    number: u64,
    file: Arc<dyn DiskFile>,
    offset: u64,
    end: u64,
}

impl Follower {
    /// The next record, once it is there. Error `NotKept` where it has been let go of.
    pub fn read(&mut self) -> Result<Option<Written>, StorageError> {
        if self.next > self.shared.written.load(Ordering::Acquire) {
            return Ok(None);
        }
        if let Some(found) = self.take()? {
            return Ok(Some(found));
        }
        // The place that is known may be some chunks before the record.
        loop {
            self.fill()?;
            if let Some(found) = self.take()? {
                return Ok(Some(found));
            }
            if self.segment.as_ref().is_none_or(|open| open.at == 0) {
                return Err(self.missing());
            }
        }
    }

    /// The position of the next record.
    pub fn position(&self) -> Position {
        Position(self.next)
    }

    /// The next record out of memory.
    fn take(&mut self) -> Result<Option<Written>, StorageError> {
        let Some(open) = &mut self.segment else {
            return Ok(None);
        };
        while let Ok(found) = Found::read(&open.bytes, open.at, open.number) {
            let position = found.header.position;
            let is_passed = position < self.next || found.header.kind == Kind::Mark;
            if !is_passed && position != self.next {
                return Ok(None);
            }
            let at = open.at;
            open.at = found.end;
            if is_passed {
                continue;
            }
            let payload = found.payload().map_err(|what| {
                let offset = open.offset as usize + at;
                damaged(&self.shared.disk, open.number, offset, position, what)
            })?;
            self.next += 1;
            return Ok(Some(Written {
                position: Position(position),
                millis: found.header.millis,
                content: match found.header.kind {
                    Kind::Catalog => Content::Catalog(payload),
                    Kind::Data | Kind::Mark => Content::Data(payload),
                },
            }));
        }
        Ok(None)
    }

    /// Reads on where the next record stands.
    fn fill(&mut self) -> Result<(), StorageError> {
        let place = self.place()?;
        let left = place.end.checked_sub(place.offset).ok_or_else(|| {
            Bug::new(format!(
                "record {} is looked for at byte {} of segment {}, which ends at byte {}",
                self.next, place.offset, place.number, place.end
            ))
        })?;
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        // The buffer is used again.
        let mut bytes = self.segment.take().map_or(Vec::new(), |open| open.bytes);
        read_at(self, &place, left.min(CHUNK_BYTES), &mut bytes)?;
        // Where there is no header, `take` finds none and the record is missing.
        let needed = Header::read(&bytes, 0, place.number)
            .map_or(0, |header| HEADER_BYTES + header.padded_bytes());
        if needed > bytes.len() {
            read_at(self, &place, left.min(needed), &mut bytes)?;
        }
        self.segment = Some(Open {
            number: place.number,
            offset: place.offset,
            bytes,
            at: 0,
        });
        Ok(())
    }

    fn place(&self) -> Result<Place, StorageError> {
        let segments = self.shared.segments.lock();
        let Some(segment) = segments.of(self.next) else {
            let first = segments.first().ok_or_else(|| self.no_segment())?;
            return Err(self.not_kept(first));
        };
        let offset = match &self.segment {
            Some(open) if open.number == segment.number => open.offset + open.at as u64,
            _ => segment.mark_before(self.next).1,
        };
        Ok(Place {
            number: segment.number,
            file: segment.file.clone(),
            offset,
            end: segment.end_bytes,
        })
    }

    fn not_kept(&self, first: Position) -> StorageError {
        StorageError::NotKept {
            position: self.next,
            first: first.0,
        }
    }

    /// A log that has a record has a segment.
    #[cold]
    fn no_segment(&self) -> Bug {
        let position = self.next;
        Bug::new(format!(
            "the log has no segment, and record {position} is written"
        ))
    }

    /// Why a record that should be there is not: its segment was let go of meanwhile, or is damaged.
    fn missing(&self) -> StorageError {
        let first = self.shared.segments.lock().first();
        let (Some(first), Some(open)) = (first, &self.segment) else {
            return self.no_segment().into();
        };
        if first.0 > self.next {
            return self.not_kept(first);
        }
        let (number, offset) = (open.number, open.offset as usize + open.at);
        let what = "there is no record header whose checksum matches";
        damaged(&self.shared.disk, number, offset, self.next, what)
    }
}

fn read_at(
    follower: &Follower,
    place: &Place,
    count: usize,
    bytes: &mut Vec<u8>,
) -> Result<(), StorageError> {
    bytes.resize(count, 0);
    let read = place.file.read_at(place.offset, bytes);
    let read = read.map_err(at(&follower.shared.disk, &path(place.number)))?;
    bytes.truncate(read);
    Ok(())
}

/// Where those wait who follow the log.
#[derive(Default)]
pub(crate) struct Arrival {
    waiting: AtomicUsize,
    lock: Mutex<()>,
    arrived: Condvar,
}

impl Shared {
    /// Called after `written` has grown; costs one load where nobody waits.
    ///
    /// The order here is: store `written`, look at `waiting`; that of a waiter: add to `waiting`, look
    /// at `written`. Sequentially consistent, one of the two sees the other.
    pub(crate) fn wake_followers(&self) {
        if self.arrival.waiting.load(Ordering::SeqCst) > 0 {
            // A waiter between its look and its wait holds the lock.
            drop(self.arrival.lock.lock());
            self.arrival.arrived.notify_all();
        }
    }

    fn wait_beyond(&self, seen: u64, at_most: Duration) -> bool {
        let has_more = || self.written.load(Ordering::SeqCst) > seen;
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
    /// All records from `position` on, as they come.
    pub fn follow(&self, position: Position) -> Follower {
        Follower {
            shared: self.shared.clone(),
            next: position.0.max(1),
            segment: None,
        }
    }

    /// Waits until something was written after `seen`, at most so long; whether it was.
    pub fn wait_beyond(&self, seen: Position, at_most: Duration) -> bool {
        self.shared.wait_beyond(seen.0, at_most)
    }

    /// The first record that can be followed: it is kept, and says when it was written.
    pub fn history_first(&self) -> Position {
        self.first().max(Position(self.shared.untimed).next())
    }

    /// The time of the newest record. Everything up to this time is written, and nothing more comes at
    /// or before it.
    pub fn newest_time(&self) -> ClusterTime {
        // In this order: a newer second with an older position is still before what comes next.
        let written = self.written();
        ClusterTime::of(written, self.shared.millis.load(Ordering::Acquire))
    }

    /// The first record whose time is not before `time`; one past the newest where there is none.
    /// Where its time is before what is kept, the first that is.
    pub fn position_at(&self, time: ClusterTime) -> Result<Position, StorageError> {
        if time > self.newest_time() {
            return Ok(self.written().next());
        }
        if let Some(position) = self.position_of(time)? {
            return Ok(position);
        }
        let mut from = self.history_first();
        let firsts: Vec<u64> = self.shared.segments.lock().firsts();
        for first in firsts.into_iter().rev().map(Position) {
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

    /// The record that was written at exactly this time.
    pub fn position_of(&self, time: ClusterTime) -> Result<Option<Position>, StorageError> {
        let written = self.written().0;
        let high = written >> 32 << 32;
        let same_round = high | u64::from(time.increment());
        let position = match same_round <= written {
            true => Some(same_round),
            false => same_round.checked_sub(1 << 32),
        };
        let position = position.map(Position);
        let Some(position) = position.filter(|it| *it >= self.history_first()) else {
            return Ok(None);
        };
        let found = self.time_of(position)?;
        Ok(found.filter(|found| *found == time).map(|_| position))
    }

    /// None where there is no such record yet.
    fn time_of(&self, position: Position) -> Result<Option<ClusterTime>, StorageError> {
        let record = self.follow(position).read()?;
        Ok(record.map(|record| record.time()))
    }
}
