//! The functions by which the page shows and changes the indexing of folders. The program
//! implements them.

use std::fmt;
use std::time::Duration;

/// The functions by which the page shows and changes the indexing of folders. Those that read files
/// or start processes are called only for the operating system user that runs the program.
pub struct FolderServices {
    /// Returns the progress of the run in this process. `None` if no run is active.
    pub progress: Box<dyn Fn() -> Option<RunProgress> + Send + Sync>,
    /// The path of the configuration file. `None` if the system has no configuration folder.
    pub config_path: Option<String>,
    /// Reads the configuration file. Returns an empty text if the file does not exist.
    pub read_config: Box<dyn Fn() -> Result<String, String> + Send + Sync>,
    /// Checks a configuration. Returns warnings. Fails with an error message if the configuration
    /// is invalid.
    pub check_config: ConfigFunction<Vec<String>>,
    /// Replaces the configuration file. The text was checked before.
    pub write_config: ConfigFunction<()>,
    /// Starts a run in a process of its own.
    pub start_run: Box<dyn Fn(RunRequest) -> Result<(), String> + Send + Sync>,
    /// Stops the run that was started from the page. The next run continues it. Returns `false` if
    /// there is none.
    pub stop_run: Box<dyn Fn() -> bool + Send + Sync>,
    /// Returns the error message of the last run that was started from the page. `None` if it has
    /// not failed.
    pub run_problem: Box<dyn Fn() -> Option<String> + Send + Sync>,
}

/// A function of the text of a configuration. Fails with an error message.
pub type ConfigFunction<T> = Box<dyn Fn(&str) -> Result<T, String> + Send + Sync>;

impl fmt::Debug for FolderServices {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FolderServices")
    }
}

/// A request to start a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRequest {
    /// The folders. If empty, those of the configuration.
    pub folders: Vec<String>,
    /// Also retries unchanged files that failed before.
    pub retries: bool,
}

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunProgress {
    /// The number of files to read. 0 until the walk has ended.
    pub files_total: u64,
    /// The number of files that were read.
    pub files_read: u64,
    /// The number of bytes to read.
    pub bytes_total: u64,
    /// The number of bytes that were read.
    pub bytes_read: u64,
    /// The number of documents that were stored.
    pub documents: u64,
    /// The number of files and members that failed.
    pub failures: u64,
    /// The time since the start of the run.
    pub elapsed: Duration,
    /// The stages, in the order of the pipeline. Empty until the first measurement.
    pub stages: Vec<StageProgress>,
    /// The run was started from the page, so the page can stop it.
    pub can_stop: bool,
}

/// The counters of a stage of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageProgress {
    /// The name.
    pub name: String,
    /// The number of threads or processes.
    pub threads: u64,
    /// The number of processed items.
    pub items: u64,
    /// The working time of all threads, in milliseconds.
    pub busy_ms: f64,
    /// The time that the threads waited for the stage before, in milliseconds.
    pub input_wait_ms: f64,
    /// The time that the threads waited for the stage after, in milliseconds.
    pub output_wait_ms: f64,
    /// The fill level of the queue to the next stage. `None` if the stage has no queue.
    pub queue_bytes: Option<QueueBytes>,
}

/// The fill level of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBytes {
    /// The mean number of bytes.
    pub mean: u64,
    /// The greatest number of bytes.
    pub max: u64,
}
