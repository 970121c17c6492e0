//! The limits of files in the configuration.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use windrow_ingest::WorkerConfig;

use super::Size;

/// The limits of a file, see [`windrow_extract::Limits`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// The maximum size of a file, member or message.
    pub file_size: Option<Size>,
    /// The maximum length of the text of a document.
    pub text_size: Option<Size>,
    /// The maximum size of the decompressed members of a file.
    pub archive_size: Option<Size>,
    /// The maximum number of members of a file.
    pub archive_members: Option<u64>,
    /// The maximum nesting of containers.
    pub archive_depth: Option<u32>,
    /// The maximum number of pages of a PDF.
    pub pages: Option<u32>,
    /// The time limit for reading a file.
    pub seconds: Option<u64>,
    /// The time that the programs of a file may take together: converters and the recognition of
    /// text.
    pub program_seconds: Option<u64>,
    /// The memory of a worker process.
    pub worker_memory: Option<Size>,
}

impl Limits {
    /// Returns a worker configuration with these limits.
    pub fn apply(&self, mut worker: WorkerConfig) -> WorkerConfig {
        let limits = &mut worker.limits;
        let bytes = |size: Option<Size>, default| size.map_or(default, |Size(bytes)| bytes);
        limits.input_bytes_max = bytes(self.file_size, limits.input_bytes_max);
        let text_bytes = bytes(self.text_size, limits.text_bytes_max as u64);
        limits.text_bytes_max = usize::try_from(text_bytes).unwrap_or(usize::MAX);
        limits.expanded_bytes_max = bytes(self.archive_size, limits.expanded_bytes_max);
        limits.members_max = self.archive_members.unwrap_or(limits.members_max);
        limits.depth_max = self.archive_depth.unwrap_or(limits.depth_max);
        limits.pages_max = self.pages.unwrap_or(limits.pages_max);
        worker.memory_bytes_max = bytes(self.worker_memory, worker.memory_bytes_max);
        if let Some(seconds) = self.program_seconds {
            worker.programs.file_ms_max = seconds.saturating_mul(1000);
        }
        if let Some(seconds) = self.seconds {
            worker.file_deadline = Duration::from_secs(seconds);
        }
        worker
    }

    /// Returns the limits of a worker configuration.
    pub fn from_config(worker: &WorkerConfig) -> Limits {
        let limits = &worker.limits;
        Limits {
            file_size: Some(Size(limits.input_bytes_max)),
            text_size: Some(Size(limits.text_bytes_max as u64)),
            archive_size: Some(Size(limits.expanded_bytes_max)),
            archive_members: Some(limits.members_max),
            archive_depth: Some(limits.depth_max),
            pages: Some(limits.pages_max),
            seconds: Some(worker.file_deadline.as_secs()),
            program_seconds: Some(worker.programs.file_ms_max / 1000),
            worker_memory: Some(Size(worker.memory_bytes_max)),
        }
    }
}
