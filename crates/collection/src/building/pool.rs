//! What all builds share: their memory, and who goes first, they or others.

use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// Whether builds let other work go first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuildPriority {
    /// They take what others leave.
    Low,
    /// Others get about three times as much where both want all.
    #[default]
    Normal,
    /// They are as good as any.
    High,
}

impl BuildPriority {
    /// As the scheduler of the operating system counts it.
    fn niceness(self) -> i32 {
        match self {
            BuildPriority::Low => 19,
            BuildPriority::Normal => 5,
            BuildPriority::High => 0,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct BuildPool {
    bytes_max: AtomicU64,
    workers: AtomicUsize,
    priority: AtomicU8,
}

/// A worker of a build, while it works.
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

    /// Sets how much memory all builds together take, in bytes: those that run keep to it from their
    /// next document on.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Makes the calling thread one that builds. It stays as nice as that.
    pub fn join(&self) -> Worker<'_> {
        self.workers.fetch_add(1, Ordering::Relaxed);
        be_nice(self.priority.load(Ordering::Relaxed).into());
        Worker(self)
    }
}

impl Worker<'_> {
    /// How much memory it may take now, in bytes.
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

/// Where threads have no niceness of their own, builds are as good as any.
#[cfg(target_os = "linux")]
fn be_nice(niceness: i32) {
    if niceness > 0 {
        let thread = rustix::thread::gettid();
        // Without it a build is as fast as any.
        let _ = rustix::process::setpriority_process(Some(thread), niceness);
    }
}

#[cfg(not(target_os = "linux"))]
fn be_nice(_: i32) {}

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
