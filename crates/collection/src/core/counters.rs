//! Counters of the engine's work, and the time that it took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counters of the engine's work since it was opened.
#[derive(Debug, Default)]
pub struct Counters {
    pub folds: AtomicU64,
    pub merges: AtomicU64,
    pub delayed_writes: AtomicU64,
    /// Shares of builds that this server has given to followers, adopted from them, and taken back.
    pub shares_given: AtomicU64,
    pub shares_adopted: AtomicU64,
    pub shares_taken_back: AtomicU64,
    /// Shares that this server has built for others.
    pub shares_built: AtomicU64,
    /// The creation of index entries in the background.
    pub entry_time: BusyTime,
    pub fold_time: BusyTime,
    pub merge_time: BusyTime,
    /// The delays of writers.
    pub delay_time: BusyTime,
}

/// The total time of a kind of work.
#[derive(Debug, Default)]
pub struct BusyTime {
    nanos: AtomicU64,
}

/// Adds the time from its creation to its drop.
pub struct Busy<'b> {
    time: &'b BusyTime,
    since: Instant,
}

impl BusyTime {
    pub fn begin(&self) -> Busy<'_> {
        Busy {
            time: self,
            since: Instant::now(),
        }
    }

    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let nanos = u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.time.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}
