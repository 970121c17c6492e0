//! The progress of an ingestion.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::changes::ReadJob;
use crate::pipeline::PipelineTimes;
use crate::walk::FileEntry;

/// Counters of an ingestion. They only grow, and any thread can read them.
#[derive(Debug, Default)]
pub struct Progress {
    /// The number of files to read. 0 until the folders are walked.
    pub files_total: AtomicU64,
    /// The number of files that were read.
    pub files_read: AtomicU64,
    /// The size of the files to read, in bytes.
    pub bytes_total: AtomicU64,
    /// The size of the files that were read, in bytes.
    pub bytes_read: AtomicU64,
    /// The number of documents that were stored.
    pub documents: AtomicU64,
    /// The number of failures of files and members.
    pub failures: AtomicU64,
    /// The number of files whose format has no extractor.
    pub files_skipped: AtomicU64,
    /// The counters of the stages.
    pub pipeline: PipelineTimes,
}

impl Progress {
    pub(crate) fn set_totals(&self, jobs: &[ReadJob<'_>]) {
        let files = || jobs.iter().filter(|job| job.file_part.index == 0);
        let bytes = files().map(|job| job.file.stamp.size).sum();
        self.bytes_total.store(bytes, Ordering::Relaxed);
        self.files_total
            .store(files().count() as u64, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, counter: &AtomicU64, count: usize) {
        counter.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn end_file(&self, file: &FileEntry) {
        self.bytes_read
            .fetch_add(file.stamp.size, Ordering::Relaxed);
        self.files_read.fetch_add(1, Ordering::Relaxed);
    }
}
