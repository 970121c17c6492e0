//! How often all documents of a collection were looked through.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counted since the start, or since the collection was made.
#[derive(Debug, Default)]
pub struct Scans {
    all: AtomicU64,
    tailable: AtomicU64,
}

impl Scans {
    /// Counts one; `is_tailable`: by a cursor that waits at the end.
    pub fn record(&self, is_tailable: bool) {
        self.all.fetch_add(1, Relaxed);
        if is_tailable {
            self.tailable.fetch_add(1, Relaxed);
        }
    }

    pub fn all(&self) -> u64 {
        self.all.load(Relaxed)
    }

    pub fn not_tailable(&self) -> u64 {
        self.all().saturating_sub(self.tailable.load(Relaxed))
    }
}
