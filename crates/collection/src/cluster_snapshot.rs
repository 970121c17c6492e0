//! A snapshot of all collections and views, with the cluster time by which clients know it.

use std::sync::Arc;

use windrow_fold::{Snapshot, SnapshotLifetime};
use windrow_storage::{ClusterTime, Position};

use crate::catalog::namespace::Namespace;
use crate::collection::Collection;
use crate::collections::Collections;
use crate::core::Core;
use crate::error::Error;
use crate::read::Reader;

/// A snapshot of all collections and views. It can be read for as long as a snapshot may live.
pub struct ClusterSnapshot {
    collections: Arc<Collections>,
    snapshot: Snapshot,
    time: ClusterTime,
}

impl std::fmt::Debug for ClusterSnapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ClusterSnapshot({})", self.time)
    }
}

impl ClusterSnapshot {
    /// Pins a snapshot of the newest position under the cluster times up to `until`, if that is
    /// later than its own.
    pub(crate) fn newest(collections: &Arc<Collections>, until: ClusterTime) -> ClusterSnapshot {
        let core = &collections.core;
        // A name changes before any snapshot of that position exists, so there is nothing to wait
        // for.
        let (snapshot, first) = core.snapshot_with_time(SnapshotLifetime::Unlimited);
        let position = snapshot.position();
        let own = core.snapshots.open(SnapshotLifetime::Limited, || position);
        let time = first.max(until);
        core.pinned_snapshots.pin(snapshot, first, time);
        ClusterSnapshot {
            collections: collections.clone(),
            snapshot: own,
            time,
        }
    }

    /// Returns the snapshot of a time, if that is pinned or the newest. `current` is the latest
    /// time that counts as the newest if nothing was written since.
    pub(crate) fn at(
        collections: &Arc<Collections>,
        time: ClusterTime,
        current: ClusterTime,
    ) -> Result<ClusterSnapshot, Error> {
        let core = &collections.core;
        let window = core.pinned_snapshots.window(core.options.snapshot_age_max);
        let again = |position| core.snapshots.open(SnapshotLifetime::Limited, || position);
        if let Some(snapshot) = core.pinned_snapshots.at(time, window, again) {
            return Ok(ClusterSnapshot {
                collections: collections.clone(),
                snapshot,
                time,
            });
        }
        if time <= current && time >= core.storage.log.newest_time() {
            let newest = ClusterSnapshot::newest(collections, time);
            // A commit may have happened in between.
            if newest.time == time {
                return Ok(newest);
            }
        }
        Err(Error::SnapshotNotKept(time))
    }

    /// Returns the cluster time.
    pub fn time(&self) -> ClusterTime {
        self.time
    }

    /// Returns another snapshot of the same position.
    pub(crate) fn reopen(&self) -> Result<Snapshot, Error> {
        self.collections.core.reopen_snapshot(&self.snapshot)
    }

    /// Returns the collection that had this name. Fails if it cannot be read any more.
    pub fn collection(&self, namespace: &Namespace) -> Result<Option<Arc<Collection>>, Error> {
        self.collections
            .by_name_at(namespace, self.snapshot.position())
    }

    /// Returns a reader of a collection.
    pub fn reader(&self, collection: &Collection) -> Result<Reader, Error> {
        let snapshot = self.reopen()?;
        let next_record = collection.next_record();
        Ok(Reader::new(collection.state(), snapshot, next_record, None))
    }
}

impl Core {
    /// Returns a new snapshot with its cluster time: the time of the newest commit, or a later one
    /// before the next.
    fn snapshot_with_time(&self, age: SnapshotLifetime) -> (Snapshot, ClusterTime) {
        let log = &self.storage.log;
        let mut time = ClusterTime::default();
        let snapshot = self.snapshots.open(age, || {
            time = log.newest_time();
            let written = log.written();
            // The low bits of a position are the increment of its time.
            let later = (written.0 as u32).wrapping_sub(time.increment());
            Position(written.0 - u64::from(later))
        });
        // Clients reject times of second 0, which an empty log would give.
        (snapshot, time.max(ClusterTime::new(1, 0)))
    }

    /// Closes pinned snapshots that are old enough.
    pub(crate) fn release_expired_snapshots(&self) {
        let window = self.pinned_snapshots.window(self.options.snapshot_age_max);
        self.pinned_snapshots.release_expired(window);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use windrow_storage::MemoryDisk;

    use super::*;
    use crate::engine::Engine;
    use crate::options::EngineOptions;

    /// A slow index build or drop used to block reads at a cluster time, and nothing could
    /// interrupt their wait.
    #[test]
    fn snapshots_do_not_wait_for_catalog_changes() {
        let options = EngineOptions::with_memory(4 << 20);
        let engine = Engine::open(Arc::new(MemoryDisk::new()), options).unwrap();
        let _changing = engine.core.catalog_change.lock();
        let (sender, receiver) = mpsc::channel();
        let other = engine.clone();
        std::thread::spawn(move || sender.send(other.cluster_snapshot().time()));
        let time = receiver.recv_timeout(Duration::from_secs(10));
        assert_eq!(time, Ok(engine.cluster_snapshot().time()));
    }
}
