//! The result of an ingestion.

use std::path::PathBuf;

use crate::changes::UnavailableFolder;
use crate::pipeline::PipelineReport;

/// The result of an ingestion: numbers of files and documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngestSummary {
    /// Files below the folders.
    pub files_found: u64,
    /// Files that are stored with their current stamp and were not read.
    pub files_unchanged: u64,
    /// New files.
    pub files_added: u64,
    /// Changed files.
    pub files_replaced: u64,
    /// Deleted files.
    pub files_removed: u64,
    /// Files that were moved, whose documents got the new paths.
    pub files_moved: u64,
    /// Files that were read.
    pub files_read: u64,
    /// The size of the files that were read, in bytes.
    pub bytes_read: u64,
    /// Documents that were stored.
    pub documents: u64,
    /// Failures of files and members.
    pub failures: u64,
    /// Files whose format has no extractor.
    pub files_skipped: u64,
    /// Folders that are missing or empty and whose documents are kept.
    pub folders_unavailable: Vec<UnavailableFolder>,
    /// Folders that are missing and have no documents.
    pub folders_missing: Vec<PathBuf>,
    /// The report about the stages. Empty for a round of a watch.
    pub pipeline: PipelineReport,
}

impl IngestSummary {
    /// Returns `true` if any document was changed.
    pub fn has_changes(&self) -> bool {
        self.files_read + self.files_removed + self.files_moved > 0
    }
}
