//! Which positions are being read: what a merge must keep.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The positions that open snapshots read at.
#[derive(Debug, Default)]
pub struct Snapshots {
    open: Mutex<BTreeMap<u64, usize>>,
}

/// A position to read at. While it is open, merges keep what it sees.
#[derive(Debug)]
pub struct Snapshot {
    position: u64,
    registry: Arc<Snapshots>,
}

impl Snapshots {
    /// Opens a snapshot at the position that `newest` answers. It is asked under the lock, so that
    /// no merge decides in between that nobody reads there.
    pub fn open(self: &Arc<Self>, newest: impl FnOnce() -> u64) -> Snapshot {
        let mut open = self.open.lock();
        let position = newest();
        *open.entry(position).or_insert(0) += 1;
        Snapshot {
            position,
            registry: self.clone(),
        }
    }

    /// The positions that snapshots read at, in order, and behind them the newest there is, before
    /// which none is opened from now on.
    pub fn positions(&self, newest: impl FnOnce() -> u64) -> Vec<u64> {
        let open = self.open.lock();
        let mut positions: Vec<u64> = open.keys().copied().collect();
        positions.push(newest());
        positions
    }

    /// How many snapshots are open.
    pub fn count(&self) -> usize {
        self.open.lock().values().sum()
    }
}

impl Snapshot {
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl Clone for Snapshot {
    fn clone(&self) -> Snapshot {
        let position = self.position;
        self.registry.open(|| position)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut open = self.registry.open.lock();
        if let Some(count) = open.get_mut(&self.position) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.position);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_ones_and_the_newest_count() {
        let snapshots = Arc::new(Snapshots::default());
        assert_eq!(snapshots.positions(|| 9), [9]);
        let five = snapshots.open(|| 5);
        let seven = snapshots.open(|| 7);
        let again = five.clone();
        drop(five);
        assert_eq!(snapshots.positions(|| 9), [5, 7, 9]);
        assert_eq!(snapshots.count(), 2);
        drop(again);
        assert_eq!(snapshots.positions(|| 9), [7, 9]);
        drop(seven);
        assert_eq!(snapshots.positions(|| 9), [9]);
    }
}
