//! How far a run is.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::changes::Job;
use crate::walk::Candidate;

/// How far a run is. Numbers only grow; any thread may look at them.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files to read, known once the folders have been walked; until then 0.
    pub files_total: AtomicU64,
    pub files: AtomicU64,
    pub bytes_total: AtomicU64,
    pub bytes: AtomicU64,
    pub documents: AtomicU64,
    pub failures: AtomicU64,
    pub skipped: AtomicU64,
}

impl Progress {
    pub(crate) fn expect(&self, jobs: &[Job<'_>]) {
        let bytes = jobs.iter().map(|job| job.file.stamp.size).sum();
        self.bytes_total.store(bytes, Ordering::Relaxed);
        self.files_total.store(jobs.len() as u64, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn end_file(&self, file: &Candidate) {
        self.bytes.fetch_add(file.stamp.size, Ordering::Relaxed);
        self.files.fetch_add(1, Ordering::Relaxed);
    }
}
