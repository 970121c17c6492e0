//! The registry of open snapshots. Merges keep the versions that these see.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_storage::Position;

/// The positions at which open snapshots read.
///
/// ```
/// use std::sync::Arc;
/// use windrow_fold::{Position, SnapshotLifetime, Snapshots};
///
/// let snapshots = Arc::new(Snapshots::default());
/// let newest = || Position(9);
/// let old = snapshots.open(SnapshotLifetime::Limited, || Position(5));
/// assert_eq!(snapshots.positions(newest), [Position(5), Position(9)]);
/// drop(old);
/// assert_eq!(snapshots.oldest(newest), Position(9));
/// ```
#[derive(Debug, Default)]
pub struct Snapshots(Mutex<OpenSnapshots>);

#[derive(Debug, Default)]
struct OpenSnapshots {
    next: u64,
    all: BTreeMap<SnapshotKey, OpenSnapshot>,
}

/// Orders snapshots by position, then in the order of opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SnapshotKey {
    position: Position,
    number: u64,
}

#[derive(Debug)]
struct OpenSnapshot {
    since: Instant,
    age: SnapshotLifetime,
    ended: Arc<AtomicBool>,
}

/// How long a snapshot may stay open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotLifetime {
    /// [`Snapshots::end_older`] ends it.
    Limited,
    /// As long as its owner needs it.
    Unlimited,
}

/// A position to read at. Merges keep what it sees until it is dropped or has ended.
#[derive(Debug)]
pub struct Snapshot {
    key: SnapshotKey,
    ended: Arc<AtomicBool>,
    registry: Arc<Snapshots>,
}

impl Snapshots {
    /// Opens a snapshot at the position that `newest` returns. It is called under the lock.
    /// Otherwise a merge could decide in between that no snapshot is at the position.
    pub fn open(
        self: &Arc<Self>,
        age: SnapshotLifetime,
        newest: impl FnOnce() -> Position,
    ) -> Snapshot {
        let mut open = self.0.lock();
        let key = SnapshotKey {
            position: newest(),
            number: open.next,
        };
        open.next += 1;
        let ended = Arc::new(AtomicBool::new(false));
        let entry = OpenSnapshot {
            since: Instant::now(),
            age,
            ended: ended.clone(),
        };
        let before = open.all.insert(key, entry);
        debug_assert!(before.is_none(), "two snapshots at {key:?}");
        Snapshot {
            key,
            ended,
            registry: self.clone(),
        }
    }

    /// Returns the positions of the open snapshots in ascending order, followed by the newest
    /// position. No snapshot will be opened before it.
    pub fn positions(&self, newest: impl FnOnce() -> Position) -> Vec<Position> {
        let open = self.0.lock();
        let mut positions: Vec<Position> = open.all.keys().map(|key| key.position).collect();
        positions.dedup();
        positions.push(newest());
        positions
    }

    /// Returns the oldest of the [positions](Self::positions).
    pub fn oldest(&self, newest: impl FnOnce() -> Position) -> Position {
        let open = self.0.lock();
        let first = open.all.keys().map(|key| key.position).next();
        first.unwrap_or_else(newest)
    }

    /// Ends the limited snapshots that have been open for longer than `limit`. Merges drop what
    /// only these see.
    pub fn end_older(&self, limit: Duration) {
        let mut open = self.0.lock();
        open.all.retain(|_, entry| {
            let ends = entry.age == SnapshotLifetime::Limited && entry.since.elapsed() > limit;
            entry.ended.store(ends, Ordering::Release);
            !ends
        });
    }

    /// Returns the number of open snapshots.
    pub fn count(&self) -> usize {
        self.0.lock().all.len()
    }
}

impl Snapshot {
    /// Returns the position.
    pub fn position(&self) -> Position {
        self.key.position
    }

    /// Returns `true` if the snapshot was ended. What it sees may have been dropped.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut open = self.registry.0.lock();
        let was_open = open.all.remove(&self.key).is_some();
        // An ended snapshot was removed then.
        debug_assert_ne!(was_open, self.has_ended(), "a snapshot at {:?}", self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_open_snapshots_and_the_newest() {
        let snapshots = Arc::new(Snapshots::default());
        assert_eq!(snapshots.positions(|| Position(9)), [9].map(Position));
        assert_eq!(snapshots.oldest(|| Position(9)), Position(9));
        let five = snapshots.open(SnapshotLifetime::Limited, || Position(5));
        let seven = snapshots.open(SnapshotLifetime::Limited, || Position(7));
        let again = snapshots.open(SnapshotLifetime::Limited, || Position(5));
        drop(five);
        assert_eq!(snapshots.positions(|| Position(9)), [5, 7, 9].map(Position));
        assert_eq!(snapshots.oldest(|| Position(9)), Position(5));
        assert_eq!(snapshots.count(), 2);
        drop(again);
        assert_eq!(snapshots.positions(|| Position(9)), [7, 9].map(Position));
        drop(seven);
        assert_eq!(snapshots.positions(|| Position(9)), [9].map(Position));
    }

    #[test]
    fn old_snapshots_end() {
        let snapshots = Arc::new(Snapshots::default());
        let old = snapshots.open(SnapshotLifetime::Limited, || Position(5));
        let lasting = snapshots.open(SnapshotLifetime::Unlimited, || Position(6));
        snapshots.end_older(Duration::from_secs(60));
        assert!(!old.has_ended());
        std::thread::sleep(Duration::from_millis(2));
        snapshots.end_older(Duration::from_millis(1));
        assert!(old.has_ended() && !lasting.has_ended());
        assert_eq!(snapshots.positions(|| Position(9)), [6, 9].map(Position));
        let young = snapshots.open(SnapshotLifetime::Limited, || Position(5));
        drop(old);
        assert!(!young.has_ended());
        assert_eq!(snapshots.positions(|| Position(9)), [5, 6, 9].map(Position));
    }
}
