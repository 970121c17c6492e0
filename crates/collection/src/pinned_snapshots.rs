//! Positions that clients know by a cluster time, and may want to read at again.
//!
//! A snapshot is taken when somebody begins to read. Of those whose time a client is told one is kept
//! open for each position, so that merges keep what it sees: for some minutes, and at most
//! [`PINNED_SNAPSHOTS_MAX`] of them, those that were read at last. The oldest go before where what is kept for them
//! takes too much. What is let go of cannot be read at any more, even where nothing has been
//! merged since: whether it could depends on nothing that a client knows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_fold::{Position, Snapshot};
use windrow_storage::ClusterTime;

/// So many positions are kept at most. A document that is changed all the time has a version for each,
/// and every merge goes by the list: this many are a list of 8 KB, and three new ones a second for as
/// long as they are kept by default.
pub const PINNED_SNAPSHOTS_MAX: usize = 1000;

/// For how long a position is kept where nobody says: MongoDB's `minSnapshotHistoryWindowInSeconds`.
const WINDOW: Duration = Duration::from_secs(300);

/// See the module.
#[derive(Debug)]
pub(crate) struct PinnedSnapshots {
    /// By the first of their times, which is also the order of their positions.
    all: Mutex<BTreeMap<ClusterTime, PinnedSnapshot>>,
    window_millis: AtomicU64,
}

/// A position that is pinned_snapshots.
#[derive(Debug)]
struct PinnedSnapshot {
    /// The last of the times that clients know it by: up to it, it was the newest.
    last: ClusterTime,
    /// When it was the newest for the last time.
    since: Instant,
    /// When somebody was told of it or read at it.
    used: Instant,
    snapshot: Snapshot,
}

impl Default for PinnedSnapshots {
    fn default() -> PinnedSnapshots {
        PinnedSnapshots {
            all: Mutex::default(),
            window_millis: AtomicU64::new(WINDOW.as_millis() as u64),
        }
    }
}

impl PinnedSnapshots {
    /// Says for how long each is pinned_snapshots.
    pub fn set_window(&self, window: Duration) {
        let millis = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        self.window_millis.store(millis, Ordering::Relaxed);
    }

    /// For how long each is kept, but not for longer than snapshots may be old.
    pub fn window(&self, age_max: Duration) -> Duration {
        age_max.min(Duration::from_millis(
            self.window_millis.load(Ordering::Relaxed),
        ))
    }

    /// Keeps the position of a snapshot, which is the newest, as that of the times from `first` to
    /// `last`.
    pub fn keep(&self, snapshot: Snapshot, first: ClusterTime, last: ClusterTime) {
        let (mut all, now) = (self.all.lock(), Instant::now());
        let position = all.entry(first).or_insert(PinnedSnapshot {
            last,
            since: now,
            used: now,
            snapshot,
        });
        position.last = position.last.max(last);
        (position.since, position.used) = (now, now);
        if all.len() > PINNED_SNAPSHOTS_MAX {
            let unused = all.iter().min_by_key(|(_, it)| it.used);
            let unused = unused.map(|(first, _)| *first);
            unused.and_then(|first| all.remove(&first));
        }
    }

    /// What `open` makes of the position of a time that is kept for no longer than `window`.
    pub fn at<T>(
        &self,
        time: ClusterTime,
        window: Duration,
        open: impl FnOnce(Position) -> T,
    ) -> Option<T> {
        let (mut all, now) = (self.all.lock(), Instant::now());
        // The time of a server without any change may be that of its first one, too: it was told before.
        let near = all.range_mut(..=time).rev().take(2);
        let (_, found) = near.filter(|(_, it)| time <= it.last).last()?;
        if now.saturating_duration_since(found.since) > window {
            return None;
        }
        found.used = now;
        Some(open(found.snapshot.position()))
    }

    /// Lets go of what has been kept for longer than `window`.
    pub fn release_expired(&self, window: Duration) {
        let mut all = self.all.lock();
        all.retain(|_, it| it.since.elapsed() <= window);
    }

    /// Lets go of the first, whatever was promised, where it is the `oldest` position that anybody reads at
    /// and before another one; whether it was.
    pub fn release_oldest(&self, oldest: Position, before: Position) -> bool {
        let mut all = self.all.lock();
        let is_oldest = |it: &PinnedSnapshot| {
            let position = it.snapshot.position();
            position < before && position == oldest
        };
        let found = all.iter().find(|(_, it)| is_oldest(it));
        let time = found.map(|(time, _)| *time);
        time.is_some_and(|time| all.remove(&time).is_some())
    }
}
