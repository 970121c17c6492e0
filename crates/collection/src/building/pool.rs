//! The memory limit and the scheduling priority of all builds together.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// The scheduling priority of builds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuildPriority {
    /// Builds take only what other work leaves.
    Low,
    /// If processors are short, other work gets about three times as much as builds.
    #[default]
    Normal,
    /// Builds and other work are equal.
    High,
}

impl BuildPriority {
    /// Returns the niceness that the operating system uses.
    fn niceness(self) -> i32 {
        match self {
            BuildPriority::Low => 19,
            BuildPriority::Normal => 5,
            BuildPriority::High => 0,
        }
    }
}

/// The memory limit and the scheduling priority of all builds together.
#[derive(Debug)]
pub(crate) struct BuildPool {
    bytes_max: AtomicU64,
    workers: AtomicUsize,
    priority: AtomicU8,
}

/// A worker thread of a build, counted while it works.
pub(crate) struct Worker<'p>(&'p BuildPool);

impl BuildPool {
    pub fn new(bytes_max: u64, priority: BuildPriority) -> BuildPool {
        BuildPool {
            bytes_max: AtomicU64::new(bytes_max),
            workers: AtomicUsize::new(0),
            priority: AtomicU8::new(priority.niceness() as u8),
        }
    }

    pub fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Sets the memory limit of all builds together, in bytes. Running builds obey it from their
    /// next document on.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Makes the calling thread a worker. It keeps its niceness afterwards.
    pub fn join(&self) -> Worker<'_> {
        self.workers.fetch_add(1, Ordering::Relaxed);
        set_niceness(self.priority.load(Ordering::Relaxed).into());
        Worker(self)
    }
}

impl Worker<'_> {
    /// Returns the worker's current memory limit in bytes.
    pub fn bytes_max(&self) -> usize {
        let workers = self.0.workers.load(Ordering::Relaxed).max(1);
        self.0.bytes_max() as usize / workers
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.0.workers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// On systems without a niceness per thread, builds run at normal priority.
#[cfg(target_os = "linux")]
fn set_niceness(niceness: i32) {
    if niceness > 0 {
        let thread = rustix::thread::gettid();
        // If this fails, builds run at normal priority.
        let _ = rustix::process::setpriority_process(Some(thread), niceness);
    }
}

#[cfg(not(target_os = "linux"))]
fn set_niceness(_: i32) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_the_memory() {
        let pool = BuildPool::new(100, BuildPriority::High);
        let one = pool.join();
        assert_eq!(one.bytes_max(), 100);
        let other = pool.join();
        assert_eq!((one.bytes_max(), other.bytes_max()), (50, 50));
        drop(other);
        pool.set_bytes_max(60);
        assert_eq!(one.bytes_max(), 60);
    }
}
