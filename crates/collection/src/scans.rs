//! The number of collection scans.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of collection scans since the engine was opened or the collection was created.
#[derive(Debug, Default)]
pub struct Scans {
    all: AtomicU64,
    tailable: AtomicU64,
}

impl Scans {
    /// Counts a scan by a cursor that ends with the collection.
    pub fn record(&self) {
        self.all.fetch_add(1, Relaxed);
    }

    /// Counts a scan by a tailable cursor, which waits for more documents at the end.
    pub fn record_tailable(&self) {
        self.all.fetch_add(1, Relaxed);
        self.tailable.fetch_add(1, Relaxed);
    }

    /// Returns the number of all scans.
    pub fn all(&self) -> u64 {
        self.all.load(Relaxed)
    }

    /// Returns the number of scans by cursors that are not tailable.
    pub fn not_tailable(&self) -> u64 {
        self.all().saturating_sub(self.tailable.load(Relaxed))
    }
}
