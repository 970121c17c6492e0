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

    /// The oldest position that a snapshot reads at, or else the newest there is: entries at or
    /// before it are seen alike by all, so only the newest version of each is needed.
    pub fn oldest(&self, newest: impl FnOnce() -> u64) -> u64 {
        let open = self.open.lock();
        open.first_key_value()
            .map_or_else(newest, |(position, _)| *position)
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
    fn the_oldest_open_one_counts() {
        let snapshots = Arc::new(Snapshots::default());
        assert_eq!(snapshots.oldest(|| 9), 9);
        let five = snapshots.open(|| 5);
        let seven = snapshots.open(|| 7);
        let again = five.clone();
        drop(five);
        assert_eq!((snapshots.oldest(|| 9), snapshots.count()), (5, 2));
        drop(again);
        assert_eq!(snapshots.oldest(|| 9), 7);
        drop(seven);
        assert_eq!(snapshots.oldest(|| 9), 9);
    }
}
