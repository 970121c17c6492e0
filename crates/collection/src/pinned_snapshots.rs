//! Snapshots pinned by the cluster time that a client knows. A client may read at that time
//! again.
//!
//! Each read operation opens a snapshot. When a reply contains a cluster time, one snapshot of its
//! position stays open, so merges keep the versions it sees. It is closed after some minutes.
//! If there are more than [`PINNED_SNAPSHOTS_MAX`], the least recently used one is closed. The
//! oldest are closed earlier if past versions take too much space. After that, a read at that time
//! fails even if no merge has removed the versions, so success does not depend on chance.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use windrow_fold::{Position, Snapshot};
use windrow_storage::ClusterTime;

/// The maximal number of pinned snapshots. A document that changes constantly has a version for
/// each, and each merge searches the list. A list of this length takes 8 KB, and allows three new
/// snapshots a second for the default time.
pub const PINNED_SNAPSHOTS_MAX: usize = 1000;

/// The default time that a snapshot stays pinned, which is MongoDB's
/// `minSnapshotHistoryWindowInSeconds`.
const WINDOW: Duration = Duration::from_secs(300);

/// The pinned snapshots of an engine.
#[derive(Debug)]
pub(crate) struct PinnedSnapshots {
    /// By the first cluster time of each, which is also their order by position.
    all: Mutex<BTreeMap<ClusterTime, PinnedSnapshot>>,
    window_millis: AtomicU64,
}

/// A pinned snapshot.
#[derive(Debug)]
struct PinnedSnapshot {
    /// The last of its cluster times. Until then, its position was the newest.
    last: ClusterTime,
    /// When its position was known to be the newest for the last time.
    since: Instant,
    /// The last moment at which a reply contained its time, or a client read at it.
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
    /// Sets for how long snapshots stay pinned.
    pub fn set_window(&self, window: Duration) {
        let millis = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        self.window_millis.store(millis, Ordering::Relaxed);
    }

    /// Returns for how long snapshots stay pinned, at most `age_max`.
    pub fn window(&self, age_max: Duration) -> Duration {
        age_max.min(Duration::from_millis(
            self.window_millis.load(Ordering::Relaxed),
        ))
    }

    /// Pins a snapshot of the newest position under the cluster times from `first` to `last`.
    pub fn pin(&self, snapshot: Snapshot, first: ClusterTime, last: ClusterTime) {
        let (mut all, now) = (self.all.lock(), Instant::now());
        let pinned = all.entry(first).or_insert(PinnedSnapshot {
            last,
            since: now,
            used: now,
            snapshot,
        });
        pinned.last = pinned.last.max(last);
        (pinned.since, pinned.used) = (now, now);
        if all.len() > PINNED_SNAPSHOTS_MAX {
            let unused = all.iter().min_by_key(|(_, it)| it.used);
            let unused = unused.map(|(first, _)| *first);
            unused.and_then(|first| all.remove(&first));
        }
    }

    /// Calls `open` with the snapshot of a time, if it is pinned and not older than `window`.
    pub fn at<T>(
        &self,
        time: ClusterTime,
        window: Duration,
        open: impl FnOnce(Position) -> T,
    ) -> Option<T> {
        let (mut all, now) = (self.all.lock(), Instant::now());
        // Before the first write the server reports a time that its first write may also get. The
        // earlier snapshot counts, because its time was reported first.
        let near = all.range_mut(..=time).rev().take(2);
        let (_, found) = near.filter(|(_, it)| time <= it.last).last()?;
        if now.saturating_duration_since(found.since) > window {
            return None;
        }
        found.used = now;
        Some(open(found.snapshot.position()))
    }

    /// Closes snapshots that were pinned for longer than `window`.
    pub fn release_expired(&self, window: Duration) {
        let mut all = self.all.lock();
        all.retain(|_, it| it.since.elapsed() <= window);
    }

    /// Closes the oldest pinned snapshot, regardless of its age, if it is at the `oldest` position
    /// of all and before `before`. Returns `true` if it did.
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
