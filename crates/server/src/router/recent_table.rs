//! A table whose entries are removed after they were not used for a time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::sync::lock;

/// The interval at which unused entries are removed.
const CLEANING_INTERVAL: Duration = Duration::from_secs(60);

/// Values by key. They are kept for the timeout after their last use, or somewhat longer.
#[derive(Debug)]
pub struct RecentTable<K, V> {
    timeout: Duration,
    table: Mutex<Table<K, V>>,
}

#[derive(Debug)]
struct Table<K, V> {
    entries: HashMap<K, Entry<V>>,
    cleaned: Instant,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    used: Instant,
}

impl<K: Eq + Hash, V: Clone> RecentTable<K, V> {
    /// Creates an empty table.
    pub fn new(timeout: Duration) -> RecentTable<K, V> {
        RecentTable {
            timeout,
            table: Mutex::new(Table {
                entries: HashMap::new(),
                cleaned: Instant::now(),
            }),
        }
    }

    /// Returns a value, which is used by that.
    pub fn get(&self, key: &K) -> Option<V> {
        let mut table = lock(&self.table);
        let entry = table.entries.get_mut(key)?;
        entry.used = Instant::now();
        Some(entry.value.clone())
    }

    /// Sets a value.
    pub fn insert(&self, key: K, value: V) {
        let used = Instant::now();
        let mut table = lock(&self.table);
        if used.duration_since(table.cleaned) >= CLEANING_INTERVAL {
            table.cleaned = used;
            let is_used = |entry: &Entry<V>| used.duration_since(entry.used) < self.timeout;
            table.entries.retain(|_, entry| is_used(entry));
        }
        table.entries.insert(key, Entry { value, used });
    }

    /// Removes a value.
    pub fn remove(&self, key: &K) {
        lock(&self.table).entries.remove(key);
    }
}
