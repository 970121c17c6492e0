//! Which positions are being read: what a merge must keep.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_storage::Position;

/// The positions that open snapshots read at.
#[derive(Debug, Default)]
pub struct Snapshots(Mutex<OpenSnapshots>);

#[derive(Debug, Default)]
struct OpenSnapshots {
    next: u64,
    /// By position, then in the order in which they were opened.
    all: BTreeMap<(Position, u64), OpenSnapshot>,
}

#[derive(Debug)]
struct OpenSnapshot {
    since: Instant,
    age: SnapshotLifetime,
    ended: Arc<AtomicBool>,
}

/// How old a snapshot may become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotLifetime {
    /// It ends at [`Snapshots::end_older`].
    Limited,
    Unlimited,
}

/// A position to read at. While it is open and has not ended, merges keep what it sees.
#[derive(Debug)]
pub struct Snapshot {
    place: (Position, u64),
    ended: Arc<AtomicBool>,
    registry: Arc<Snapshots>,
}

impl Snapshots {
    /// Opens a snapshot at the position that `newest` answers. It is asked under the lock, so that
    /// no merge decides in between that nobody reads there.
    pub fn open(
        self: &Arc<Self>,
        age: SnapshotLifetime,
        newest: impl FnOnce() -> Position,
    ) -> Snapshot {
        let mut open = self.0.lock();
        let place = (newest(), open.next);
        open.next += 1;
        let ended = Arc::new(AtomicBool::new(false));
        let entry = OpenSnapshot {
            since: Instant::now(),
            age,
            ended: ended.clone(),
        };
        let before = open.all.insert(place, entry);
        debug_assert!(before.is_none(), "two snapshots at {place:?}");
        Snapshot {
            place,
            ended,
            registry: self.clone(),
        }
    }

    /// The positions that snapshots read at, in order, and behind them the newest there is, before
    /// which none is opened from now on.
    pub fn positions(&self, newest: impl FnOnce() -> Position) -> Vec<Position> {
        let open = self.0.lock();
        let mut positions: Vec<Position> = open.all.keys().map(|(position, _)| *position).collect();
        positions.dedup();
        positions.push(newest());
        positions
    }

    /// The oldest of the [positions](Self::positions).
    pub fn oldest(&self, newest: impl FnOnce() -> Position) -> Position {
        let open = self.0.lock();
        let first = open.all.keys().map(|(position, _)| *position).next();
        first.unwrap_or_else(newest)
    }

    /// Ends snapshots that have been open for longer than `limit` and may not be: merges keep nothing
    /// for them from now on.
    pub fn end_older(&self, limit: Duration) {
        let mut open = self.0.lock();
        open.all.retain(|_, entry| {
            let ends = entry.age == SnapshotLifetime::Limited && entry.since.elapsed() > limit;
            entry.ended.store(ends, Ordering::Release);
            !ends
        });
    }

    /// How many snapshots are open.
    pub fn count(&self) -> usize {
        self.0.lock().all.len()
    }
}

impl Snapshot {
    pub fn position(&self) -> Position {
        self.place.0
    }

    /// Whether it has become too old: what it sees may be gone.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut open = self.registry.0.lock();
        let was_open = open.all.remove(&self.place).is_some();
        // One that has ended was taken out then.
        debug_assert_ne!(was_open, self.has_ended(), "a snapshot at {:?}", self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_ones_and_the_newest_count() {
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
    fn old_ones_end() {
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
